"""Compare two sets of attempts by task: pass rates and behaviours, with tests of the differences."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from arise.analyze.behaviours import AnalysedAttempt, Behaviour
from arise.analyze.statistics import Rate, benjamini_hochberg, detectable_difference, mcnemar, paired_interval

SIGNIFICANT = 0.05
LEAST_PAIRS = 5
"""Minimum number of shared tasks for a finding."""
Key = tuple[str, str]


class Finding(StrEnum):
    """The result and exit code of the command: 0 better or equal, 1 worse, 2 undecided."""

    BETTER = "better"
    EQUAL = "equal or better, not beyond chance"
    WORSE = "worse"
    UNKNOWN = "cannot tell"

    @property
    def exit_code(self) -> int:
        return {Finding.BETTER: 0, Finding.EQUAL: 0, Finding.WORSE: 1, Finding.UNKNOWN: 2}[self]


@dataclass(frozen=True)
class Paired:
    """Shares per task on both sides, paired by task."""

    ours: Rate
    theirs: Rate
    pairs: int
    better: int
    worse: int
    difference: float | None
    """Mean over tasks of ours minus theirs, as a share."""
    interval: tuple[float, float] | None
    p: float


@dataclass(frozen=True)
class BehaviourChange:
    """How often a behaviour is missed on the shared tasks, on both sides."""

    behaviour: Behaviour
    paired: Paired
    q: float


@dataclass(frozen=True)
class Comparison:
    """The results that `--against` reports."""

    finding: Finding
    passes: Paired
    detectable: float | None
    improved: tuple[str, ...]
    regressed: tuple[str, ...]
    behaviours: tuple[BehaviourChange, ...]
    left_out: Mapping[str, int]
    """Excluded attempts or tasks, by reason; none of them counts as a failure."""


def compare(
    ours: Sequence[AnalysedAttempt], theirs: Sequence[AnalysedAttempt], behaviours: Iterable[Behaviour]
) -> Comparison:
    """Pair tasks with the same id and checksum; exclude attempts without a verdict."""
    a, b = _by_task(ours), _by_task(theirs)
    shared = sorted(a.keys() & b.keys())
    passes = _paired(a, b, shared, lambda attempt: attempt.passed)
    changes = _changes(_by_task(ours, judged=False), _by_task(theirs, judged=False), behaviours)
    rates = {key: _share(a[key], lambda x: x.passed)[0] - _share(b[key], lambda x: x.passed)[0] for key in shared}
    return Comparison(
        _finding(passes),
        passes,
        detectable_difference(passes.pairs, (passes.better + passes.worse) / passes.pairs) if passes.pairs else None,
        tuple(key[0] for key in shared if rates[key] > 0),
        tuple(key[0] for key in shared if rates[key] < 0),
        changes,
        _left_out(ours, theirs, a, b),
    )


def _by_task(attempts: Sequence[AnalysedAttempt], *, judged: bool = True) -> dict[Key, list[AnalysedAttempt]]:
    found: dict[Key, list[AnalysedAttempt]] = {}
    for attempt in attempts:
        if attempt.passed is not None or not judged:
            found.setdefault((attempt.task_id, attempt.checksum), []).append(attempt)
    return found


def _share(
    attempts: Iterable[AnalysedAttempt], value: Callable[[AnalysedAttempt], bool | None]
) -> tuple[float, int, int]:
    known = [found for attempt in attempts if (found := value(attempt)) is not None]
    return (sum(known) / len(known) if known else 0.0), sum(known), len(known)


def _paired(
    a: Mapping[Key, list[AnalysedAttempt]],
    b: Mapping[Key, list[AnalysedAttempt]],
    shared: Sequence[Key],
    value: Callable[[AnalysedAttempt], bool | None],
) -> Paired:
    """Pair the tasks for which both sides have a value, and test the signs of their differences."""
    sides = [(_share(a[key], value), _share(b[key], value)) for key in shared]
    sides = [(x, y) for x, y in sides if x[2] and y[2]]
    differences = [x[0] - y[0] for x, y in sides]
    better, worse = sum(d > 0 for d in differences), sum(d < 0 for d in differences)
    return Paired(
        Rate(sum(x[1] for x, _ in sides), sum(x[2] for x, _ in sides)),
        Rate(sum(y[1] for _, y in sides), sum(y[2] for _, y in sides)),
        len(sides), better, worse, sum(differences) / len(differences) if differences else None,
        paired_interval(differences), mcnemar(better, worse),
    )  # fmt: skip


def _finding(passes: Paired) -> Finding:
    if passes.pairs < LEAST_PAIRS or passes.difference is None:
        return Finding.UNKNOWN
    beyond = passes.p < SIGNIFICANT
    if passes.difference >= 0:
        return Finding.BETTER if beyond and passes.difference > 0 else Finding.EQUAL
    return Finding.WORSE if beyond else Finding.UNKNOWN


def _changes(
    a: Mapping[Key, list[AnalysedAttempt]], b: Mapping[Key, list[AnalysedAttempt]], behaviours: Iterable[Behaviour]
) -> tuple[BehaviourChange, ...]:
    shared = sorted(a.keys() & b.keys())
    rows = []
    for behaviour in behaviours:
        paired = _paired(a, b, shared, lambda attempt, name=behaviour.id: attempt.present.get(name))  # type: ignore[misc]
        if paired.pairs and (paired.ours.count or paired.theirs.count):
            rows.append((behaviour, paired))
    adjusted = benjamini_hochberg([paired.p for _, paired in rows])
    found = [BehaviourChange(behaviour, paired, q) for (behaviour, paired), q in zip(rows, adjusted, strict=True)]
    return tuple(sorted(found, key=lambda change: (change.q, -abs(change.paired.difference or 0), change.behaviour.id)))


def _left_out(
    ours: Sequence[AnalysedAttempt], theirs: Sequence[AnalysedAttempt], a: Mapping[Key, object], b: Mapping[Key, object]
) -> dict[str, int]:
    """Count excluded attempts and tasks by reason."""
    names_a, names_b = {key[0] for key in a}, {key[0] for key in b}
    changed = {name for name in names_a & names_b if not any((name, c) in a and (name, c) in b for c in _sums(a, name))}
    found = {
        "tasks only in the first": len(names_a - names_b),
        "tasks only in the second": len(names_b - names_a),
        "tasks whose checksum differs": len(changed),
        "attempts without a verdict in the first": sum(attempt.passed is None for attempt in ours),
        "attempts without a verdict in the second": sum(attempt.passed is None for attempt in theirs),
    }
    return {reason: count for reason, count in found.items() if count}


def _sums(keys: Iterable[Key], name: str) -> list[str]:
    return [checksum for task, checksum in keys if task == name]
