"""Figure 4: the pool's turnover, rubric reward against task pass rate, and all-fail groups."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, MaxNLocator

from arise.report.comparison.measures import STAGES, RunMeasures, Study
from arise.report.comparison.statistics import student_interval
from arise.report.comparison.tables import label
from arise.report.figures.style import INK, WIDTH, colour

ADDED, RETIRED, REWARD, PASSED = "#009E73", "#CC79A7", "#0072B2", "#D55E00"


def feedback_and_exploration(study: Study) -> Figure:
    """Draw Figure 4 of the first method with rubrics, with the all-fail rate of the run without skills."""
    method = next((name for name, runs in study.items() if any(run.events for run in runs)), next(iter(study)))
    figure = Figure(figsize=(WIDTH, 2.35))
    pool, reward, failures = figure.subplots(1, 3)
    _turnover(pool, study[method])
    _reward_and_passes(reward, study[method])
    _all_failures(failures, study)
    return figure


def _turnover(axes: Any, runs: Sequence[RunMeasures]) -> None:
    """Draw pool counts as means over seeds."""
    lives = [run.turnover() for run in runs]
    points = sorted(set.intersection(*(set(life) for life in lives))) if lives else []
    means = [[fmean(life[k][part] for life in lives) for k in points] for part in range(3)]
    width = 0.62 * runs[0].update_every
    axes.bar(points, means[1], width=width, color=ADDED, alpha=0.8, label="added")
    axes.bar(points, [-value for value in means[2]], width=width, color=RETIRED, alpha=0.85, label="retired")
    axes.plot(points, means[0], color=INK, marker="o", markersize=2.6, linewidth=1.3, label="active")
    axes.axhline(0, color=INK, linewidth=0.6)
    axes.set(title="(a) Rubrics", xlabel="iteration", ylabel="count, mean over seeds")
    axes.legend(loc="upper center", ncols=3, handlelength=0.9, columnspacing=0.8, handletextpad=0.4)
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.2 * (high - low))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))


def _reward_and_passes(axes: Any, runs: Sequence[RunMeasures]) -> None:
    """Draw means of the training rollouts in windows between pool updates."""
    for series, tint, marker, text in (
        ([run.reward_windows() for run in runs], REWARD, "s", "rubric reward"),
        ([run.pass_rate_windows() for run in runs], PASSED, "o", "task pass rate"),
    ):
        points = sorted(set.intersection(*(set(one) for one in series)))
        _band(axes, points, [{k: one[k] for k in points} for one in series], tint, marker, text)
    axes.set(title="(b) Reward and passes", xlabel="iteration", ylabel="share, window mean")
    axes.set_ylim(0, 1)
    axes.legend(loc="best", handlelength=1.4)


def _band(
    axes: Any, points: Sequence[int], series: Sequence[Mapping[int, float]], tint: str, marker: str, text: str
) -> None:
    if not points:
        return
    intervals = [student_interval([one[k] for one in series]).within(0.0, 1.0) for k in points]
    axes.plot(points, [i.estimate for i in intervals], color=tint, marker=marker, markersize=2.6, label=text)
    if len(series) > 1:
        low, high = (
            [edge or 0.0 for edge in edges] for edges in zip(*((i.low, i.high) for i in intervals), strict=True)
        )
        axes.fill_between(points, low, high, color=tint, alpha=0.16, linewidth=0)


def _all_failures(axes: Any, study: Study) -> None:
    """Draw all-fail rates by third of the run; compare two methods on the tasks that both drew."""
    pair = [method for method in ("arise", "no-skill-injection") if method in study]
    shown = pair if len(pair) == 2 else list(study)[:2]
    by_method = _failure_rates([study[method] for method in shown])
    width = 0.8 / len(shown)
    for place, (method, rates_of) in enumerate(zip(shown, by_method, strict=True)):
        intervals = [student_interval(rates).within(0.0, 100.0) if rates else None for rates in rates_of]
        at = [stage + (place - (len(shown) - 1) / 2) * width for stage in range(3)]
        axes.bar(
            at,
            [interval.estimate if interval else 0.0 for interval in intervals],
            width=0.92 * width,
            color=colour(method, list(study)),
            alpha=0.85,
            label=label(method),
        )
        for x, interval in zip(at, intervals, strict=True):
            if interval and interval.low is not None and interval.high is not None:
                axes.plot([x, x], [interval.low, interval.high], color=INK, linewidth=1.0)
    axes.set_xticks(range(3), STAGES)
    axes.set_ylim(0, max(20.0, 1.3 * axes.get_ylim()[1]))
    axes.yaxis.set_major_locator(FixedLocator([tick for tick in axes.get_yticks() if 0 <= tick <= 100]))
    axes.set(title="(c) All-failure groups", xlabel="third of the run", ylabel="groups that all fail (%)")
    axes.grid(axis="x", visible=False)
    axes.legend(loc="upper right", handlelength=1.2)


def _failure_rates(methods: Sequence[Sequence[RunMeasures]]) -> list[list[list[float]]]:
    """Return all-fail rates (%) by method, stage and seed, with equal weight for each task that all methods drew."""
    found: list[list[list[float]]] = [[[], [], []] for _ in methods]
    for seed in sorted(set.intersection(*({run.seed for run in runs} for runs in methods))):
        counts = [next(run for run in runs if run.seed == seed).all_failure_by_stage() for runs in methods]
        for stage in range(3):
            shared = set.intersection(*(set(of_method[stage]) for of_method in counts))
            for place, of_method in enumerate(counts):
                if shared:
                    rates = [of_method[stage][task][0] / of_method[stage][task][1] for task in shared]
                    found[place][stage].append(100.0 * fmean(rates))
    return found
