"""Demonstrations through a harness: a script answers, the harness runs, and rows are what the endpoint would record."""

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from arise.compose.corpora import require_tasks
from arise.compose.demonstrations import conversation_row
from arise.config import Config
from arise.endpoint.exchange import Ask
from arise.endpoint.policy import Policy
from arise.endpoint.rehearsal import Conversation, Rehearsal, Rewritten
from arise.endpoint.rows import export
from arise.endpoint.serving import on_socket
from arise.endpoint.sessions import Session
from arise.engines.formats.generic import GenericFormat
from arise.errors import AriseError
from arise.harnesses.launch import Launcher
from arise.harnesses.rehearse import DONE, ScriptedSpeaker, rehearse
from arise.harnesses.spec import Shell, harness, names
from arise.sandbox import BubblewrapPool
from arise.types import Capabilities, SamplingParams, Segment
from arise.types.chat import FunctionCall, Message, ToolSpec
from arise.world.habits import WorkerHabit
from arise.world.warm_start import Demonstration
from tests.task_folders import write_task
from tests.unit.engines.formats.families import tokenizer_of
from tests.unit.harnesses.test_launch import MINIATURE

BASH = ToolSpec("bash", "Run.")
OPENING = (Message("system", "You work."), Message("user", "Do it."))


def test_a_harness_shows_a_worker_its_own_output_and_ends_when_the_worker_does() -> None:
    seen: list[str | None] = []
    commands = iter(["echo 42 > answer.txt", "cat answer.txt missing.txt"])

    def worker(output: str | None) -> str | None:
        seen.append(output)
        return next(commands, None)

    async def whole() -> Conversation:
        async with on_socket() as endpoint, BubblewrapPool(1, read_only=(str(endpoint.socket.parent),)) as pool:
            sandbox = await pool.open()
            said = await rehearse(Launcher(MINIATURE, endpoint), sandbox, "Write 42.", worker, 4096, 64)
            await sandbox.close()
            return said

    said = asyncio.run(whole())
    assert [message.text for message in said.opening] == ["You work.", "Write 42."]
    assert [tool.name for tool in said.tools] == ["bash"]
    assert seen[0] is None
    assert "42" in str(seen[2])
    assert "No such file" in str(seen[2])
    assert [len(after) for _, after in said.turns] == [1, 1, 0]
    assert said.turns[-1][0] == DONE


class Repeats:
    """An engine that speaks the ids of given turns."""

    def __init__(self, turns: list[list[int]]) -> None:
        self.turns = turns

    def capabilities(self) -> Capabilities:
        return Capabilities(False, False, False, 100_000)

    async def sample(self, prompt_ids: Any, params: SamplingParams, n: int = 1) -> list[Segment]:
        del prompt_ids, params, n
        ids = tuple(self.turns.pop(0))
        return [Segment(ids, (-0.5,) * len(ids), (0,) * len(ids), "", "stop")]


@pytest.mark.parametrize("family", ["qwen3", "chatml"])
def test_a_demonstration_has_the_tokens_that_the_endpoint_records(family: str) -> None:
    """The row of a cloned attempt is token for token the row of the same attempt by the policy."""
    chat = GenericFormat(tokenizer_of(family))
    call = Message("assistant", calls=(FunctionCall("call_00000_0", "bash", {"command": "ls\npwd"}),))
    result = Message("tool", "a.txt\n", call_id="call_00000_0", name="bash")
    said = Conversation((BASH,), OPENING, ((call, (result,)), (DONE, ())))
    shown = Demonstration("Do it.", frozenset({WorkerHabit.LIST}), said, dict.fromkeys(WorkerHabit, 0.0))
    random = np.random.default_rng(3)
    guidance = "Guidance :\n" + "\n".join(f"- {text}" for text in shown.guidance(np.random.default_rng(3)))
    row = conversation_row(chat, shown, random)

    async def recorded() -> Any:
        engine = Repeats([chat.answer(call, [BASH]), chat.answer(DONE, [BASH])])
        session = Session(Policy(engine, chat), guidance=guidance if "- " in guidance else "")
        await session.answer(Ask(OPENING, (BASH,)), b"1")
        await session.answer(Ask((*OPENING, call, result), (BASH,)), b"2")
        return export(session.history).rows[0]

    sampled = asyncio.run(recorded())
    assert row.ids_U.tolist() == sampled.ids_U.tolist()
    assert row.generated_U.tolist() == sampled.generated_U.tolist()


def test_auxiliary_calls_are_answered_separately_and_a_rewritten_history_is_noticed() -> None:
    async def whole() -> None:
        session = Rehearsal(ScriptedSpeaker(lambda _: None, Shell()))
        assert (await session.answer(Ask(OPENING), b"")).reply.text == "ok"
        await session.answer(Ask(OPENING, (BASH,)), b"")
        assert len(session.calls) == 1
        await session.answer(Ask((Message("user", "other"),), (BASH,)), b"")
        with pytest.raises(Rewritten, match="call 2 does not continue"):
            session.conversation()

    asyncio.run(whole())


@pytest.mark.parametrize("name", names())
def test_every_harness_says_how_a_command_is_run_and_work_ends(name: str) -> None:
    shell = harness(name).shell
    speak = ScriptedSpeaker(lambda output: "ls" if output is None else None, shell)
    (call,) = speak(Ask(OPENING, (BASH,))).calls
    assert call.arguments[shell.argument] == "ls"
    last = speak(Ask(OPENING, (BASH,)))
    assert last == DONE or last.calls[0].arguments[shell.argument] == shell.finish != ""


def test_a_task_that_needs_its_own_image_is_refused_with_a_harness_where_no_image_can_run(tmp_path: Path) -> None:
    for split in ("train", "held-out"):
        task = write_task(tmp_path / split / f"a-{split}")
        (task / "environment/Dockerfile").write_text("FROM debian\nRUN apt-get install -y gcc\n")
    config = Config.model_validate(
        {
            "tasks": {"kind": "harbor", "train": str(tmp_path / "train"), "evaluation": str(tmp_path / "held-out")},
            "agent": {"kind": "pi"},
            "sandbox": {"kind": "bubblewrap"},
        }
    )
    with pytest.raises(AriseError, match="Dockerfile"):
        require_tasks(config)
