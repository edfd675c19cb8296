"""Six ways to get an endpoint wrong, in every command that calls a model: refused with the remedy, nothing spent."""

import json
import resource
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from arise.cli.app import app
from arise.llm.first_call.first_call import FIRST_CALL
from arise.testing import in_thread
from tests.e2e.runs import call_afresh
from tests.unit.llm.first_call.test_first_call import DEAD, REMEDIES, server

COMMANDS = ("judge check", "tasks tag", "doctor", "train", "eval", "analyze", "skills test", "judge rejudge")
MISTAKES = (*REMEDIES, "no key")
AT_ONCE = ("train", "doctor")
DIAGONAL = list(zip(COMMANDS, [*MISTAKES, *MISTAKES], strict=False))
OTHERS = [(command, wrong) for command in COMMANDS for wrong in MISTAKES if (command, wrong) not in DIAGONAL]


@pytest.mark.parametrize(("command", "wrong"), DIAGONAL)
def test_a_command_refuses_a_mistake_before_it_spends(
    command: str, wrong: str, tmp_path: Path, copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused(command, wrong, tmp_path, copied, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize(("command", "wrong"), OTHERS)
def test_every_command_refuses_every_mistake(
    command: str, wrong: str, tmp_path: Path, copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused(command, wrong, tmp_path, copied, monkeypatch)


@pytest.mark.parametrize(
    "command", [pytest.param(name, marks=() if name in AT_ONCE else pytest.mark.slow) for name in COMMANDS]
)
def test_a_fresh_process_refuses_a_wrong_key_with_less_than_five_seconds_of_work(
    command: str, tmp_path: Path, copied: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Importing torch and transformers alone takes longer: an endpoint is tried before the engine is loaded."""
    monkeypatch.setenv("A_KEY", "wrong")
    with in_thread(server("wrong key")) as fake:
        words = command_line(command, fake.base_url, tmp_path, copied)
        before = work_of_children()
        done = call_afresh(cache, *words)
        assert work_of_children() - before < 5
    assert done.returncode != 0
    assert REMEDIES["wrong key"] in done.stdout + done.stderr


def work_of_children() -> float:
    """Return the processor seconds of all processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def refused(command: str, wrong: str, tmp_path: Path, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a command against a server on which something is wrong; its remedy is shown and no work was sent."""
    monkeypatch.setenv("A_KEY", "" if wrong == "no key" else "wrong")
    # An attempt of this run's agent fits into fewer tokens than a judge's prompt.
    with in_thread(server(wrong, 64 if command == "eval" else 2_048)) as fake:
        url = {"dead host": DEAD, "no key": "https://example.com/v1"}.get(wrong, fake.base_url)
        words = command_line(command, url, tmp_path, run)
        clock, work = time.monotonic(), time.process_time()
        done = CliRunner().invoke(app, words)
        assert time.process_time() - work < 5
        assert time.monotonic() - clock < 30, "5 s on a machine that does nothing else"
    assert done.exit_code != 0, done.output
    remedy = REMEDIES.get(wrong, "export A_KEY=..., or name the variable that holds the key")
    assert remedy in " ".join(done.output.split()), done.output
    assert all(FIRST_CALL in ask.data for ask in fake.asks)
    assert not (tmp_path / "run" / "run.db").exists()


def command_line(command: str, url: str, folder: Path, run: Path) -> list[str]:
    """A command with what it reads: a task, trajectories or a finished run."""
    task, attempts, empty = folder / "tasks" / "a", folder / "attempts.jsonl", folder / "c.toml"
    (task / "tests").mkdir(parents=True)
    (task / "task.toml").write_text('schema_version = "1.0"\n[agent]\ntimeout_sec = 60\n[verifier]\ntimeout_sec = 60\n')
    (task / "instruction.md").write_text("Clean the table.")
    (task / "tests" / "test.sh").write_text("echo 1 > /logs/verifier/reward.txt\n")
    said = [{"role": "user", "content": "Sort a.csv."}, {"role": "assistant", "content": "Done."}]
    attempts.write_text(json.dumps({"task": "a", "reward": 0.0, "messages": said}) + "\n")
    empty.write_text("")
    if command == "skills test":
        (folder / "skills" / "look").mkdir(parents=True)
        (folder / "skills" / "look" / "SKILL.md").write_text("---\nname: look\ndescription: Look first.\n---\nLook.\n")
    if command == "judge rejudge":
        done = CliRunner().invoke(app, ["analyze", str(attempts), "--out", str(folder / "analysis")])
        assert done.exit_code == 0, done.output
    served = ["--base-url", url, "--api-key-env", "A_KEY"]
    changes = ["kind=model", "endpoint.model=judge-model", f"endpoint.base_url={url}", "endpoint.api_key_env=A_KEY"]
    sets = [word for change in changes for word in ("--set", f"judge.{change}")]
    return {
        "judge check": ["judge", "check", "--model", "judge-model", *served],
        "tasks tag": ["tasks", "tag", str(task.parent), "--model", "judge-model", *served],
        "doctor": ["doctor", str(empty), *sets],
        "train": ["train", str(empty), "--run-dir", str(folder / "run"), *sets],
        "eval": ["eval", str(run), "--model", "judge-model", *served],
        "analyze": ["analyze", str(attempts), "--judge", "judge-model", "--max-usd", "0", *served],
        "skills test": ["skills", "test", str(folder / "skills"), "--tasks", str(task.parent), "--model", "judge-model",
                        "--out", str(folder / "out"), *served],
        "judge rejudge": ["judge", "rejudge", str(folder / "analysis"), "--model", "judge-model", "--max-usd", "0",
                          *served],
    }[command]  # fmt: skip
