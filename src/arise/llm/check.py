"""Judge check: agreement with itself, with another judge and with labels, the gain of votes, and advice."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from arise.llm.majority import merged
from arise.ports import Judge
from arise.text.numbers import percent
from arise.types import Judgment, Pool, Rollout, Task, Verdict
from arise.types.absence import kind_of_absence

VALID, FLIPS, AGREES = 0.95, 0.05, 0.8
"""What is wanted of a judge: verdicts that can be had, at most so many flips, agreement with labels."""
CONFIRMED = 0.6
"""With a second vote, so many verdicts must be left."""

Labels = Mapping[tuple[str, str], Verdict]
"""Known answers by (trajectory id, rubric id)."""
Cases = Sequence[tuple[Task, Rollout]]


class Advice(StrEnum):
    """What a check ends with."""

    FIT = "fit to judge"
    CONFIRM = "fit with confirmation by a second vote (judge.votes = 2)"
    UNFIT = "not fit to judge"


@dataclass(frozen=True)
class RubricCheck:
    """One rubric over all cases and repeats."""

    rubric_id: str
    verdicts: int
    absent: int
    flips: int


@dataclass(frozen=True)
class Votes:
    """What a number of votes gives: the share of verdicts that are left and their agreement with the known answers."""

    count: int
    valid: float
    agreement: float | None


@dataclass(frozen=True)
class JudgeCheck:
    """Result of a check; an agreement is None if nothing could be compared."""

    judge: str
    cases: int
    repeats: int
    rubrics: tuple[RubricCheck, ...]
    with_reference: float | None
    with_labels: float | None
    absent_reasons: tuple[tuple[str, int], ...]
    votes: tuple[Votes, ...] = ()
    """One vote, and as many as were asked for; measured with labels, else with the reference."""
    majorities: Labels = field(default_factory=dict, repr=False)

    @property
    def verdicts(self) -> int:
        return sum(rubric.verdicts for rubric in self.rubrics)

    @property
    def valid_rate(self) -> float:
        """Share of valid verdicts among those requested."""
        asked = self.verdicts + sum(rubric.absent for rubric in self.rubrics)
        return self.verdicts / asked if asked else 0.0

    @property
    def flip_rate(self) -> float | None:
        """Share of verdicts that differ from the majority of their repeats; None without a verdict or a repeat."""
        if self.repeats < 2 or not self.verdicts:
            return None
        return sum(rubric.flips for rubric in self.rubrics) / self.verdicts

    @property
    def doubts(self) -> list[str]:
        """List the concerns about this judge; the offline analyst is a limited reference and decides nothing."""
        found = []
        if self.valid_rate < VALID:
            found.append(f"{percent(self.valid_rate)} of verdicts are valid, {percent(VALID)} are needed")
        if self.flip_rate is not None and self.flip_rate > FLIPS:
            found.append(f"{percent(self.flip_rate)} of verdicts flip, at most {percent(FLIPS)} are needed")
        if self.with_labels is not None and self.with_labels < AGREES:
            found.append(f"{percent(self.with_labels)} agree with the labels, {percent(AGREES)} are needed")
        return found

    @property
    def advice(self) -> Advice:
        """Say whether to use this judge: as it is, with a second vote, or not at all."""
        if not self.doubts:
            return Advice.FIT
        confirmed = next((votes for votes in self.votes if votes.count == 2), None)
        if confirmed is None or confirmed.valid < CONFIRMED:
            return Advice.UNFIT
        agrees = confirmed.agreement is None or confirmed.agreement >= AGREES
        return Advice.CONFIRM if agrees else Advice.UNFIT

    def agreement_with(self, other: "JudgeCheck") -> float | None:
        """Return the share of majorities that two judges have in common."""
        return _agreement(self.majorities, other.majorities)


async def check_judge(
    judge_of: Callable[[int], Judge],
    cases: Cases,
    pool: Pool,
    repeats: int,
    *,
    reference: Judge | None = None,
    labels: Labels | None = None,
    votes: int = 2,
    progress: Callable[[int], None] = lambda _done: None,
) -> JudgeCheck:
    """Judge every case `repeats` times without reusing replies, and compare; `progress` gets the number judged."""
    judges = [judge_of(repeat) for repeat in range(repeats)]
    counted = _Counter(progress)
    rounds = await asyncio.gather(*(_judge_all(judge, cases, pool, counted) for judge in judges))
    majorities = _majorities(rounds, cases, pool)
    truth = await _judge_all(reference, cases, pool) if reference else []
    expected = {
        (rollout.trajectory.id, rubric_id): verdict
        for (_, rollout), judgment in zip(cases, truth, strict=bool(truth))
        for rubric_id, verdict in judgment.verdicts.items()
    }
    known = labels or expected
    counts = sorted({1, 2, votes} & set(range(1, repeats + 1)))
    return JudgeCheck(
        judge=judges[0].identity,
        cases=len(cases),
        repeats=repeats,
        rubrics=tuple(_rubric_check(rubric.id, rounds, cases, majorities) for rubric in pool.rubrics),
        with_reference=_agreement(majorities, expected) if reference else None,
        with_labels=_agreement(majorities, labels) if labels else None,
        absent_reasons=tuple(_reasons(rounds).most_common(5)),
        votes=tuple(_voted(rounds, cases, pool, count, known) for count in counts),
        majorities=majorities,
    )


class _Counter:
    """Counts judged cases over all repeats."""

    def __init__(self, progress: Callable[[int], None]) -> None:
        self._progress, self._done = progress, 0

    def __call__(self) -> None:
        self._done += 1
        self._progress(self._done)


async def _judge_all(
    judge: Judge, cases: Cases, pool: Pool, counted: Callable[[], None] = lambda: None
) -> list[Judgment]:
    async def one(task: Task, rollout: Rollout) -> Judgment:
        judgment = await judge.judge(task, rollout, pool)
        counted()
        return judgment

    return list(await asyncio.gather(*(one(task, rollout) for task, rollout in cases)))


def _voted(rounds: Sequence[Sequence[Judgment]], cases: Cases, pool: Pool, count: int, known: Labels) -> Votes:
    """Return what `count` votes give, over all ways to take them from neighbouring rounds."""
    given: list[float] = []
    agreed: list[float] = []
    for first in range(len(rounds) - count + 1):
        found = {
            (rollout.trajectory.id, rubric_id): verdict
            for number, (_, rollout) in enumerate(cases)
            for rubric_id, verdict in merged(
                [judged[number] for judged in rounds[first : first + count]], pool, ""
            ).verdicts.items()
        }
        given.append(len(found) / (len(cases) * len(pool)))
        agreement = _agreement(found, known)
        agreed += [] if agreement is None else [agreement]
    return Votes(count, sum(given) / len(given), sum(agreed) / len(agreed) if agreed else None)


def _majorities(rounds: Sequence[Sequence[Judgment]], cases: Cases, pool: Pool) -> dict[tuple[str, str], Verdict]:
    found = {}
    for number, (_, rollout) in enumerate(cases):
        for rubric in pool.rubrics:
            given = [judged[number].verdicts[rubric.id] for judged in rounds if rubric.id in judged[number].verdicts]
            if given:
                found[rollout.trajectory.id, rubric.id] = Counter(given).most_common(1)[0][0]
    return found


def _rubric_check(
    rubric_id: str,
    rounds: Sequence[Sequence[Judgment]],
    cases: Cases,
    majorities: Mapping[tuple[str, str], Verdict],
) -> RubricCheck:
    verdicts = absent = flips = 0
    for judged in rounds:
        for (_, rollout), judgment in zip(cases, judged, strict=True):
            verdict = judgment.verdicts.get(rubric_id)
            absent += verdict is None
            verdicts += verdict is not None
            flips += verdict is not None and verdict is not majorities[rollout.trajectory.id, rubric_id]
    return RubricCheck(rubric_id, verdicts, absent, flips)


def _agreement(found: Labels, expected: Labels) -> float | None:
    shared = found.keys() & expected.keys()
    return sum(found[key] is expected[key] for key in shared) / len(shared) if shared else None


def _reasons(rounds: Sequence[Sequence[Judgment]]) -> Counter[str]:
    return Counter(
        kind_of_absence(reason) for judged in rounds for judgment in judged for reason in judgment.absent.values()
    )
