"""Tables of held-out pass rates along the runs, of those that ended and of those that did not."""

from collections.abc import Sequence
from statistics import fmean

from arise.report.comparison.document import Table
from arise.report.comparison.measures import RunMeasures, Study
from arise.report.comparison.statistics import reach
from arise.report.comparison.tables import label
from arise.text.numbers import MISSING, decimal

HALF = 50.0


def table_course(study: Study) -> Table:
    """Tabulate mean held-out pass rates at the points that all seeds have, and when they first reach 50 %."""
    points = sorted({k for runs in study.values() for run in runs for k in run.curve()})
    rows = []
    for method, runs in study.items():
        curves = [run.curve() for run in runs]
        means = [fmean(c[k] for c in curves) if all(k in c for c in curves) else None for k in points]
        rows.append([label(method), str(len(runs)), *_half(runs), *(decimal(mean, 1) for mean in means)])
    caption = (
        "Held-out pass rate (%) over training: mean over seeds after so many iterations. Before it, the first of these "
        "points at which the mean stands at 50 % or more, and its interval, for which seeds are drawn anew."
    )
    return Table(caption, ["Method", "Seeds", "50 % at", "95 %", *map(str, points)], rows)


def _half(runs: Sequence[RunMeasures]) -> tuple[str, str]:
    found = reach({run.seed: run.curve() for run in runs}, {run.seed: HALF for run in runs})
    if found is None:
        return MISSING, MISSING
    first, low, high = (f"{k:.0f}" if k is not None else "never" for k in (found.first, found.low, found.high))
    return first, f"{low} to {high}" if found.seeds > 1 else "one seed: no interval"


def table_unfinished(everything: Study) -> Table | None:
    """Tabulate the curves of runs that have not ended, as far as they go; None if there are none."""
    stopped = [(method, run) for method, runs in everything.items() for run in runs if not run.finished]
    shown = [(method, run) for method, run in stopped if run.curve()]
    points = sorted({k for _, run in shown for k in run.curve()})
    rows = [
        [label(method), str(run.seed), f"{len(run.metrics)} of {run.planned}"]
        + [decimal(run.curve().get(k), 1) for k in points]
        for method, run in shown
    ]
    caption = "Runs that are not finished: held-out pass rate (%) so far. They count in no other table."
    return Table(caption, ["Method", "Seed", "Stopped at", *map(str, points)], rows) if rows else None
