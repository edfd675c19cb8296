"""100 MB, 20,000 turns, NULs, lone surrogates and ANSI codes: judged over HTTP in bounded memory."""

import asyncio
import tracemalloc
from collections.abc import Callable

import pytest

from arise.testing import Ask, FakeLLM, honest
from arise.types import Judgment, Observation, Rollout, StopReason, ToolCall, Trajectory, Turn, Verdict
from tests.unit.llm.builders import TASK, judge, pool

HOSTILE = "row \0 \x1b[31mred\x1b[0m \ud800 \x1b]0;title\x07 \u202e\n"


def passes(_rule: str, _ask: Ask) -> Verdict:
    return Verdict.PASS


def heavy() -> tuple[Turn, ...]:
    """Ten turns of ten million characters, each of them two bytes in memory because of the surrogates."""
    text = HOSTILE * (10_000_000 // len(HOSTILE))
    return tuple(Turn("look", (ToolCall("bash", {"command": "cat log"}),), (Observation(text),)) for _ in range(10))


def long() -> tuple[Turn, ...]:
    return tuple(
        Turn(f"turn {i}", (ToolCall("bash", {"command": HOSTILE}),), (Observation("ok"),)) for i in range(20_000)
    )


def one_line() -> tuple[Turn, ...]:
    return (Turn("x" * 100_000_000),)


@pytest.mark.parametrize(("turns", "cut"), [(heavy, "characters were cut"), (long, "turns were left out"),
                                            (one_line, "characters were cut")])  # fmt: skip
def test_judged_in_bounded_memory(turns: Callable[[], tuple[Turn, ...]], cut: str) -> None:
    rollout = Rollout(Trajectory("huge", TASK.id, turns(), StopReason.FINISHED), 0.0, False)

    async def measured() -> tuple[Judgment, FakeLLM, int]:
        async with FakeLLM(honest(passes)) as fake:
            tracemalloc.start()
            judgment = await judge(fake).judge(TASK, rollout, pool(3))
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            return judgment, fake, peak

    judgment, fake, peak = asyncio.run(measured())
    assert dict(judgment.verdicts) == dict.fromkeys(("r001", "r002", "r003"), Verdict.PASS)
    assert any(cut in note for note in judgment.notes)
    assert peak < 60_000_000, "the excerpt and its request, never a copy of the trajectory"
    sent = fake.asks[0].user
    assert len(sent) < 131_072 * 3
    assert not {"\0", "\x1b", "\ud800"} & set(str(fake.asks[0].data["sample_result"]))
