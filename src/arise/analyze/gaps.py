"""Compute gaps from attempts: rates in failures and passes, tested within tasks, sorted by possible gain."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from arise.analyze.behaviours import AnalysedAttempt, Behaviour
from arise.analyze.statistics import (
    Rate,
    Table,
    attributable,
    benjamini_hochberg,
    exact_conditional,
    odds_ratio,
)

LEAST_TASKS = 3
"""Minimum number of tasks that show a behaviour; with fewer it is only an anecdote."""
FALSE_DISCOVERIES = 0.1
SUSPICIOUS = 0.05
"""Minimum difference of rates for an unproven behaviour to be reported as suspicious."""
LEAST_STRATA = 3
"""Minimum number of tasks with both outcomes for a test within tasks."""
LEAST_BANDED = 60
"""Minimum number of attempts that are divided by length for a test between tasks."""


class Kind(StrEnum):
    """The classification of a behaviour by its numbers."""

    ASSOCIATED = "associated with failure"
    SUSPECTED = "more frequent in failures, not beyond chance"
    NOT_ASSOCIATED = "present, but not associated with failure"
    NO_CONTRAST = "present, outcomes unknown or all alike"
    ANECDOTE = "anecdote: fewer than three tasks"


ORDER = tuple(Kind)


@dataclass(frozen=True)
class Gap:
    """One behaviour over all attempts; `gain` is in points of pass rate and assumes a causal association."""

    behaviour: Behaviour
    kind: Kind
    failures: Rate
    passes: Rate
    overall: Rate
    tasks: int
    p: float | None
    q: float | None
    odds: float | None
    strata: str
    """The strata of the test: `task`, `group`, or `none`."""
    informative: int
    gain: float


def find_gaps(attempts: Sequence[AnalysedAttempt], behaviours: Iterable[Behaviour]) -> list[Gap]:
    """Return every behaviour that was present at least once, worst first."""
    counted = [attempt for attempt in attempts if attempt.counts]
    rows = [row for behaviour in behaviours if (row := _row(attempts, counted, behaviour))]
    tested = [row for row in rows if row.p is not None]
    adjusted = dict(
        zip((row.behaviour.id for row in tested), benjamini_hochberg([row.p or 0.0 for row in tested]), strict=True)
    )
    gaps = [_classified(row, adjusted.get(row.behaviour.id)) for row in rows]
    return sorted(gaps, key=lambda gap: (ORDER.index(gap.kind), -gap.gain, -gap.overall.count, gap.behaviour.id))


def _row(attempts: Sequence[AnalysedAttempt], counted: Sequence[AnalysedAttempt], behaviour: Behaviour) -> Gap | None:
    """Return a behaviour with its rates and its test, unclassified; None if it was never present."""
    name = behaviour.id
    judged = [attempt for attempt in attempts if name in attempt.present]
    seen = [attempt for attempt in judged if attempt.present[name]]
    if not seen:
        return None
    usable = [attempt for attempt in counted if name in attempt.present]
    strata, tables = _strata(usable, name)
    contrast = any(table.informative for table in tables)
    return Gap(
        behaviour,
        Kind.NO_CONTRAST,
        _rate([attempt for attempt in usable if not attempt.passed], name),
        _rate([attempt for attempt in usable if attempt.passed], name),
        Rate(len(seen), len(judged)),
        len({(attempt.task_id, attempt.checksum) for attempt in seen}),
        exact_conditional(tables),
        None,
        odds_ratio(tables),
        strata,
        sum(table.informative for table in tables),
        attributable(tables) / len(counted) * 100 if contrast else 0.0,
    )


def _rate(attempts: Sequence[AnalysedAttempt], name: str) -> Rate:
    return Rate(sum(attempt.present[name] for attempt in attempts), len(attempts))


def _strata(attempts: Sequence[AnalysedAttempt], name: str) -> tuple[str, list[Table]]:
    """Return tables within tasks if enough tasks have both outcomes, else within groups, else one for all.

    If every task was tried once, nothing can be compared within tasks. Then attempts are compared with others of a
    similar length: a long attempt is more often a hard task, and shows more of everything.
    """
    by_task = _tables(attempts, name, lambda attempt: f"{attempt.task_id}\0{attempt.checksum}")
    if sum(table.informative for table in by_task) >= LEAST_STRATA:
        return "task", by_task
    band = _bands(attempts)
    by_group = _tables(attempts, name, lambda attempt: f"{attempt.group}\0{band(attempt)}")
    if sum(table.informative for table in by_group) > 1 and len({attempt.group for attempt in attempts}) > 1:
        return "group", by_group
    return "none", _tables(attempts, name, lambda attempt: str(band(attempt)))


def _bands(attempts: Sequence[AnalysedAttempt]) -> Callable[[AnalysedAttempt], int]:
    """Return a function that tells which third by length an attempt is in; too few attempts are not divided."""
    lengths = sorted(attempt.turns for attempt in attempts)
    if len(lengths) < LEAST_BANDED:
        return lambda _: 0
    low, high = lengths[len(lengths) // 3], lengths[2 * len(lengths) // 3]
    return lambda attempt: (attempt.turns > low) + (attempt.turns > high)


def _tables(attempts: Sequence[AnalysedAttempt], name: str, key: Callable[[AnalysedAttempt], str]) -> list[Table]:
    counts: dict[str, Counter[tuple[bool, bool]]] = {}
    for attempt in attempts:
        counts.setdefault(key(attempt), Counter())[attempt.present[name], bool(attempt.passed)] += 1
    return [
        Table(cells[True, False], cells[True, True], cells[False, False], cells[False, True])
        for _, cells in sorted(counts.items())
    ]


def _classified(row: Gap, q: float | None) -> Gap:
    from dataclasses import replace

    return replace(row, kind=_kind(row, q), q=q)


def _kind(row: Gap, q: float | None) -> Kind:
    failing, passing = row.failures.value, row.passes.value
    if row.tasks < LEAST_TASKS:
        return Kind.ANECDOTE
    if failing is None or passing is None or not row.failures.count + row.passes.count:
        return Kind.NO_CONTRAST
    harmful = row.odds is not None and row.odds > 1
    if q is not None and q <= FALSE_DISCOVERIES and harmful:
        return Kind.ASSOCIATED
    return Kind.SUSPECTED if harmful and failing - passing >= SUSPICIOUS else Kind.NOT_ASSOCIATED
