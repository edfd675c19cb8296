"""Figure 3: final pass rates of all methods and pass rates over training; also one curve per method."""

from collections.abc import Sequence
from math import ceil
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, MaxNLocator

from arise.report.comparison.measures import RunMeasures, Study, finished_only
from arise.report.comparison.statistics import student_interval
from arise.report.comparison.tables import label
from arise.report.figures.style import INK, SOFT, WIDTH, colour

PRINCIPALS = ("arise", "outcome-only")


def ablations_and_efficiency(study: Study) -> Figure | None:
    """Draw Figure 3 of finished runs: (a) final held-out pass rate, (b) held-out pass rate over training."""
    study = finished_only(study)
    if not study:
        return None
    figure = Figure(figsize=(WIDTH, 2.2 + 0.13 * len(study)))
    bars, curves = figure.subplots(1, 2, width_ratios=(1, 1.15))
    _final_bars(bars, study)
    shown = [method for method in PRINCIPALS if method in study] or list(study)[:6]
    for method in shown:
        _curve(curves, study[method], colour(method, list(study)), label(method))
    _mark_the_target(curves, study)
    curves.set(title="(b) Over training", xlabel="iteration", ylabel="held-out pass rate (%)")
    curves.set_ylim(0, max(5.0, curves.get_ylim()[1]))
    curves.xaxis.set_major_locator(MaxNLocator(steps=[1, 2, 5, 10], integer=True))
    curves.legend(loc="best")
    return figure


def _final_bars(axes: Any, study: Study) -> None:
    for row, (method, runs) in enumerate(study.items()):
        rates = [run.score("after").rate for run in runs]
        interval = student_interval(rates).within(0.0, 100.0)
        tint = colour(method, list(study))
        axes.barh(row, interval.estimate, height=0.62, color=tint, alpha=0.85)
        axes.plot(rates, [row] * len(rates), "o", color="white", markeredgecolor=INK, markersize=3, markeredgewidth=0.6)
        end = max([interval.estimate, *rates])
        if interval.low is not None and interval.high is not None:
            axes.plot([interval.low, interval.high], [row, row], color=INK, linewidth=1.1)
            end = max(end, interval.high)
        axes.annotate(f"{interval.estimate:.1f}", (end, row), (4, 0), textcoords="offset points", va="center", size=7.5)
    start = [run.score("before").rate for runs in study.values() for run in runs if run.score("before").tried]
    if start:
        mean = sum(start) / len(start)
        axes.axvline(mean, color=SOFT, linestyle=(0, (4, 3)), linewidth=1.0)
        axes.annotate("start", (mean, -0.62), (2, 0), textcoords="offset points", color=SOFT, size=7, va="center")
    axes.set(title="(a) Final", xlabel="held-out pass rate (%)")
    axes.set_yticks(range(len(study)), [label(method) for method in study])
    axes.set_ylim(len(study) - 0.4, -0.9)
    axes.set_xlim(0, max(5.0, 1.1 * axes.get_xlim()[1]))
    axes.xaxis.set_major_locator(FixedLocator([tick for tick in axes.get_xticks() if 0 <= tick <= 100]))
    axes.grid(axis="y", visible=False)


def _curve(axes: Any, runs: Sequence[RunMeasures], tint: str, name: str, **line: Any) -> None:
    """Draw the mean over seeds with its 95 % band, at the points that every seed has."""
    curves = [run.curve() for run in runs]
    points = sorted(set.intersection(*(set(curve) for curve in curves)))
    if not points:
        return
    intervals = [student_interval([curve[k] for curve in curves]).within(0.0, 100.0) for k in points]
    centre = [interval.estimate for interval in intervals]
    if len(runs) > 1:
        low, high = (
            [edge or 0.0 for edge in edges] for edges in zip(*((i.low, i.high) for i in intervals), strict=True)
        )
        axes.fill_between(points, low, high, color=tint, alpha=0.16, linewidth=0)
    axes.plot(points, centre, **({"color": tint, "marker": "o", "markersize": 3.2, "label": name} | line))


def _mark_the_target(axes: Any, study: Study) -> None:
    """Draw a dotted line at outcome-only's final pass rate."""
    runs = study.get("outcome-only")
    if runs:
        target = sum(run.score("after").rate for run in runs) / len(runs)
        axes.axhline(target, color=colour("outcome-only", list(study)), linestyle=":", linewidth=1.0)


def every_curve(study: Study) -> Figure:
    """Draw one panel per method, with ARISE and outcome-only for reference."""
    columns = min(3, len(study))
    rows = ceil(len(study) / columns)
    figure = Figure(figsize=(WIDTH, 0.5 + 1.6 * rows))
    panels = list(figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flat)
    quiet = {"marker": "", "linewidth": 0.9, "label": None}
    for axes, (method, runs) in zip(panels, study.items(), strict=False):
        for other in PRINCIPALS:
            if other in study and other != method:
                _reference(axes, study[other], colour(other, list(study)), quiet)
        _curve(axes, runs, colour(method, list(study)), label(method))
        axes.set_title(label(method))
        axes.set_ylim(0, max(5.0, axes.get_ylim()[1]))
    for above, empty in zip(panels[len(study) - columns :], panels[len(study) :], strict=False):
        empty.set_visible(False)
        above.tick_params(labelbottom=True)
    figure.supxlabel("iteration", size=8)
    figure.supylabel("held-out pass rate (%)", size=8)
    return figure


def _reference(axes: Any, runs: Sequence[RunMeasures], tint: str, line: dict[str, Any]) -> None:
    curves = [run.curve() for run in runs]
    points = sorted(set.intersection(*(set(curve) for curve in curves)))
    means = [sum(curve[k] for curve in curves) / len(curves) for k in points]
    axes.plot(points, means, color=tint, alpha=0.7, linestyle=(0, (3, 2)), **line)
