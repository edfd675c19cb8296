"""`arise skills test` with unmodified harnesses, and a scripted model that only succeeds when it is told how."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from arise.cli.app import app
from arise.llm.first_call.first_call import FIRST_CALL
from arise.testing import Ask, FakeLLM, Say, in_thread
from tests.e2e.harnesses.test_harnesses import FINISH, installed
from tests.task_folders import write_task

__all__ = ["installed"]
GOOD = "Write the number 42 and nothing else into the file."


def model(ask: Ask) -> Say:
    """Writes the right number only where the prompt holds the skill, then ends as each harness ends."""
    messages = ask.body["messages"]
    said = Say("ok", prompt_tokens=20, completion_tokens=1)
    if FIRST_CALL in str(messages[-1]["content"]):
        return said
    number = 42 if GOOD in json.dumps(messages) else 7
    done = sum(message["role"] == "assistant" for message in messages)
    if done == 0:
        return replace(said, text="I write it.", calls=(("bash", {"command": f"echo {number} > answer.txt"}),))
    if done == 1:
        return replace(said, text="I finish.", calls=(("bash", {"command": FINISH}),))
    return replace(said, text="Done.")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("tasks", [1, pytest.param(6, marks=pytest.mark.slow)])
def test_a_skill_is_measured_with_a_harness(installed: str, tmp_path: Path, tasks: int) -> None:
    """One task shows that the skill is seen; six are enough for a verdict."""
    for number in range(tasks):
        write_task(tmp_path / "tasks" / f"task-{number}")
    (tmp_path / "skills" / "write-number").mkdir(parents=True)
    text = f"---\nname: write-number\ndescription: d\n---\n\n# write-number\n\n{GOOD}\n"
    (tmp_path / "skills" / "write-number" / "SKILL.md").write_text(text)
    words = ["skills", "test", str(tmp_path / "skills"), "--tasks", str(tmp_path / "tasks"), "--model", "m"]
    words += ["--agent", installed, "--price", "1,1", "--max-usd", "5", "--out", str(tmp_path / "out"), "--json"]
    with in_thread(FakeLLM(model)) as fake:
        done = CliRunner().invoke(app, [*words, "--base-url", fake.base_url])
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout[done.stdout.index("{") :])
    assert facts["without_skills"]["count"] == 0
    (arm,) = facts["arms"]
    verdict = "helps" if tasks == 6 else "cannot tell"
    assert (arm["skills"], arm["verdict"], arm["passes"]["first"]["count"]) == ("all", verdict, tasks)
    assert arm["usd"] > 0
