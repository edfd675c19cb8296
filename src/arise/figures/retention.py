"""Figure 6: retired rubrics re-judged on their fixed tasks at later checkpoints, without guidance."""

from textwrap import shorten

from matplotlib.figure import Figure

from arise.comparison.measures import RunMeasures, Study
from arise.figures.style import INK, WIDTH

PANELS = 3
BEHAVIOUR = "#0072B2"


def retention_after_retirement(study: Study) -> Figure | None:
    """Figure 6: the rubrics with most later evaluations; None when no run has been asked for retention."""
    found = [(run, rubric_id) for runs in study.values() for run in runs for rubric_id in run.retention()]
    found = [(run, rubric_id) for run, rubric_id in found if rubric_id in run.retired()]
    if not found:
        return None
    found.sort(key=lambda item: -sum(n for _, n in item[0].retention()[item[1]].values()))
    figure = Figure(figsize=(WIDTH, 2.3))
    panels = figure.subplots(1, PANELS, sharey=True)
    for axes, (run, rubric_id) in zip(panels, found, strict=False):
        _panel(axes, run, rubric_id)
    for axes in panels[len(found) :]:
        axes.set_visible(False)
    panels[0].set_ylabel("rubric pass rate")
    return figure


def _panel(axes, run: RunMeasures, rubric_id: str) -> None:  # type: ignore[no-untyped-def]
    retired = run.retired()[rubric_id]
    at = retired.k + 1
    later = sorted(run.retention()[rubric_id].items())
    rates = [passes / count for _, (passes, count) in later]
    axes.axhline(0.9, color=INK, linestyle=":", linewidth=0.9)
    if retired.evaluations:
        axes.plot([at], [retired.passes / retired.evaluations], "D", markerfacecolor="white", color=INK, markersize=5)
    axes.plot([k for k, _ in later], rates, "o-", color=BEHAVIOUR, markersize=4)
    axes.set_ylim(0, 1.04)
    axes.set_xlabel("iteration")
    axes.set_title(f"{rubric_id}, seed {run.seed}, retired at {at}", size=7.5)
    axes.annotate(shorten(run.rubric_names.get(rubric_id, ""), 48), (0.04, 0.06), xycoords="axes fraction", size=6.5)
