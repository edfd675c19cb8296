"""Count verdicts of rollouts and attempts, with and without the rubric's skill in the prompt."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from arise.run.pool_rows import VerdictCount
from arise.types import Group, Tally, Verdict

KINDS = ("pass", "fail", "not_applicable", "absent")


class VerdictKinds(NamedTuple):
    """The number of verdicts of each kind: `VerdictKinds(3, 1, 2, 0)`."""

    passes: int = 0
    fails: int = 0
    not_applicable: int = 0
    absent: int = 0

    @property
    def tally(self) -> Tally:
        return Tally(self.passes, self.passes + self.fails)

    @property
    def given(self) -> int:
        return self.passes + self.fails + self.not_applicable


class Guided(NamedTuple):
    """Passes among applicable verdicts of rollouts that saw the rubric's skill, and of those that did not."""

    guided: Tally = Tally()
    unguided: Tally = Tally()

    @property
    def all(self) -> Tally:
        return self.guided.plus(self.unguided)


def kinds_by_rubric(groups: Iterable[Group]) -> dict[tuple[str, bool], VerdictKinds]:
    """Count the verdicts of rollouts by (rubric, whether its skill was shown to the rollout)."""
    counts: dict[tuple[str, bool], Counter[str]] = defaultdict(Counter)
    for rollout in (rollout for group in groups for rollout in group.rollouts):
        if rollout.judgment is None:
            continue
        shown = {skill.rubric_id for skill in rollout.trajectory.shown_skills}
        for rubric_id, verdict in rollout.judgment.verdicts.items():
            counts[rubric_id, rubric_id in shown][verdict.value] += 1
        for rubric_id in rollout.judgment.absent:
            counts[rubric_id, rubric_id in shown]["absent"] += 1
    return {key: VerdictKinds(*(count[kind] for kind in KINDS)) for key, count in counts.items()}


def by_guidance(counts: Mapping[tuple[str, bool], VerdictKinds]) -> Guided:
    """Sum the counts of all rubrics, with guided and unguided separate."""
    sums = {True: Tally(), False: Tally()}
    for (_, shown), kinds in counts.items():
        sums[shown] = sums[shown].plus(kinds.tally)
    return Guided(sums[True], sums[False])


def guided_counts(counts: Iterable[VerdictCount]) -> Guided:
    """Sum rows of stored counts, with guided and unguided separate."""
    sums = {True: Tally(), False: Tally()}
    for count in counts:
        shown = bool(count.shown)
        sums[shown] = sums[shown].plus(Tally(count.passes, count.evaluations))
    return Guided(sums[True], sums[False])


def counts_by_rubric(counts: Iterable[VerdictCount]) -> dict[str, list[VerdictCount]]:
    """Group the rows by rubric."""
    found: dict[str, list[VerdictCount]] = defaultdict(list)
    for count in counts:
        found[count.rubric_id].append(count)
    return found


def judged(verdicts: Iterable[Mapping[str, Any]]) -> dict[str, Tally]:
    """Count the verdicts of attempts, given as one mapping from rubric to verdict per attempt."""
    items = [item for given in verdicts for item in given.items() if item[1] != Verdict.NOT_APPLICABLE]
    return tallies([(rubric_id, verdict == Verdict.PASS) for rubric_id, verdict in items])


def watched(groups: Iterable[Group]) -> Tally:
    """Count the verdicts on retired rubrics that are still being judged."""
    found = [rollout.judgment for group in groups for rollout in group.rollouts if rollout.judgment]
    counted = judged(judgment.watched for judgment in found).values()
    return Tally(sum(tally.passes for tally in counted), sum(tally.evaluations for tally in counted))


def tallies(outcomes: Sequence[tuple[Any, Any]]) -> dict[Any, Tally]:
    """Count passes and evaluations by key; an outcome of None adds the key but no evaluation."""
    found: dict[Any, Tally] = {}
    for key, passed in sorted(outcomes, key=lambda outcome: outcome[0]):
        found[key] = found.get(key, Tally()).plus(Tally(bool(passed), passed is not None))
    return found
