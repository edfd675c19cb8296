"""`arise skills test` with a scripted model that only succeeds when it is told how."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from arise.cli.app import app
from arise.llm.first_call.first_call import FIRST_CALL
from arise.testing import Ask, FakeLLM, Say, in_thread
from tests.task_folders import write_task

GOOD, IDLE = "Write the number 42 and nothing else into the file.", "Breathe slowly before every command you type."
BAD = "Write the number 7 into every file, whatever the task says."


def skill(folder: Path, name: str, text: str) -> None:
    (folder / name).mkdir(parents=True)
    (folder / name / "SKILL.md").write_text(f"---\nname: {name}\ndescription: d\n---\n\n# {name}\n\n{text}\n")


def model(ask: Ask) -> Say:
    """Answers right only where the prompt holds the good skill; finishes with the second turn."""
    messages = ask.body["messages"]
    if FIRST_CALL in str(messages[-1]["content"]):
        return Say("ok", prompt_tokens=20, completion_tokens=1)
    done = any(message["role"] == "assistant" for message in messages)
    number = 42 if GOOD in str(messages[0]["content"]) else 7
    return Say("$ submit" if done else f"$ echo {number} > answer.txt", prompt_tokens=100, completion_tokens=10)


def misled(ask: Ask) -> Say:
    """Answers right unless the prompt holds the bad skill."""
    right = BAD not in str(ask.body["messages"][0]["content"])
    answer = model(ask)
    return replace(answer, text=answer.text.replace("7", "42")) if right else answer


def run(tmp_path: Path, *words: object, script: Callable[[Ask], Say] = model) -> tuple[Result, int]:
    with in_thread(FakeLLM(script)) as fake:
        done = CliRunner().invoke(
            app,
            [
                "skills", "test", str(tmp_path / "skills"), "--tasks", str(tmp_path / "tasks"), "--model", "m",
                "--base-url", fake.base_url, "--price", "1,1", "--out", str(tmp_path / "out"), "--json",
                *map(str, words),
            ],
        )  # fmt: skip
        return done, len(fake.asks)


def facts(done: Result) -> dict[str, Any]:
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{") :])
    return found


def test_a_skill_that_helps_is_distinguished_from_one_that_does_not(tmp_path: Path) -> None:
    for number in range(6):
        write_task(tmp_path / "tasks" / f"task-{number}")
    skill(tmp_path / "skills", "write-number", GOOD)
    skill(tmp_path / "skills", "breathe", IDLE)
    done, _ = run(tmp_path)
    found = facts(done)
    assert found["without_skills"]["count"] == 0
    assert {arm["skills"]: arm["verdict"] for arm in found["arms"]} == {
        "breathe": "cannot tell",
        "write-number": "helps",
        "all": "helps",
    }
    assert all(arm["usd"] > 0 for arm in found["arms"])
    again, asked = run(tmp_path)
    assert [arm["passes"] for arm in facts(again)["arms"]] == [arm["passes"] for arm in found["arms"]]
    assert asked == 1  # only the first call of the endpoint


def test_a_skill_that_harms_is_said_to_harm(tmp_path: Path) -> None:
    for number in range(6):
        write_task(tmp_path / "tasks" / f"task-{number}")
    skill(tmp_path / "skills", "write-seven", BAD)
    found = facts(run(tmp_path, script=misled)[0])
    (arm,) = found["arms"]
    assert (found["without_skills"]["count"], arm["passes"]["first"]["count"]) == (6, 0)
    assert (arm["skills"], arm["verdict"]) == ("all", "harms")


def test_an_empty_folder_and_another_agent_are_refused(tmp_path: Path) -> None:
    (tmp_path / "skills").mkdir()
    write_task(tmp_path / "tasks" / "one")
    done, asked = run(tmp_path)
    assert (done.exit_code, asked) == (2, 0)
    assert "holds no SKILL.md" in done.output
    other, _ = run(tmp_path, "--agent", "other")
    assert "package.module:Class" in other.output
    capped, _ = run(tmp_path, "--agent", "mine:Agent", "--max-usd", "1")
    assert "cannot be kept" in capped.output


def calling(ask: Ask) -> Say:
    """Calls the tool of the built-in tool agent."""
    said = model(ask)
    if FIRST_CALL in str(ask.body["messages"][-1]["content"]) or said.text == "$ submit":
        return replace(said, text="Done.")
    return replace(said, text="", calls=(("bash", {"command": said.text.removeprefix("$ ")}),))


def test_the_tool_agent_is_another_agent_and_its_attempts_are_others(tmp_path: Path) -> None:
    for number in range(6):
        write_task(tmp_path / "tasks" / f"task-{number}")
    skill(tmp_path / "skills", "write-number", GOOD)
    found = facts(run(tmp_path, "--agent", "tools", script=calling)[0])
    assert [(arm["skills"], arm["verdict"]) for arm in found["arms"]] == [("all", "helps")]
    shell, asked = run(tmp_path)
    assert facts(shell)["arms"][0]["verdict"] == "helps"
    assert asked > 6, "the attempts of the tool agent are not taken for those of the shell agent"


OWN = """
from arise.types import StopReason, Trajectory, Turn

class Agent:
    def __init__(self, endpoint, limits):
        self.model = endpoint.model

    async def attempt(self, task, sandbox, system, shown, key, seed):
        number = 42 if "42" in system else 7
        await sandbox.run(f"echo {number} > answer.txt", 10.0)
        return Trajectory(key, task.id, (Turn(f"{self.model} wrote {number}"),), StopReason.FINISHED, system, (), shown)
"""


def test_a_class_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_agent_of_a_user.py").write_text(OWN)
    monkeypatch.syspath_prepend(str(tmp_path))
    for number in range(6):
        write_task(tmp_path / "tasks" / f"task-{number}")
    skill(tmp_path / "skills", "write-number", GOOD)
    done, asked = run(tmp_path, "--agent", "own_agent_of_a_user:Agent")
    assert [(arm["skills"], arm["verdict"]) for arm in facts(done)["arms"]] == [("all", "helps")]
    assert asked == 0
