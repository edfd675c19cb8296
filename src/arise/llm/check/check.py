"""Judge check: agreement with itself, with another judge and with labels, the gain of votes, and advice."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from arise.llm.check.confusion import Answers, Confusion, confusion
from arise.llm.check.fitness import Fitness, Votes, fitness
from arise.llm.judge.majority import merged
from arise.ports import Judge
from arise.types import Judgment, Pool, Rollout, Task, Verdict
from arise.types.absence import kind_of_absence

Cases = Sequence[tuple[Task, Rollout]]


@dataclass(frozen=True)
class RubricCheck:
    """One rubric over all cases and repeats."""

    rubric_id: str
    verdicts: int
    absent: int
    flips: int


@dataclass(frozen=True)
class JudgeCheck:
    """Result of a check; a comparison is None if there was nothing to compare with."""

    judge: str
    cases: int
    repeats: int
    rubrics: tuple[RubricCheck, ...]
    with_reference: Confusion | None
    """Majorities of the repeats against the offline analyst's verdicts."""
    with_labels: Confusion | None
    """Majorities of the repeats against labels."""
    absent_reasons: tuple[tuple[str, int], ...]
    votes: tuple[Votes, ...] = ()
    """Results with one vote and with the requested number of votes, measured against labels, else the reference."""
    majorities: Answers = field(default_factory=dict, repr=False)
    known: Answers = field(default_factory=dict, repr=False)
    """The labels or, without labels, the reference's verdicts."""

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
    def only(self) -> Verdict | None:
        """Return the judge's verdict if it gave the same one every time, else None."""
        given = set(self.majorities.values())
        return given.pop() if len(given) == 1 else None

    @property
    def known_by(self) -> Confusion:
        """Return the comparison of one vote with the known answers."""
        return next((votes.known for votes in self.votes if votes.count == 1), Confusion({}))

    @property
    def fitness(self) -> Fitness:
        """Say whether to use this judge: as it is, with a second vote, or not at all."""
        labelled = self.with_labels is not None
        return fitness(self.valid_rate, self.flip_rate, self.votes, labelled=labelled, only=self.only)

    def beside(self, other: "JudgeCheck") -> Confusion:
        """Return the confusion of two judges' majorities, with this judge's as the known answers."""
        return confusion([other.majorities], self.majorities)

    def where_they_differ(self, other: "JudgeCheck") -> tuple[int, int, int]:
        """Return the number of known answers on which two judges differ, and how often each of them is right."""
        shared = self.majorities.keys() & other.majorities.keys() & self.known.keys()
        apart = [key for key in shared if self.majorities[key] is not other.majorities[key]]
        mine = sum(self.majorities[key] is self.known[key] for key in apart)
        return len(apart), mine, sum(other.majorities[key] is self.known[key] for key in apart)


async def check_judge(
    judge_of: Callable[[int], Judge],
    cases: Cases,
    pool: Pool,
    repeats: int,
    *,
    reference: Judge | None = None,
    labels: Answers | None = None,
    votes: int = 2,
    progress: Callable[[int], None] = lambda _done: None,
) -> JudgeCheck:
    """Judge every case `repeats` times without reusing replies, and compare; `progress` receives the number judged."""
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
        with_reference=confusion([majorities], expected) if reference else None,
        with_labels=confusion([majorities], labels) if labels else None,
        absent_reasons=tuple(_reasons(rounds).most_common(5)),
        votes=tuple(_voted(rounds, cases, pool, count, known) for count in counts),
        majorities=majorities,
        known=known,
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


def _voted(rounds: Sequence[Sequence[Judgment]], cases: Cases, pool: Pool, count: int, known: Answers) -> Votes:
    """Return the result of `count` votes, over all ways to take them from consecutive rounds."""
    given = [
        {
            (rollout.trajectory.id, rubric_id): verdict
            for number, (_, rollout) in enumerate(cases)
            for rubric_id, verdict in merged(
                [judged[number] for judged in rounds[first : first + count]], pool, ""
            ).verdicts.items()
        }
        for first in range(len(rounds) - count + 1)
    ]
    asked = len(given) * len(cases) * len(pool)
    return Votes(count, sum(map(len, given)) / asked, confusion(given, known))


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


def _reasons(rounds: Sequence[Sequence[Judgment]]) -> Counter[str]:
    return Counter(
        kind_of_absence(reason) for judged in rounds for judgment in judged for reason in judgment.absent.values()
    )
