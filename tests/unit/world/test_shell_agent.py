"""The built-in agent: what it runs, what it records, and why it stops."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from arise.config import AgentConfig, SamplingConfig
from arise.ports import Engine, PolicyLost
from arise.rollouts.commands import NO_COMMAND, observe, parse_command
from arise.rollouts.guidance import HEADING, active_pairs, shown_skills, system_prompt
from arise.sandbox import BubblewrapPool
from arise.types import Capability, CommandResult, Pair, Place, Pool, Rubric, Skill, StopReason, Task, Trajectory
from arise.world.shell_agent import SYSTEM, ShellAgent
from tests.scripted import ScriptedEngine, WordChat

TASK = Task("t", "List the files .")


def attempt(
    answers: Sequence[str],
    tmp_path: Path,
    limits: AgentConfig | None = None,
    finish: str = "stop",
    system: str = SYSTEM,
) -> tuple[Trajectory, ScriptedEngine]:
    (tmp_path / "data.txt").write_text("one\ntwo\n")
    chat = WordChat()
    engine = ScriptedEngine(chat, answers, finish)
    agent = ShellAgent(cast(Engine, engine), chat, limits or AgentConfig(), SamplingConfig())

    async def run() -> Trajectory:
        async with BubblewrapPool(1) as pool:
            sandbox = await pool.open(Place(tmp_path))
            try:
                return await agent.attempt(TASK, sandbox, system, (), "k0/t/0", 0)
            finally:
                await sandbox.close()

    return asyncio.run(run()), engine


def test_commands_run_for_real_and_the_agent_sees_their_output(tmp_path: Path) -> None:
    trajectory, engine = attempt(["$ cat data.txt", "$ cat missing", "$ submit"], tmp_path)
    assert trajectory.stop is StopReason.FINISHED
    first, second, last = trajectory.turns
    assert first.observations[0].text == "one\ntwo"
    assert not first.observations[0].error
    assert second.observations[0].error
    assert last.calls[0].arguments == {"command": "submit"}
    assert "one two <end> <assistant>" in engine.prompts[1]


def test_the_token_record_marks_exactly_what_the_policy_wrote(tmp_path: Path) -> None:
    trajectory, engine = attempt(["$ cat data.txt", "$ submit"], tmp_path)
    (row,) = trajectory.rows
    said = engine.chat.text(row.ids_U[row.generated_U].tolist())
    assert said == "$ cat data.txt <end> $ submit <end>"
    assert np.all(row.logprob_U[row.generated_U] == -0.5)
    assert np.all(row.logprob_U[~row.generated_U] == 0.0)
    assert np.all(row.version_U[row.generated_U] == 3)
    assert np.all(row.version_U[~row.generated_U] == -1)
    assert trajectory.generated_tokens == 7


def test_an_answer_without_a_command_gets_an_error_and_counts_as_a_turn(tmp_path: Path) -> None:
    trajectory, _ = attempt(["I think so .", "$ submit"], tmp_path)
    assert trajectory.turns[0].observations[0].text == NO_COMMAND
    assert trajectory.turns[0].observations[0].error
    assert trajectory.stop is StopReason.FINISHED


@pytest.mark.parametrize(
    ("finish", "stop"), [("length", StopReason.TOKEN_LIMIT), ("context", StopReason.CONTEXT_LIMIT)]
)
def test_a_cut_answer_is_not_run(tmp_path: Path, finish: str, stop: StopReason) -> None:
    trajectory, _ = attempt(["$ touch done"], tmp_path, finish=finish)
    assert trajectory.stop is stop
    assert trajectory.turns[0].calls == ()


def test_a_first_prompt_that_does_not_fit_is_no_failure_of_the_agent(tmp_path: Path) -> None:
    with pytest.raises(PolicyLost, match=r"first prompt of t has \d+ tokens, the model's window is 60: shorten"):
        attempt(["$ submit"], tmp_path, system="word " * 70)


def test_the_turn_limit_ends_an_attempt(tmp_path: Path) -> None:
    trajectory, _ = attempt(["$ true"], tmp_path, AgentConfig(max_turns=3))
    assert trajectory.stop is StopReason.TURN_LIMIT
    assert len(trajectory.turns) == 3


def test_an_observation_that_fills_the_window_ends_the_attempt(tmp_path: Path) -> None:
    trajectory, engine = attempt(["$ seq 200"], tmp_path)
    assert trajectory.stop is StopReason.CONTEXT_LIMIT
    assert len(trajectory.turns) == len(engine.prompts) == 1
    assert len(trajectory.rows[0]) < engine.capabilities().context_length


@pytest.mark.parametrize(
    ("text", "command"),
    [("$ ls", "ls"), ("well\n$ ls -l \n$ pwd", "ls -l"), ("$", None), ("ls", None), ("", None), ("  $ a $ b", "a $ b")],
)
def test_parse_command(text: str, command: str | None) -> None:
    assert parse_command(text) == command


def test_what_the_agent_sees_of_a_result() -> None:
    assert observe(CommandResult("", 0), 10).text == "done"
    assert observe(CommandResult("", 1), 10).text == "error"
    long = observe(CommandResult("x" * 20, 0), 10)
    assert long.text == "x" * 10 + " ... (cut)"
    assert long.truncated
    late = observe(CommandResult("so far", 137, "timeout"), 50)
    assert late.error
    assert late.text == "so far\nerror: ended by the timeout limit"


def pair(number: int, active: bool) -> Pair:
    rubric = Rubric(f"r{number:03d}", "c", "t", Capability.EXECUTION, "a", "r")
    return Pair(rubric, Skill(f"Advice number {number} .", active, revision=number))


def test_exactly_the_active_skills_are_in_the_prompt_that_the_policy_reads(tmp_path: Path) -> None:
    pool = Pool((pair(1, True), pair(2, False), pair(3, True)), 1, 3)
    shown = active_pairs(pool)
    assert [skill.rubric_id for skill in shown_skills(shown)] == ["r001", "r003"]
    assert [skill.revision for skill in shown_skills(shown)] == [1, 3]
    _, engine = attempt(["$ submit"], tmp_path, system=system_prompt(SYSTEM, shown))
    assert "Advice number 1 ." in engine.prompts[0]
    assert "Advice number 3 ." in engine.prompts[0]
    assert "Advice number 2 ." not in engine.prompts[0]


def test_without_skills_the_prompt_is_the_base_prompt() -> None:
    assert system_prompt(SYSTEM, ()) == SYSTEM
    assert HEADING not in SYSTEM
