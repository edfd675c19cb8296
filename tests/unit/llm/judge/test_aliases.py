"""Control questions never stand in for a rubric, whatever pool is judged and whatever ids it holds."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from arise.evaluation.retention import Retired, as_pool
from arise.evaluation.rubrics import every_pair
from arise.llm.check.cases import read_cases
from arise.llm.judge.evaluation import question
from arise.llm.judge.trace import RenderedTrace
from arise.llm.prompts.prompt import to_json as text_of
from arise.rollouts.assessment import EachRollout, WithWatch
from arise.testing import Ask, FakeLLM, honest
from arise.types import Group, Judgment, Pair, Pool, Skill, Tally, Verdict
from arise.types.codec import to_json
from tests.in_memory_run import InMemoryRun
from tests.unit.llm.builders import TASK, client, judge, pool, rollout, rubric

NUMBERS = {"first": (1, 2, 3, 4), "gaps": (4, 7, 30)}


def truth(rule: str, _ask: Ask | None = None) -> Verdict:
    """Odd habits fail: the opposite of what the first two names of a request used to get."""
    return Verdict.FAIL if int(rule.split("habit ")[1].split()[0]) % 2 else Verdict.PASS


def stored(numbers: Sequence[int]) -> Pool:
    """What an evaluation judges by."""
    found = [rubric(n) for n in numbers]
    return every_pair(InMemoryRun(pairs=[(r.id, r.born, text_of(to_json(r))) for r in found]))


def retired(numbers: Sequence[int]) -> Pool:
    """What retention judges by."""
    return as_pool([Retired(rubric(n), 3, Tally(9, 10), ("t",)) for n in numbers])


def guided(numbers: Sequence[int]) -> Pool:
    """What `arise guidance` judges by."""
    return Pool(tuple(Pair(rubric(n), Skill("Keep it.", True)) for n in numbers), version=1)


def oddly_named(numbers: Sequence[int]) -> Pool:
    """Group-specific criteria, and ids that look like aliases."""
    ids = ("c0a1b2c3", "r001-abcdef", "r002", "proposed")
    rubrics = (replace(rubric(n), id=name) for n, name in zip(numbers, ids, strict=False))
    return Pool(tuple(Pair(one, Skill("")) for one in rubrics), version=1)


def expected(of: Pool) -> dict[str, Verdict]:
    return {one.id: truth(one.rule_text) for one in of.rubrics}


@pytest.mark.parametrize("numbers", NUMBERS.values(), ids=NUMBERS)
@pytest.mark.parametrize("made", [stored, retired, guided, oddly_named])
@pytest.mark.parametrize("per_call", [1, 16])
def test_every_rubric_of_every_pool_gets_its_own_verdict(
    made: Callable[[Sequence[int]], Pool], numbers: Sequence[int], per_call: int
) -> None:
    of = made(numbers)

    async def run() -> Judgment:
        async with FakeLLM(honest(truth)) as fake:
            asks = client(fake)
            found = await judge(fake, asks, per_call=per_call).judge(TASK, rollout(), of)
            await asks.close()
        return found

    assert asyncio.run(run()).verdicts == expected(of)


def test_the_watch_gets_the_verdicts_of_the_retired_rubrics() -> None:
    whole = replace(pool(0), retired=guided((1, 2, 3)).pairs, born=3)

    async def run() -> Group:
        async with FakeLLM(honest(truth)) as fake:
            asks = client(fake)
            judges = judge(fake, asks)
            found = await WithWatch(EachRollout(judges), judges, 1.0, 0).assess(Group(TASK, (rollout(),), 1), whole)
            await asks.close()
        return found

    judgment = asyncio.run(run()).rollouts[0].judgment
    assert judgment is not None
    assert judgment.watched == expected(guided((1, 2, 3)))


@pytest.mark.parametrize("of", [stored((1, 2, 3)), pool(5), oddly_named((1, 2, 3, 4)), read_cases().pool])
@pytest.mark.parametrize("diagnostics", [True, False])
def test_names_are_disjoint_and_reveal_nothing(of: Pool, diagnostics: bool) -> None:
    places = set()
    for number in range(40):
        trace = RenderedTrace({"trace": number}, ())
        asked = question(trace, 2, of.rubrics[:2], of, diagnostics=diagnostics, canary=True, salt="s")
        birds = {bird.alias for bird in asked.canaries}
        assert len(birds) == 2
        assert birds.isdisjoint(asked.pool_aliases)
        assert len(asked.aliases) == 2
        assert set(asked.pool_aliases.values()) == {one.id for one in of.rubrics}
        forms = {name.partition("-")[2] for name in (*birds, *asked.pool_aliases)}
        assert len(forms) == 1
        places |= {int(alias[1:4]) for alias in birds}
    assert places == {1, 2, 3, 4}, "a control question may stand at any place of the list"
