"""Engines on other processes: `arise train` and `arise doctor` refuse with one message, and nothing is started."""

import socket
from pathlib import Path

import pytest

from arise.cli.doctor import NOT_READY
from arise.engines.local.models import save
from arise.engines.local.small_model import small_model
from arise.errors import Exit
from tests.e2e.runs import call
from tests.stub_environments import make_environment

CPU = ("policy.kind='verl'", "policy.device='cpu'", "tasks.train_tasks=6", "tasks.eval_tasks=2")
SMALL = ("model.kind='small'", "model.heads=2")


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """An empty cache."""
    return tmp_path / "cache"


def refused(cache: Path, tmp_path: Path, *changes: str) -> str:
    """The message of `arise train`, of which `arise doctor` has the remedy too."""
    words = [word for change in (*CPU, *changes) for word in ("--set", change)]
    done = call(cache, "train", *words, "--run-dir", str(tmp_path / "run"), folder=tmp_path)
    assert done.returncode == Exit.ENGINE, done.stderr
    assert not (cache / "starts").exists(), "a warm start was made before"
    assert not list((tmp_path / "run").glob("*.db"))
    assert "Traceback" not in done.stderr
    remedy = done.stderr.partition("  do: ")[2].strip()
    found = call(cache, "doctor", *words, folder=tmp_path)
    assert found.returncode == NOT_READY, found.stdout
    assert remedy in found.stdout
    return done.stderr


def test_a_library_that_is_missing_or_of_another_version(cache: Path, tmp_path: Path) -> None:
    said = refused(cache, tmp_path, *SMALL)
    assert "verl is not installed in" in said
    assert "arise engines install verl --device cpu" in said
    make_environment(cache, "verl", version="0.1")
    assert "holds verl 0.1, ARISE works with 0.9.1" in refused(cache, tmp_path, *SMALL)


def test_too_little_memory_a_server_that_is_away_and_a_model_without_a_template(cache: Path, tmp_path: Path) -> None:
    for name in ("verl", "vllm"):
        make_environment(cache, name)
    assert "GiB of memory" in refused(cache, tmp_path, *SMALL, "policy.sampler.cache_gib=9000.0")
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    said = refused(cache, tmp_path, *SMALL, f"policy.sampler.addresses=['{address}']")
    assert f"no vLLM server answers at {address}" in said
    assert "arise engines serve" in said
    made = small_model(["count the words " * 20], vocabulary=320, hidden=64, layers=1, heads=1, kv_heads=1)
    save(made.model, made.tokenizer, tmp_path / "silent")
    (tmp_path / "silent" / "chat_template.jinja").unlink()
    own = ["model.kind='pretrained'", f"model.name='{tmp_path / 'silent'}'", "model.lora_rank=0"]
    assert "has no chat template" in refused(cache, tmp_path, *own)
