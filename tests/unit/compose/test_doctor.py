"""`arise doctor CONFIG` looks at that configuration: what a run would refuse it refuses too, with a remedy."""

import importlib.util
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from arise.cli.app import app
from arise.compose.doctor import examine
from arise.config import Config
from arise.testing import FakeLLM, Status, always, honest, in_thread
from arise.types import Verdict

ROOT = Path(__file__).parents[3]


def diagnosed(config: str | Path, *changes: str) -> tuple[int, dict[str, dict[str, Any]]]:
    words = ["doctor", str(config), *(word for change in changes for word in ("--set", change)), "--json"]
    done = CliRunner().invoke(app, words)
    found = json.loads(done.stdout)
    assert found["ready"] == (done.exit_code == 0)
    return done.exit_code, {finding["name"]: finding for finding in found["findings"]}


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ARISE_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "mine.toml"
    path.write_text("[train]\niterations = 3\n")
    return path


def test_the_shipped_configuration_is_ready_and_the_next_command_is_printed(mine: Path) -> None:
    done = CliRunner().invoke(app, ["doctor", str(mine), "--set", "train.seed=2"])
    assert done.exit_code == 0, done.output
    assert done.output.splitlines()[-1] == f"ready: arise train {mine} --set train.seed=2"


@pytest.mark.parametrize(
    ("changes", "name", "said"),
    [
        (["tasks.kind=harbor", "tasks.train=nowhere", "tasks.evaluation=nowhere"], "tasks", "nowhere"),
        (["tasks.held_out=knitting"], "tasks", "unknown task type 'knitting'"),
        (["pool.lifecycle=nowhere.json"], "tasks", "nowhere.json"),
        (["model.kind=pretrained"], "model", "was not pulled yet"),
        (["model.kind=pretrained", "model.name=./nowhere"], "model", "no such model folder"),
        (["policy.device=cuda:7"], "engine", "policy.device = 'cuda:7' cannot be used"),
        (["judge.kind=model", "judge.endpoint.model=m", "judge.endpoint.api_key_env=NO_KEY"], "judge", "NO_KEY holds"),
        (["judge.kind=model", "judge.endpoint.model=m", "judge.endpoint.base_url=FAKE"], "judge", "HTTP 404"),
        (
            ["criteria.kind=elicited", "criteria.endpoint.model=m", "criteria.endpoint.base_url=FAKE"],
            "references",
            "404",
        ),
    ],
)
def test_what_a_run_would_refuse_is_not_ready(mine: Path, changes: list[str], name: str, said: str) -> None:
    with in_thread(FakeLLM(lambda _: Status(404))) as fake:
        code, found = diagnosed(mine, *(change.replace("FAKE", fake.base_url) for change in changes))
    assert code == 1
    assert found[name]["level"] == "failure"
    assert said in found[name]["said"]
    assert found[name]["remedy"]


def test_an_endpoint_that_answers_is_ready(mine: Path) -> None:
    with in_thread(FakeLLM(honest(lambda _rule, _ask: Verdict.PASS))) as fake:
        endpoint = f"judge.endpoint.base_url={fake.base_url}"
        code, found = diagnosed(mine, "judge.kind=model", "judge.endpoint.model=m", endpoint)
    assert code == 0
    assert found["judge"]["level"] == "ok"
    assert "window 131,072 tokens" in found["judge"]["said"]
    assert "control questions right" in found["judge"]["said"]
    assert "per iteration 256 judge calls" in found["judge"]["said"]


def test_a_judge_that_misses_its_control_questions_is_a_warning(mine: Path) -> None:
    with in_thread(FakeLLM(always("ok"))) as fake:
        endpoint = f"judge.endpoint.base_url={fake.base_url}"
        code, found = diagnosed(mine, "judge.kind=model", "judge.endpoint.model=m", endpoint)
    assert code == 0
    assert found["judge"]["level"] == "warning"
    assert "arise judge check" in found["judge"]["remedy"]


def test_a_cache_that_cannot_be_written_is_a_failure(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARISE_CACHE", str(mine / "cache"))
    code, found = diagnosed(mine)
    assert code == 1
    assert "ARISE_CACHE" in found["warm start"]["remedy"]


def test_the_remedy_for_a_model_that_was_not_pulled_is_a_command(mine: Path) -> None:
    _, found = diagnosed(mine, "model.kind=pretrained")
    assert found["model"]["remedy"] == "arise models pull smollm2-135m"
    assert CliRunner().invoke(app, [*shlex.split(found["model"]["remedy"])[1:], "--help"]).exit_code == 0


def test_the_remedy_for_missing_packages_installs_this_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    known = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "torch" else known(name))
    (found,) = [finding for finding in examine(Config(), Path()) if finding.name == "packages"]
    assert found.level == "failure"
    installed = re.fullmatch(r"pip install -e '(.+)\[train\]'", found.remedy)
    assert installed
    assert (Path(installed[1]) / "pyproject.toml").read_text().count("\ntrain = [") == 1
