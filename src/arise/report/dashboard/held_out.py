"""Held-out evaluations on pages: the learning curve, scores as facts, and tables of what moved."""

from collections.abc import Sequence

from arise.report.dashboard.charts import Figure, Link, OneLine, Table
from arise.report.dashboard.charts.figure import Cell
from arise.report.dashboard.charts.lines import Line, line_chart
from arise.report.dashboard.charts.palette import BLUE
from arise.report.dashboard.pages.page import Asked, Fact, interval, rate
from arise.run.facts.held_out import HeldOut
from arise.run.facts.score import Evaluation, counts_text
from arise.run.facts.story import Moved
from arise.text import numbers


def principal(found: HeldOut) -> list[Evaluation]:
    """Return the main evaluations: before training, the newest, and those requested by hand."""
    own = [evaluation for evaluation in (found.before, found.now) if evaluation]
    return [*own, *found.others]


def curve(found: HeldOut) -> list[Figure]:
    """Draw the held-out pass rate over training; return nothing if only its ends were evaluated."""
    own = found.own
    if len(own) < 3:
        return []
    line = Line(
        "held-out pass rate",
        BLUE,
        [(point.iteration, rate(*point.tally)) for point in own],
        [(point.iteration, *bounds) for point in own if (bounds := interval(*point.tally))],
    )
    columns = ("iteration", "evaluation", "passed", "attempts", "rate", "low 95 %", "high 95 %")
    rows = [(p.iteration, p.label, *p.tally, rate(*p.tally), *(interval(*p.tally) or ())) for p in own]
    figure = Figure(
        "held-out",
        "Held-out pass rate, no skills shown",
        line_chart("held-out pass rate by iteration", [line], percent=True, y_range=(0.0, 1.0)),
        Table(columns, rows),
        "Points on the way have fewer attempts per task than the ends; the band is the 95 % interval.",
    )
    return [figure]


def moved_table(asked: Asked, moved: Sequence[Moved], rate: str = "unguided") -> Table:
    """Tabulate changes of unguided rates; each behaviour links to its page in the run of `asked`."""
    rows: list[tuple[Cell, ...]] = [
        (
            Link(item.rubric, asked.links.rubric(item.rubric)) if item.rubric else "",
            item.name,
            OneLine(item.change.from_to),
            OneLine(" → ".join(f"{tally.passes} of {tally.evaluations}" for tally in item.change)),
            item.change.difference_text if item.change.clear or not item.change.few else numbers.MISSING,
            item.change.noise_text,
            item.source,
        )
        for item in moved
    ]
    columns = ("rubric", "behaviour or task type", rate, "counts", "difference", "is it noise?", "measured")
    return Table(columns, rows)


def score_facts(found: HeldOut) -> list[Fact]:
    """Return the pass rate of each principal evaluation with its counts and interval."""
    return [Fact(numbers.percent(rate(*e.tally)), e.label, counts_text(e.tally)) for e in principal(found)]
