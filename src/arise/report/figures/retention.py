"""Figure 6: retired rubrics judged again on their fixed tasks at later checkpoints, without guidance."""

from collections.abc import Mapping
from textwrap import fill, shorten
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from arise.report.comparison.measures import Study
from arise.report.figures.style import INK, WIDTH

PANELS = 3
BEHAVIOUR = "#0072B2"

Later = list[tuple[int, float, int]]
"""(checkpoint, pass rate, verdicts), only where there are verdicts."""


def retention_after_retirement(study: Study) -> Figure | None:
    """Draw Figure 6: the criteria with most later verdicts, each once; None if no run measured retention."""
    rows = [
        (run.seed, row, later)
        for runs in study.values()
        for run in runs
        for row in run.retention
        if (later := [(k, rate, count) for k, (rate, count) in run.later(row).items() if rate is not None])
    ]
    if not rows:
        return None
    rows.sort(key=_verdicts)
    found = sorted({row["criterion"]: (seed, row, later) for seed, row, later in rows}.values(), key=_verdicts)[::-1]
    figure = Figure(figsize=(WIDTH, 2.3))
    panels = figure.subplots(1, PANELS, sharey=True)
    for axes, (seed, row, later) in zip(panels, found, strict=False):
        _panel(axes, seed, row, later)
    for axes in panels[len(found) :]:
        axes.set_visible(False)
    panels[0].set_ylabel("rubric pass rate")
    return figure


def _verdicts(item: tuple[int, Mapping[str, Any], Later]) -> int:
    return sum(count for _, _, count in item[2])


def _panel(axes: Any, seed: int, row: Mapping[str, Any], later: Later) -> None:
    axes.axhline(0.9, color=INK, linestyle=":", linewidth=0.9)
    if row["at_retirement"][0] is not None:
        axes.plot(row["retired"], row["at_retirement"][0], "D", markerfacecolor="white", color=INK, markersize=5)
    axes.plot([k for k, _, _ in later], [rate for _, rate, _ in later], "o-", color=BEHAVIOUR, markersize=4)
    axes.set_ylim(0, 1.04)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.set_xlabel("iteration")
    axes.set_title(f"{row['rubric']}, seed {seed}, retired at {row['retired']}", size=7.5)
    axes.annotate(fill(shorten(row["criterion"], 78), 40), (0.04, 0.06), xycoords="axes fraction", size=6.5)
