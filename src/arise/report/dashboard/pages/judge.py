"""Judge and cost: the number of valid verdicts, reasons for missing ones, and the cost of calls."""

from collections.abc import Sequence

from arise.report.dashboard.charts import Figure, Table
from arise.report.dashboard.charts.bars import stacked_bars
from arise.report.dashboard.charts.lines import Line, line_chart
from arise.report.dashboard.charts.palette import BLUE, GREEN, GREY, RED, SERIES
from arise.report.dashboard.pages.page import Asked, Fact, Page, rate
from arise.report.dashboard.spend import Spending, answer_figures, call_events
from arise.run.numbering import iteration_of
from arise.run.pool_rows import VerdictSums
from arise.text.numbers import amount, dollars, percent


def build(asked: Asked) -> Page:
    """Build the page on the judge and its cost."""
    run = asked.run
    sums, config, spending = run.verdict_sums(), run.config(), Spending.of(run)
    events, last = call_events(run.folder)
    missing = any(v.absent for v in sums)
    figures = [*([_valid(sums)] if missing else []), _kinds(sums), *_reasons(asked), *answer_figures(run)]
    cost = spending.figure()
    if cost:
        figures.append(cost)
    content = {
        "judge": config.get("judge", {}),
        "reflector": config.get("reflector", {}),
        "calls": spending.calls,
        "events": sorted(events.items()),
        "last": reversed(last),
    }
    return Page("judge.html", "Judge and cost", "judge", _facts(sums, spending), figures, content)


def _facts(sums: Sequence[VerdictSums], spending: Spending) -> list[Fact]:
    absent, total = sum(v.absent for v in sums), sum(v.asked for v in sums)
    applied = sum(v.evaluations for v in sums)
    budget = f"of {dollars(spending.cap)}" if spending.cap else "no budget set"
    return [
        Fact(percent(1 - absent / total if total else None), "valid verdicts", f"{amount(absent)} are missing"),
        Fact(amount(total), "verdicts asked for"),
        Fact(percent(applied / total if total else None), "applicable"),
        Fact(dollars(spending.usd), "spent on calls", budget if spending.calls else "this run makes no paid calls"),
        Fact(amount(sum(call.calls for call in spending.calls)), "calls"),
    ]


def _valid(sums: Sequence[VerdictSums]) -> Figure:
    rows = [(v.iteration, rate(v.asked - v.absent, v.asked), v.absent, v.asked) for v in sums]
    line = Line("valid verdicts", BLUE, [(float(number), share) for number, share, *_ in rows])
    return Figure(
        "valid",
        "Share of valid verdicts",
        line_chart("share of valid verdicts", [line], percent=True, y_range=(0.0, 1.0), thresholds=[("95 %", 0.95)]),
        Table(("iteration", "valid", "no verdict", "asked for"), rows),
        "A missing verdict is left out, never counted as a fail.",
    )


def _kinds(sums: Sequence[VerdictSums]) -> Figure:
    numbers = [v.iteration for v in sums]
    names = ("pass", "fail", "not applicable", "no verdict")
    values = {name: [float(v[n]) for v in sums] for n, name in enumerate(names, start=1)}
    colours = dict(zip(names, (GREEN, RED, GREY, SERIES[4]), strict=True))
    return Figure(
        "verdicts",
        "Verdicts of an iteration",
        stacked_bars("verdicts by kind", numbers, values, colours),
        Table(("iteration", *names), list(zip(numbers, *values.values(), strict=True))),
        "",
        tuple(colours.items()),
    )


def _reasons(asked: Asked) -> list[Figure]:
    found = asked.run.absent_reasons()
    if not found:
        return []
    ks, reasons = sorted({k for k, _, _ in found}), sorted({reason for _, reason, _ in found})
    count_of = {(k, reason): count for k, reason, count in found}
    values = {reason or "no reason": [float(count_of.get((k, reason), 0)) for k in ks] for reason in reasons}
    colours = {name: SERIES[n % len(SERIES)] for n, name in enumerate(values)}
    numbers = [iteration_of(k) for k in ks]
    return [
        Figure(
            "reasons",
            "Why verdicts are absent",
            stacked_bars("absent verdicts by reason", numbers, values, colours),
            Table(("iteration", *values), list(zip(numbers, *values.values(), strict=True))),
            "",
            tuple(colours.items()),
        )
    ]
