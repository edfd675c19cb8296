"""The tool-calling agent: calls carried out for real, exact rows, corrections instead of early ends, limits."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from arise.config import SamplingConfig, ToolAgentConfig
from arise.engines.formats.generic import GenericFormat
from arise.ports import Engine, PolicyLost
from arise.rollouts.tool_agent import ToolAgent
from arise.rollouts.tools import shortened
from arise.sandbox import BubblewrapPool
from arise.types import (
    Capabilities,
    FunctionCall,
    Message,
    Place,
    SamplingParams,
    Segment,
    StopReason,
    Task,
    Trajectory,
)
from tests.tool_models import limits
from tests.unit.engines.formats.families import FAMILIES, tokenizer_of

TASK = Task("t", "List the files.")
SYSTEM = "Use the tools."


@dataclass
class Sayings:
    """An engine that says what it is given: texts, or messages written by the format."""

    chat: GenericFormat
    answers: Sequence[str | Message]
    finish: str = "stop"
    window: int = 4096
    prompts: list[list[int]] = field(default_factory=list)
    params: list[SamplingParams] = field(default_factory=list)

    def capabilities(self) -> Capabilities:
        return Capabilities(True, False, False, context_length=self.window)

    async def sample(self, prompt_ids: Sequence[int], params: SamplingParams, n: int = 1) -> list[Segment]:
        answer = self.answers[min(len(self.prompts), len(self.answers) - 1)]
        self.prompts.append(list(prompt_ids))
        self.params.append(params)
        stop = sorted(self.chat.stop_ids)[0]
        ids = (
            self.chat.answer(answer)
            if isinstance(answer, Message)
            else [*self.chat.safe.encode(answer), *([stop] if self.finish == "stop" else [])]
        )
        return [Segment(tuple(ids), (-0.5,) * len(ids), (3,) * len(ids), "", self.finish)] * n


def bash(*commands: str, text: str = "") -> Message:
    """A turn with one call for each command."""
    calls = tuple(FunctionCall(f"call0000{n}", "bash", {"command": command}) for n, command in enumerate(commands))
    return Message("assistant", text, calls=calls)


def call(name: str, **arguments: object) -> Message:
    return Message("assistant", calls=(FunctionCall("call00000", name, arguments),))


def attempt(
    answers: Sequence[str | Message],
    folder: Path,
    settings: ToolAgentConfig | None = None,
    family: str = "qwen3",
    **engine: object,
) -> tuple[Trajectory, Sayings]:
    said = Sayings(GenericFormat(tokenizer_of(family)), answers, **engine)  # type: ignore[arg-type]
    agent = ToolAgent(cast(Engine, said), said.chat, settings or limits(max_turns=8), SamplingConfig())

    async def run() -> Trajectory:
        async with BubblewrapPool(1) as pool:
            sandbox = await pool.open(Place(folder))
            try:
                return await agent.attempt(TASK, sandbox, SYSTEM, (), "k0/t/0", 0)
            finally:
                await sandbox.close()

    return asyncio.run(run()), said


@pytest.mark.parametrize("family", FAMILIES)
def test_a_command_of_several_lines_runs_whole_and_the_row_is_exact(tmp_path: Path, family: str) -> None:
    heredoc = "cat > out.txt <<'E'\none\n\ntwo\nE\nwc -l < out.txt"
    trajectory, engine = attempt([bash(heredoc), "Done."], tmp_path, family=family)
    assert trajectory.stop is StopReason.FINISHED
    assert [turn.calls[0].arguments["command"] for turn in trajectory.turns[:1]] == [heredoc]
    assert trajectory.turns[0].observations[0].text.strip() == "3"
    (row,) = trajectory.rows
    assert row.ids_U[: len(engine.prompts[1])].tolist() == engine.prompts[1]
    assert engine.prompts[1][: len(engine.prompts[0])] == engine.prompts[0]
    said = [*engine.chat.answer(bash(heredoc)), *engine.chat.safe.encode("Done."), sorted(engine.chat.stop_ids)[0]]
    assert row.ids_U[row.generated_U].tolist() == said
    assert np.all(row.logprob_U[row.generated_U] == -0.5)
    assert np.all(row.version_U[~row.generated_U] == -1)


def test_several_calls_of_a_turn_run_in_order_and_have_different_ids(tmp_path: Path) -> None:
    trajectory, _ = attempt([bash("echo one > f", "cat f"), bash("cat f"), "Done."], tmp_path)
    first, second, _ = trajectory.turns
    assert [seen.text for seen in first.observations] == ["(no output)", "one"]
    ids = [call.id for turn in (first, second) for call in turn.calls]
    assert len(set(ids)) == 3
    assert [seen.call_id for seen in first.observations] == ids[:2]


def test_the_other_tools_read_write_and_edit_files(tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text("one\ntwo\nthree\n")
    trajectory, _ = attempt(
        [
            call("write", path="new/a b.txt", content="x = 'it''s'\n$HOME `ls` é\n"),
            call("edit", path="data.txt", old="two\n", new="2\n"),
            call("read", path="data.txt", start=2, count=2),
            bash("cat 'new/a b.txt'"),
            "Done.",
        ],
        tmp_path,
        limits(max_turns=8, tools=("bash", "read", "write", "edit")),
    )
    texts = [turn.observations[0].text for turn in trajectory.turns if turn.observations]
    assert texts == ["(no output)", "(no output)", "2\nthree", "x = 'it''s'\n$HOME `ls` é"]


@pytest.mark.parametrize(
    ("turn", "told"),
    [
        (call("fly", to="home"), "there is no tool 'fly'; the tools are: bash, read, write, edit"),
        (call("bash"), "bash needs the argument 'command', a string"),
        (call("bash", command="ls", cwd="/"), "bash has no argument 'cwd'"),
        (call("read", path="f", start=0), "'start' of read is a whole number from 1"),
        (call("edit", path="data.txt", old="absent", new=""), "occurs 0 times in data.txt, not once: read the file"),
        (call("edit", path="data.txt", old="o", new=""), "occurs 2 times in data.txt, not once: add lines"),
        (call("edit", path="missing", old="a", new=""), "exit code 1"),
        (bash("exit 7"), "exit code 7"),
        (bash("sleep 9"), "ended by the timeout limit"),
        ('<tool_call>\n{"name": "bash", "arguments": {"command": "ls}\n</tool_call>', "could not be read: the call is"),
        ("I would list the files.", "You have not called a tool, so nothing was done."),
        ("Here it is:\n```python\nprint(1)\n```", "The ```python block in it was not run."),
    ],
)
def test_what_cannot_be_done_is_answered_and_the_attempt_goes_on(
    tmp_path: Path, turn: str | Message, told: str
) -> None:
    (tmp_path / "data.txt").write_text("one\ntwo\n")
    settings = limits(max_turns=8, tools=("bash", "read", "write", "edit"), command_seconds=1.0)
    trajectory, engine = attempt([turn, bash("true"), "Done."], tmp_path, settings)
    assert told in trajectory.turns[0].observations[0].text
    assert trajectory.turns[0].observations[0].error
    assert trajectory.stop is StopReason.FINISHED
    assert told.split("(")[0][:20] in engine.chat.safe.decode(engine.prompts[1])
    assert len(trajectory.rows) == 1


def test_a_correction_shows_a_call_as_the_model_writes_it(tmp_path: Path) -> None:
    trajectory, _ = attempt(["<tool_call>ls</tool_call>x<tool_call>", "a", "b", "c"], tmp_path)
    assert (
        '<tool_call>\n{"name": "bash", "arguments": {"command": "ls -la"}}' in trajectory.turns[0].observations[0].text
    )


def test_an_agent_that_never_calls_a_tool_ends_after_three_reminders(tmp_path: Path) -> None:
    trajectory, _ = attempt(["Hello."], tmp_path, limits(max_turns=20))
    assert (trajectory.stop, len(trajectory.turns)) == (StopReason.FINISHED, 4)


def test_a_cut_turn_is_reported_and_its_closing_token_is_not_trained(tmp_path: Path) -> None:
    trajectory, engine = attempt(["A long story"], tmp_path, limits(max_turns=2), finish="length")
    assert "cut" in trajectory.turns[0].observations[0].text
    assert trajectory.stop is StopReason.TURN_LIMIT
    (row,) = trajectory.rows
    assert not set(row.ids_U[row.generated_U].tolist()) & engine.chat.stop_ids


def test_tokens_of_a_turn_and_of_an_attempt_are_limited(tmp_path: Path) -> None:
    settings = limits(max_turns=20, max_tokens=50, attempt_tokens=60)
    trajectory, engine = attempt([bash("true")], tmp_path, settings)
    assert trajectory.stop is StopReason.TOKEN_LIMIT
    assert [params.max_tokens for params in engine.params[:2]] == [50, 60 - len(engine.chat.answer(bash("true")))]


def test_a_full_window_ends_the_attempt_and_a_first_prompt_beyond_it_is_a_fault(tmp_path: Path) -> None:
    first = len(attempt(["Done."], tmp_path)[1].prompts[0])
    trajectory, _ = attempt([bash("seq 500")], tmp_path, window=first + 100)
    assert trajectory.stop is StopReason.CONTEXT_LIMIT
    with pytest.raises(PolicyLost, match=r"raise sampling\.context_length"):
        attempt(["Done."], tmp_path, window=first)


def test_time_is_limited(tmp_path: Path) -> None:
    assert attempt([bash("true")], tmp_path, limits(attempt_seconds=1e-9))[0].stop is StopReason.TIME_LIMIT


def test_a_long_result_keeps_its_beginning_and_its_end(tmp_path: Path) -> None:
    trajectory, _ = attempt([bash("seq 1000"), "Done."], tmp_path, limits(observation_chars=100))
    seen = trajectory.turns[0].observations[0]
    assert seen.truncated
    assert seen.text.startswith("1\n2\n")
    assert seen.text.endswith("\n999\n1000")
    assert shortened("abc", 3) == ("abc", False)


@pytest.mark.parametrize(("reasoning", "rows"), [("keep", 1), ("drop", 2)])
def test_reasoning_is_kept_or_dropped_by_configuration(tmp_path: Path, reasoning: str, rows: int) -> None:
    thought = Message("assistant", "", "first the files", bash("true").calls)
    trajectory, engine = attempt([thought, "Done."], tmp_path, limits(reasoning=reasoning))
    assert trajectory.turns[0].reasoning == "first the files"
    assert len(trajectory.rows) == rows
    assert ("first the files" in engine.chat.safe.decode(engine.prompts[1])) == (reasoning == "keep")
    assert trajectory.generated_tokens == sum(int(row.generated_U.sum()) for row in trajectory.rows)
