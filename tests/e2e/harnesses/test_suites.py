"""`arise eval --suite --agent HARNESS --model`: an unmodified harness with a model behind an endpoint."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from arise.cli.app import app
from arise.testing import FakeLLM, Say, in_thread
from arise.testing.fake_llm import Action, Ask
from tests.e2e.harnesses.test_harnesses import SOLVE, installed
from tests.stored_runs import write_run
from tests.task_folders import write_task

__all__ = ["installed"]
HARNESSES = ["pi", pytest.param("kilo", marks=pytest.mark.slow)]


def solves(ask: Ask) -> Action:
    """Call bash once in every conversation that offers tools; titles and the like get a word."""
    if not ask.body.get("tools") or any(message["role"] == "tool" for message in ask.body["messages"]):
        return Say("Done.")
    return Say("", calls=(("bash", {"command": SOLVE, "description": "Write it"}),))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("installed", HARNESSES, indirect=True)
def test_a_suite_is_solved_and_stored_and_not_tried_again(
    installed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        write_task(tmp_path / "suite" / name)
    write_run(tmp_path / "run", 2)
    monkeypatch.setenv("FAKE_KEY", "k")
    with in_thread(FakeLLM(solves)) as fake:
        words = ["eval", str(tmp_path / "run"), "--model", "m", "--base-url", fake.base_url, "--price", "0"]
        words += ["--api-key-env", "FAKE_KEY", "--suite", str(tmp_path / "suite"), "--agent", installed]
        words += ["--attempts", "2", "--label", "s"]
        done = CliRunner().invoke(app, words)
        asked = len([ask for ask in fake.asks if ask.body.get("tools")])
        again = CliRunner().invoke(app, words)
        assert len([ask for ask in fake.asks if ask.body.get("tools")]) == asked
    assert "s: 100.0 % of 4 attempts" in done.stdout, (done.output, done.exception)
    assert "Run 1 100.0  Run 2 100.0" in done.stdout
    assert again.stdout.splitlines()[-4:] == done.stdout.splitlines()[-4:]
    trial = tmp_path / "run" / "jobs" / "s" / "two__0000001"
    steps = json.loads((trial / "agent" / "trajectory.json").read_text())["steps"]
    calls = [call["arguments"]["command"] for step in steps for call in step.get("tool_calls") or ()]
    assert calls == [SOLVE]
    assert json.loads((trial / "result.json").read_text())["agent_info"]["name"] == installed
