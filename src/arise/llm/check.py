"""Judge check: agreement with itself over repeats, with another judge and with labels, and its cost."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from arise.ports import Judge
from arise.text.numbers import percent
from arise.types import Judgment, Pool, Rollout, Task, Verdict

VALID, FLIPS, AGREES = 0.95, 0.05, 0.8
"""What is wanted of a judge: verdicts that can be had, at most so many flips, agreement with labels."""

Labels = Mapping[tuple[str, str], Verdict]
"""Known answers by (trajectory id, rubric id)."""


@dataclass(frozen=True)
class RubricCheck:
    """One rubric over all cases and repeats."""

    rubric_id: str
    verdicts: int
    absent: int
    flips: int


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
        """Share of verdicts that differ from the majority of their repeats; None without a verdict."""
        return sum(rubric.flips for rubric in self.rubrics) / self.verdicts if self.verdicts else None

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


async def check_judge(
    judge_of: Callable[[int], Judge],
    cases: Sequence[tuple[Task, Rollout]],
    pool: Pool,
    repeats: int,
    *,
    reference: Judge | None = None,
    labels: Labels | None = None,
) -> JudgeCheck:
    """Judge every case `repeats` times without reusing replies, and compare."""
    judges = [judge_of(repeat) for repeat in range(repeats)]
    rounds = await asyncio.gather(*(_judge_all(judge, cases, pool) for judge in judges))
    majorities = _majorities(rounds, cases, pool)
    truth = await _judge_all(reference, cases, pool) if reference else []
    expected = {
        (rollout.trajectory.id, rubric_id): verdict
        for (_, rollout), judgment in zip(cases, truth, strict=bool(truth))
        for rubric_id, verdict in judgment.verdicts.items()
    }
    return JudgeCheck(
        judge=judges[0].identity,
        cases=len(cases),
        repeats=repeats,
        rubrics=tuple(_rubric_check(rubric.id, rounds, cases, majorities) for rubric in pool.rubrics),
        with_reference=_agreement(majorities, expected) if reference else None,
        with_labels=_agreement(majorities, labels) if labels else None,
        absent_reasons=tuple(_reasons(rounds).most_common(5)),
    )


async def _judge_all(judge: Judge, cases: Sequence[tuple[Task, Rollout]], pool: Pool) -> list[Judgment]:
    return list(await asyncio.gather(*(judge.judge(task, rollout, pool) for task, rollout in cases)))


def _majorities(
    rounds: Sequence[Sequence[Judgment]], cases: Sequence[tuple[Task, Rollout]], pool: Pool
) -> dict[tuple[str, str], Verdict]:
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
    cases: Sequence[tuple[Task, Rollout]],
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


def _agreement(found: Mapping[tuple[str, str], Verdict], expected: Labels) -> float | None:
    shared = found.keys() & expected.keys()
    return sum(found[key] is expected[key] for key in shared) / len(shared) if shared else None


def _reasons(rounds: Sequence[Sequence[Judgment]]) -> Counter[str]:
    return Counter(
        reason.partition(":")[0] for judged in rounds for judgment in judged for reason in judgment.absent.values()
    )
