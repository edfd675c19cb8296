"""`arise plan` as a user calls it."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from arise.cli.app import app

CONFIGS = Path(__file__).parents[3] / "configs"
CONFIG = """
[model]
kind = "pretrained"
name = "Qwen/Qwen3-8B"
lora_rank = 0
[train]
tasks_per_iteration = 2
[tasks]
kind = "harbor"
train = "train"
evaluation = "held-out"
[judge]
kind = "model"
endpoint = {model = "deepseek-v4-flash", base_url = "https://example.com/v1", price = {input = 1.0, output = 2.0}}
"""


@pytest.fixture
def config(tmp_path: Path) -> str:
    (tmp_path / "my.toml").write_text(CONFIG)
    return str(tmp_path / "my.toml")


def plan(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["plan", *arguments])


def test_a_forecast_names_every_part(config: str) -> None:
    done = plan(config, "--gpu", "h100", "--gpus", "8", "--assume", "turns=5")
    assert done.exit_code == 0, done.output
    for part in ("training GPU", "sampling GPU", "iteration", "tokens", "twice as fast", "judge", "disk", "whole run"):
        assert part in done.output
    assert "turns 5," in done.output


def test_dollars_follow_from_tokens_and_prices(config: str) -> None:
    found = json.loads(plan(config, "--gpu", "h100", "--gpus", "8", "--assume", "turns=2", "--json").output)
    judge = found["judge"]
    assert judge["usd"] == pytest.approx((judge["input_tokens"] * 1.0 + judge["output_tokens"] * 2.0) / 1e6, rel=1e-6)
    assert judge["calls"] == 2 * 8


def test_what_does_not_fit_is_reported_and_exits_with_one(config: str) -> None:
    done = plan(config, "--gpu", "rtx4090", "--gpus", "1", "--assume", "turns=2")
    assert done.exit_code == 1
    assert "DOES NOT FIT" in done.output


def test_fleets_are_compared(config: str) -> None:
    done = plan(config, "--gpu", "h100", "--sweep", "4,8", "--assume", "turns=2")
    assert done.exit_code == 0, done.output
    assert len(done.output.splitlines()) == 1 + 2 * 2 * 3


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--gpu", "h1000"), "h1000"),
        (("--gpu", "h100", "--assume", "trun=3"), "trun"),
        (("--gpu", "h100", "--sweep", "8,many"), "8,many"),
        (("--gpu", "h100", "--gpus", "4", "--servers", "4", "--tensor-parallel", "1"), "leave none of 4"),
        (("--gpus", "4"), "no GPU is named"),
    ],
)
def test_bad_options_are_refused_by_name(config: str, arguments: tuple[str, ...], named: str) -> None:
    done = plan(config, *arguments)
    assert done.exit_code == 2
    assert named in done.output
    assert "do:" in done.output


def test_a_run_without_rollouts_cannot_be_measured(config: str, tmp_path: Path) -> None:
    from arise.run.store import RunStore

    RunStore.open(tmp_path / "run").close()
    (tmp_path / "run" / "config.toml").write_text("")
    done = plan(config, "--from", str(tmp_path / "run"))
    assert done.exit_code == 2
    assert "no rollouts" in done.output


@pytest.mark.parametrize(
    ("name", "gpu", "said"),
    [
        ("paper.toml", "h800", "2 sampling servers of 8 GPUs, 16 GPUs train, 4 per row"),
        ("one-node.toml", "h100", "4 sampling servers of 1 GPUs, 4 GPUs train"),
        ("lora-one-gpu.toml", "rtx4090", "one rtx4090 that samples and trains in turn"),
    ],
)
def test_the_shipped_configurations_for_gpus_fit_as_they_are(name: str, gpu: str, said: str) -> None:
    done = plan(str(CONFIGS / name), "--gpu", gpu, "--assume", "turns=3")
    assert done.exit_code == 0, done.output
    assert said in done.output
