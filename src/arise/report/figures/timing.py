"""Iteration time by method."""

from matplotlib.figure import Figure

from arise.report.comparison.measures import Study
from arise.report.comparison.statistics import student_interval
from arise.report.comparison.tables import label
from arise.report.figures.style import INK, WIDTH, colour


def time_of_an_iteration(study: Study) -> Figure | None:
    """Draw mean seconds per iteration with the interval over seeds; None for runs without recorded times."""
    timed = {m: [run.iteration_seconds for run in runs if run.iteration_seconds] for m, runs in study.items()}
    timed = {method: seconds for method, seconds in timed.items() if seconds}
    if not timed:
        return None
    figure = Figure(figsize=(WIDTH, 0.8 + 0.24 * len(timed)))
    axes = figure.subplots()
    for row, (method, seconds) in enumerate(timed.items()):
        interval = student_interval([sum(one) / len(one) for one in seconds])
        axes.barh(row, interval.estimate, height=0.62, color=colour(method, list(study)), alpha=0.85)
        end = interval.estimate
        if interval.low is not None and interval.high is not None:
            axes.plot([max(0.0, interval.low), interval.high], [row, row], color=INK, linewidth=1.1)
            end = interval.high
        axes.annotate(f"{interval.estimate:.2f}", (end, row), (4, 0), textcoords="offset points", va="center", size=7.5)
    axes.set_yticks(range(len(timed)), [label(method) for method in timed])
    axes.invert_yaxis()
    axes.set_xlabel("seconds an iteration, evaluation not included")
    axes.margins(x=0.14)
    axes.grid(axis="y", visible=False)
    return figure
