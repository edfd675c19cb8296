"""Held-out evaluations of a run: those with a name of their own, and the points of the learning curve."""

from collections.abc import Sequence

from arise.evaluation.labels import is_held_out, point_of
from arise.report.dashboard.charts import Figure, Table
from arise.report.dashboard.charts.lines import Line, line_chart
from arise.report.dashboard.charts.palette import BLUE
from arise.report.dashboard.pages.page import interval, percent, rate
from arise.run.reader import RunReader
from arise.run.rows import AttemptRow

Attempts = dict[str, list[AttemptRow]]


def held_out(run: RunReader) -> Attempts:
    """Every evaluation on held-out tasks with its attempts, in the order they were made."""
    return {label: run.attempts(label) for label in run.evaluations() if is_held_out(label)}


def principal(attempts: Attempts) -> Attempts:
    """Evaluations worth naming: not the points on the way, but the newest of them while training goes on."""
    points = [label for label in attempts if point_of(label) is not None]
    left_out = set(points if "after" in attempts else points[:-1])
    return {label: rows for label, rows in attempts.items() if label not in left_out}


def counts(attempts: Sequence[AttemptRow]) -> tuple[int, int]:
    """Successes and attempts, without those that infrastructure ended."""
    known = [attempt for attempt in attempts if attempt.success is not None]
    return sum(bool(attempt.success) for attempt in known), len(known)


def in_words(won: int, tried: int) -> str:
    """`24 of 28, 95 % 68.5–94.3`."""
    low, high = interval(won, tried) or (0.0, 0.0)
    return f"{won} of {tried}, 95 % {100 * low:.1f}–{100 * high:.1f}" if tried else "no attempt counts"


def curve(attempts: Attempts) -> list[Figure]:
    """The held-out pass rate over training; nothing for a run that was only measured at its ends."""
    labels = [label for label in attempts if label in ("before", "after") or point_of(label) is not None]
    known = [(_iteration(attempts[label]), label, *counts(attempts[label])) for label in labels]
    known = sorted(point for point in known if point[3])
    if len(known) < 3:
        return []
    line = Line(
        "held-out pass rate",
        BLUE,
        [(k, won / tried) for k, _, won, tried in known],
        [(k, *found) for k, _, won, tried in known if (found := interval(won, tried))],
    )
    columns = ("iteration", "evaluation", "passed", "attempts", "rate", "low 95 %", "high 95 %")
    rows = [(k, label, won, tried, rate(won, tried), *(interval(won, tried) or ())) for k, label, won, tried in known]
    figure = Figure(
        "held-out",
        "Held-out pass rate, no skills shown",
        line_chart("held-out pass rate by iteration", [line], percent=True, y_range=(0.0, 1.0)),
        Table(columns, rows),
        "Measured on the way, its ends with more attempts a task; the band is the 95 % interval.",
    )
    return [figure]


def summary(attempts: Attempts) -> list[tuple[str, str, str]]:
    """(pass rate, name, counts and interval) of the principal evaluations."""
    found = {label: counts(rows) for label, rows in principal(attempts).items()}
    return [(percent(rate(won, tried)), label, in_words(won, tried)) for label, (won, tried) in found.items()]


def _iteration(attempts: Sequence[AttemptRow]) -> int:
    return max((attempt.k for attempt in attempts), default=0)
