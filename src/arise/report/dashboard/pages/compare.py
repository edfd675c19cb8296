"""Compare: what is better, what is worse, is it noise? Then settings and curves, with seeds as a band."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from arise.report.dashboard.charts import Figure, Link, Share, Table
from arise.report.dashboard.charts.bars import Dot, dot_chart
from arise.report.dashboard.charts.lines import Line, line_chart
from arise.report.dashboard.charts.palette import SERIES
from arise.report.dashboard.held_out import moved_table, principal
from arise.report.dashboard.pages.page import Asked, Fact, Page, interval, share
from arise.report.dashboard.spend import Spending
from arise.run.facts.held_out import held_out
from arise.run.facts.story import run_facts
from arise.run.facts.versus import versus
from arise.run.facts.windows import Window, summed
from arise.run.numbering import iteration_of
from arise.text.numbers import counted_rate

MOST_RUNS = 6
AXES = ("iteration", "rollouts", "cost")
CURVES = {"pass-rate": "Tasks passed", "rubric-reward": "Rubrics passed", "all-fail": "Share of all-fail groups"}


@dataclass(frozen=True)
class Compared:
    """One run on the chosen axis: x of every window's end, and its curves."""

    name: str
    href: str
    settings: dict[str, Any]
    x: list[float]
    curves: Mapping[str, list[Window]]
    attempts: Mapping[str, tuple[int, int]]

    @property
    def without_seed(self) -> str:
        return json.dumps({k: v for k, v in self.settings.items() if k != "train.seed"}, sort_keys=True)


def build(asked: Sequence[Asked], by: str) -> Page:
    """Build the comparison of up to six runs."""
    runs = [_read(one, by) for one in asked]
    families: dict[str, list[Compared]] = defaultdict(list)
    for run in runs:
        families[run.without_seed].append(run)
    named = {_family_name(members): members for members in families.values()}
    colours = {name: SERIES[n % len(SERIES)] for n, name in enumerate(named)}
    figures = [_curve(key, title, named, colours, by) for key, title in CURVES.items()]
    figures.append(_evaluations(runs))
    content = {
        "runs": runs,
        "by": by,
        "axes": AXES,
        "difference": _difference(runs),
        "most": MOST_RUNS,
        "answers": [_answer(asked[0], other, runs[0], run) for other, run in zip(asked[1:], runs[1:], strict=True)],
    }
    return Page("compare.html", "Compare runs", "compare", [Fact(str(len(runs)), "runs compared")], figures, content)


def _answer(first: Asked, other: Asked, base: Compared, run: Compared) -> dict[str, Any]:
    """Say what is better and worse in a run than in the first one, and whether that is noise."""
    found = versus(run_facts(first.run), run_facts(other.run))
    tasks = [_held_out_tasks(asked) for asked in (first, other)]
    return {
        "first": base,
        "run": run,
        "change": found.change,
        "same_tasks": tasks[0] == tasks[1],
        "only_seed": base.without_seed == run.without_seed,
        "worse": moved_table(other, found.worse, "rate"),
        "better": moved_table(other, found.better, "rate"),
        "alike": found.alike,
    }


def _held_out_tasks(asked: Asked) -> set[str]:
    newest = held_out(asked.run).now
    return {row.task_id for row in asked.run.attempts(newest.label)} if newest else set()


def _read(asked: Asked, by: str) -> Compared:
    run, size = asked.run, asked.update_every
    committed, groups, config = run.committed(), run.group_sums(), run.config()
    success = summed(((g.k, g.successes, g.rewarded) for g in groups), size, committed)
    rubrics = summed(((c.k, c.passes, c.evaluations) for c in run.verdict_sums()), size, committed)
    failed = summed(((g.k, g.all_fail, g.groups - g.incomplete) for g in groups), size, committed)
    if by == "rollouts":
        rollouts = [0.0] * committed
        for group in groups:
            rollouts[group.k] += group.rollouts
        clock = list(accumulate(rollouts))
    elif by == "cost":
        dollars = Spending.of(run).so_far.values()
        clock = list(map(sum, zip(*dollars, strict=True))) if dollars else [0.0] * committed
    else:
        clock = [float(iteration_of(k)) for k in range(committed)]
    attempts = {evaluation.label: evaluation.tally for evaluation in principal(held_out(run))}
    curves = {"pass-rate": success, "rubric-reward": rubrics, "all-fail": failed}
    x = [clock[window.last] for window in success]
    return Compared(asked.name, asked.links.page(), _flat(config), x, curves, attempts)


def _flat(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, dict) and value:
            found |= _flat(value, f"{prefix}{key}.")
        else:
            found[f"{prefix}{key}"] = value
    return found


def _difference(runs: Sequence[Compared]) -> Table:
    """Tabulate the settings that differ between runs."""
    keys = sorted({key for run in runs for key in run.settings})
    rows: list[tuple[str, ...]] = []
    for key in keys:
        values = [json.dumps(run.settings[key]) if key in run.settings else "–" for run in runs]
        if len(set(values)) > 1:
            rows.append((key, *values))
    return Table(("setting", *(run.name for run in runs)), rows)


def _family_name(members: Sequence[Compared]) -> str:
    if len(members) == 1:
        return members[0].name
    return f"{members[0].name} and {len(members) - 1} more seeds"


def _curve(
    key: str, title: str, families: Mapping[str, Sequence[Compared]], colours: Mapping[str, str], by: str
) -> Figure:
    lines, rows = [], []
    for name, members in families.items():
        points: list[tuple[float, float | None]] = []
        band = []
        for n in range(min(len(member.x) for member in members)):
            rates = [w.rate for member in members if (w := member.curves[key][n]).rate is not None]
            x = sum(member.x[n] for member in members) / len(members)
            mean = sum(rates) / len(rates) if rates else None
            points.append((x, mean))
            if len(rates) > 1:
                band.append((x, min(rates), max(rates)))
            bounds = share(min(rates, default=None)), share(max(rates, default=None))
            rows.append((name, x, share(mean), *bounds, len(members)))
        lines.append(Line(name, colours[name], points, band))
    return Figure(
        key,
        title,
        line_chart(f"{title} by {by}", lines, percent=True, y_range=(0.0, 1.0), x_name=_axis_name(by)),
        Table(("run", by, "mean", "lowest seed", "highest seed", "runs"), rows),
        "",
        tuple(colours.items()),
    )


def _axis_name(by: str) -> str:
    return "US dollars" if by == "cost" else by


def _evaluations(runs: Sequence[Compared]) -> Figure:
    labels = list(dict.fromkeys(label for run in runs for label in run.attempts))
    colours = {label: SERIES[n % len(SERIES)] for n, label in enumerate(labels)}
    lines, rows = [], []
    for run in runs:
        dots = []
        for label, (won, tried) in run.attempts.items():
            found = interval(won, tried)
            if found:
                dots.append(Dot(label, won / tried, *found, counted_rate(won, tried)))
                rows.append((Link(run.name, run.href), label, won, tried, Share(won / tried), *found))
        lines.append((run.name, dots))
    return Figure(
        "evaluation",
        "Held-out pass rate, no skills shown",
        dot_chart("held-out pass rate by run", lines, colours),
        Table(("run", "evaluation", "passed", "attempts", "rate", "low 95 %", "high 95 %"), rows),
        "",
        tuple(colours.items()),
    )
