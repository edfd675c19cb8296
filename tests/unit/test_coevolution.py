"""A scheduled update: what decides, what the reflector is told, and how a retired pair comes back."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from arise.analyst import OfflineReflector
from arise.baselines.uniform import Uniform
from arise.coevolution import CoEvolution, Update
from arise.config.pool import EvidenceConfig, PoolConfig, WatchConfig
from arise.method.evidence import records_of
from arise.state import State
from arise.types import (
    EvidenceRecord,
    GenerationRecord,
    Group,
    Pair,
    Pool,
    PoolEvent,
    Proposal,
    RefinementRecord,
    Return,
    Rewrite,
    Selection,
    ShownSkill,
)
from arise.types import Reflection as Reflected
from arise.types.codec import to_json
from tests.builders import FAIL, PASS, a_diagnostic, a_pair, a_proposal, a_rollout, a_task
from tests.unit.analyst.test_reflector import BLIND, CHECKED, NO_CHECK, record

LIMITS = PoolConfig(update_every=2, reopen_issues=2)
WINDOW = EvidenceConfig(window=4)


@dataclass
class Scripted:
    """Answers each round with the next of `rounds`, and keeps what it was told."""

    rounds: list[Reflected]
    told: list[list[Pair]] = field(default_factory=list)
    left: list[int] = field(default_factory=list)

    async def propose(self, evidence: Selection, avoid: Sequence[Pair], max_items: int, round_number: int) -> Reflected:
        del evidence
        self.told.append(list(avoid))
        self.left.append(max_items)
        return self.rounds[round_number] if round_number < len(self.rounds) else Reflected()

    async def rewrite(self, pair: Pair, failures: Sequence[RefinementRecord]) -> Rewrite:
        del failures
        return Rewrite(f"{pair.skill.text}!")


def a_state(pool: Pool, evidence: list[EvidenceRecord]) -> State:
    return State(Uniform([a_task()], np.random.default_rng(0)), 8, pool, evidence)


def diagnosed(*iterations: int) -> list[EvidenceRecord]:
    """One record with an issue for each iteration: e0007-00-00 is of iteration 7."""
    groups = [Group(a_task(), (a_rollout(0, {}, diagnostic=a_diagnostic()),), 1)]
    return [found for k in iterations for found in records_of(k, groups)]


def updated(reflector: Scripted, state: State, limits: PoolConfig = LIMITS, watch: WatchConfig | None = None) -> Update:
    return asyncio.run(CoEvolution(reflector, limits, WINDOW, 0, watch=watch).update(state, 8))


AWAY = replace(a_pair("r001", revision=1), retired=6)
POOL = Pool((a_pair("r002"),), 3, 2, (AWAY,))


def again(*refs: str) -> Reflected:
    return Reflected(returns=(Return("r001", replace(a_proposal("again"), issue_refs=refs)),))


def test_generation_sees_retired_pairs_and_when_they_were_retired() -> None:
    reflector = Scripted([])
    updated(reflector, a_state(POOL, diagnosed(7)))
    assert reflector.told == [[a_pair("r002"), AWAY]]


def test_fresh_issues_reopen_a_retired_pair_under_its_own_id() -> None:
    reflector = Scripted([again("e0006-00-00", "e0007-00-00")])
    found = updated(reflector, a_state(POOL, diagnosed(5, 6, 7)))
    note = "missing in 2 records since its retirement: e0006-00-00, e0007-00-00"
    assert found.evolution.events == (PoolEvent(8, "r001", "reopen", 0, 0, 1, note),)
    assert found.evolution.pool == Pool((a_pair("r002"), a_pair("r001", revision=1)), 4, 2, ())
    assert (found.proposals, found.rejections) == ((), ())
    assert reflector.told[1] == [a_pair("r002"), a_pair("r001", revision=1)], "it is in the pool again"
    assert reflector.left == [8, 7]


def test_issues_of_before_its_retirement_reopen_nothing() -> None:
    found = updated(Scripted([again("e0004-00-00", "e0005-00-00", "e0006-00-00")]), a_state(POOL, diagnosed(4, 5, 6)))
    assert (found.evolution.events, found.evolution.pool) == ((), POOL)
    (rejection,) = found.rejections
    assert rejection.reason.startswith("repeats r001, retired after iteration 6: 1 of the records it cites")


def judged(guided: str, alone: str) -> list[EvidenceRecord]:
    """Verdicts on r001 of two iterations, of rollouts that saw its skill and of others: a letter each."""
    rollouts = [
        a_rollout(j, {"r001": PASS if y == "1" else FAIL}, shown=[ShownSkill("r001", 1)]) for j, y in enumerate(guided)
    ]
    rollouts += [a_rollout(9 + j, {"r001": PASS if y == "1" else FAIL}) for j, y in enumerate(alone)]
    return records_of(7, [Group(a_task(), tuple(rollouts), len(rollouts))])


def test_the_rate_that_decides_is_a_setting_and_both_are_recorded() -> None:
    pool = Pool((a_pair("r001", active=True, revision=1),), 3, 1)
    evidence = judged("1110", "1000")
    hidden = updated(Scripted([]), a_state(pool, evidence))
    assert hidden.evolution.events == (PoolEvent(8, "r001", "hide", 4, 8, 1, "", 1, 4),)
    refined = updated(Scripted([]), a_state(pool, evidence), PoolConfig(update_every=2, rate="unguided"))
    assert refined.evolution.events == (PoolEvent(8, "r001", "refine", 4, 8, 2, "", 1, 4),)
    (pair,) = refined.evolution.pool.pairs
    assert (pair.skill.text, pair.skill.earlier) == ("skill r001!", ("skill r001",))


def test_the_watch_reopens_with_its_counts() -> None:
    found = updated(
        Scripted([]), a_state(Pool((), 3, 1, (AWAY,)), judged("", "1000")), watch=WatchConfig(min_evaluations=4)
    )
    assert found.evolution.events == (PoolEvent(8, "r001", "reopen", 1, 4, 1, "", 1, 4),)


def test_retired_pairs_of_an_earlier_version_count_as_retired_now() -> None:
    state = a_state(POOL, [])
    saved = state.to_dict() | {"pool": to_json(Pool((), 3, 1, (a_pair("r001"), AWAY)))}
    for pair in saved["pool"]["retired"]:
        del pair["retired"], pair["skill"]["earlier"]
    saved["pool"]["retired"][1]["retired"] = 6
    state.restore(saved)
    assert [pair.retired for pair in state.pool.retired] == [8, 6]


def analysed(steps_of: Sequence[tuple[int, tuple[str, ...]]]) -> list[EvidenceRecord]:
    """Records as the offline judge makes them, each of the given iteration."""
    found = []
    for n, (iteration, steps) in enumerate(steps_of):
        view: GenerationRecord = replace(record(f"e{n}", *steps), iteration=iteration)
        found.append(EvidenceRecord(view, "x1", f"t{n}", (), None))
    return found


def test_a_mastered_behaviour_of_the_offline_analyst_is_not_born_again_but_comes_back_when_it_falls() -> None:
    def evolved(state: State) -> Update:
        return asyncio.run(CoEvolution(OfflineReflector(), LIMITS, WINDOW, 0).update(state, 8))

    mixed = [(7, NO_CHECK), (7, NO_CHECK), (7, CHECKED), (7, BLIND)]
    born = evolved(a_state(Pool(), analysed(mixed))).evolution.pool
    checks = next(pair for pair in born.pairs if "check" in pair.rubric.criteria_text)
    away = replace(checks, retired=6)
    words = checks.rubric.criteria_text
    state = a_state(Pool((), 1, born.born, (away,)), analysed(mixed))
    back = evolved(state).evolution
    assert [(event.kind, event.rubric_id) for event in back.events if event.kind == "reopen"] == [
        ("reopen", checks.rubric.id)
    ]
    assert words not in [pair.rubric.criteria_text for pair in back.pool.pairs if pair.rubric.id != checks.rubric.id]

    rare = [(7, NO_CHECK), (7, NO_CHECK), *[(7, CHECKED)] * 6]
    kept = evolved(a_state(Pool((), 1, born.born, (away,)), analysed(rare)))
    assert words not in [pair.rubric.criteria_text for pair in kept.evolution.pool.pairs]
    reasons = {rejection.text: rejection.reason for rejection in kept.rejections}
    assert (
        reasons[words]
        == f"mastered: {checks.rubric.id} retired after iteration 6, missing in 2 of 8 records since then"
    )

    stale = evolved(a_state(Pool((), 1, born.born, (away,)), analysed([(5, steps) for _, steps in mixed])))
    assert words not in [pair.rubric.criteria_text for pair in stale.evolution.pool.pairs]


def test_a_proposal_takes_room_beside_returns() -> None:
    new = Proposal(**{**vars(a_proposal("new")), "issue_refs": ("e0007-00-00",)})
    both = replace(again("e0006-00-00", "e0007-00-00"), proposals=(new,))
    limits = PoolConfig(update_every=2, reopen_issues=2, max_pairs=3)
    found = updated(Scripted([both]), a_state(POOL, diagnosed(6, 7)), limits)
    assert [rubric.id for rubric in found.evolution.pool.rubrics] == ["r002", "r003", "r001"]
