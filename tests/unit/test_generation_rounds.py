"""A scheduled update: rounds of generation, and what is kept of everything that was not taken."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from arise.baselines.uniform import Uniform
from arise.coevolution import CoEvolution, Update
from arise.config.pool import EvidenceConfig, PoolConfig
from arise.state import State
from arise.types import (
    EvidenceRecord,
    GenerationRecord,
    Need,
    Pair,
    Pool,
    RefinementRecord,
    Reflection,
    Rejection,
    Rewrite,
    Selection,
    ShownSkill,
    Skill,
    Verdict,
)
from tests.builders import a_task
from tests.unit.llm.builders import rubric
from tests.unit.llm.reflection.test_reflector import ITEM
from tests.unit.text.test_rules import PROPOSAL, SKILL

REFUSED = Reflection((), (Rejection("A criterion.", "lacks a fail condition"),), refused=1)
NOTHING = Reflection((), (Rejection("", "unavailable: 503"),))


class Scripted:
    """A reflector with one answer a round."""

    def __init__(self, *rounds: Reflection, rewrite: Rewrite | None = None) -> None:
        self.rounds, self.asked, self.answer = rounds, 0, rewrite or Rewrite(None, "none")

    async def propose(
        self, evidence: Selection, avoid: Sequence[Pair], max_items: int, round_number: int
    ) -> Reflection:
        del evidence, avoid, max_items
        self.asked += 1
        return self.rounds[round_number]

    async def rewrite(self, pair: Pair, failures: Sequence[RefinementRecord]) -> Rewrite:
        del pair, failures
        return self.answer


def updated(reflector: Scripted, pool: Pool | None = None) -> Update:
    view = GenerationRecord("e0009-00-00", 9, 1, (), "", (ITEM,), (), (ShownSkill("r001", 0),), (), 8, 1)
    record = EvidenceRecord(view, "t", "k9/t/0", (("r001", Verdict.FAIL),), None)
    state = State(Uniform([a_task()], np.random.default_rng(0)), 10, pool or Pool(), [record])
    return asyncio.run(CoEvolution(reflector, PoolConfig(), EvidenceConfig(), seed=0).update(state, 10))


def test_a_round_of_rejections_does_not_end_generation() -> None:
    reflector = Scripted(REFUSED, Reflection((PROPOSAL,)), Reflection())
    update = updated(reflector)
    assert update.proposals == (PROPOSAL,)
    assert update.rejections == REFUSED.rejections
    assert reflector.asked == 3


def test_generation_ends_where_nothing_is_put_forward() -> None:
    for last in (Reflection(), NOTHING):
        reflector = Scripted(last, REFUSED, REFUSED)
        assert updated(reflector).rejections == last.rejections
        assert reflector.asked == 1
    reflector = Scripted(REFUSED, REFUSED, REFUSED)
    assert len(updated(reflector).rejections) == 3, "the rounds are bounded"


def test_rejected_rewrites_are_kept_with_the_rest() -> None:
    refused = Rejection("Raise the reward.", "rewrite of r001: contains reward words")
    pool = Pool((Pair(rubric(1), Skill("Keep it.", active=True)),), 1, 1)
    update = updated(Scripted(Reflection(), rewrite=Rewrite(SKILL, "", (refused,))), pool)
    assert update.rejections == (refused,)
    assert update.evolution.pool.pairs[0].skill == replace(
        pool.pairs[0].skill, text=SKILL, revision=1, need=Need(10, 0, 1), earlier=("Keep it.",)
    )
