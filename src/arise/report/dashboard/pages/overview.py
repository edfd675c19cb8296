"""Overview: held-out before and after, what is still wrong, what got worse, what improved; then the curves."""

from collections.abc import Sequence
from itertools import pairwise

from arise.report.dashboard.charts import Figure, Link, OneLine, Table
from arise.report.dashboard.charts.bars import stacked_bars
from arise.report.dashboard.charts.figure import Cell
from arise.report.dashboard.charts.lines import Line, line_chart
from arise.report.dashboard.charts.palette import BLUE, GREEN, ORANGE, OUTCOME, RED
from arise.report.dashboard.held_out import curve, moved_table
from arise.report.dashboard.pages.page import Asked, Fact, Page, interval, share
from arise.report.dashboard.spend import Spending
from arise.run.facts.score import counts_text, rate_text
from arise.run.facts.story import RunFacts, run_facts
from arise.run.facts.windows import Window, summed
from arise.run.pool_rows import PairLife
from arise.run.rows import GroupSums, Iteration
from arise.text.numbers import amount, counted_rate, decimal, difference, percent

WEAKEST, FAILING, IMPROVED = 8, 6, 8


def build(asked: Asked) -> Page:
    """Build the first page of a run."""
    run, size = asked.run, asked.update_every
    iterations, groups = run.iterations(), run.group_sums()
    pairs, committed = run.pairs(), run.committed()
    success = summed(((g.k, g.successes, g.rewarded) for g in groups), size, committed)
    rubrics = summed(((v.k, v.passes, v.evaluations) for v in run.verdict_sums()), size, committed)
    alone = summed(((c.k, c.passes, c.evaluations) for c in run.verdict_counts() if not c.shown), size, committed)
    found = run_facts(run)
    figures = [
        *curve(found.held_out),
        _rates(success, rubrics),
        _outcomes(groups),
        _signal(iterations),
        Spending.of(run).figure() or _pace(iterations),
    ]
    facts = _facts(success, rubrics, alone, groups, pairs, iterations)
    return Page("overview.html", "Overview", "", facts, figures, _story(asked, found))


def _story(asked: Asked, found: RunFacts) -> dict[str, object]:
    """Return the sections of the page, in the order of the terminal summary."""
    weak, improved = found.still_wrong, found.improved
    failing = [
        (Link(name, asked.links.attempts(name)), OneLine(rate_text(tally)))
        for name, tally in found.failing_types.items()
    ]
    return {
        "headline": _headline(found),
        "alarms": found.alarms,
        "still_wrong": _still_wrong(asked, found),
        "more_wrong": max(0, len(weak) - WEAKEST),
        "failing": Table(("task type", "pass rate, held out"), failing[:FAILING]),
        "more_failing": max(0, len(failing) - FAILING),
        "worse": moved_table(asked, found.worse),
        "improved": moved_table(asked, improved[:IMPROVED]),
        "more_improved": max(0, len(improved) - IMPROVED),
        "others": [(e.label, rate_text(e.tally)) for e in found.held_out.others],
        "failed": [(e.label, e.faults) for e in found.held_out.failed],
    }


def _headline(found: RunFacts) -> dict[str, str]:
    """Return held-out before and after as one large number, with the change and its interval."""
    before, now, change = found.held_out.before, found.held_out.now, found.held_out.change
    if now and change:
        number = change.from_to
        detail = change.reading
    else:
        known = now or before
        number, detail = (percent(known.tally.passes / known.tally.evaluations), "") if known else ("–", "not measured")
    counts = [f"{e.label} {counts_text(e.tally)}" for e in (before, now) if e]
    end = f"iteration {now.iteration}" if now and not found.held_out.after else "after training"
    title = f"Held-out pass rate without skills, before → {end}"
    return {"title": title, "number": number, "detail": detail, "counts": "; ".join(counts)}


def _still_wrong(asked: Asked, found: RunFacts) -> Table:
    """Tabulate the weakest behaviours without guidance, and what is being done about them."""
    rows: list[tuple[Cell, ...]] = [
        (
            Link(b.rubric.id, asked.links.rubric(b.rubric.id)),
            b.rubric.criteria_text,
            OneLine(counted_rate(*b.unguided)),
            b.source,
            OneLine(counted_rate(*b.guided)),
            found.under_way[b.rubric.id],
        )
        for b in found.still_wrong[:WEAKEST]
    ]
    columns = ("rubric", "behaviour", "unguided", "measured", "with its skill, training", "under way")
    return Table(columns, rows)


def _facts(
    success: Sequence[Window],
    rubrics: Sequence[Window],
    alone: Sequence[Window],
    groups: Sequence[GroupSums],
    pairs: Sequence[PairLife],
    iterations: Sequence[Iteration],
) -> list[Fact]:
    in_pool = [pair for pair in pairs if pair.status != "retired"]
    now = iterations[-1].metrics if iterations else {}
    change = ""
    if len(success) > 1 and success[0].rate is not None and success[-1].rate is not None:
        change = f"{difference(success[-1].rate - success[0].rate)} points since the first window"
    return [
        Fact(percent(success[-1].rate if success else None), "training tasks passed, last window", change),
        Fact(
            percent(rubrics[-1].rate if rubrics else None),
            "rubrics passed, last window",
            f"unguided {percent(alone[-1].rate if alone else None)}",
        ),
        Fact(str(len(in_pool)), "rubrics in the pool", f"{sum(p.status == 'shown' for p in in_pool)} skills shown"),
        Fact(str(len(pairs) - len(in_pool)), "rubrics mastered and retired", f"of {len(pairs)} ever born"),
        Fact(percent(now.get("coverage")), "coverage", "of the pool over the tasks"),
        Fact(amount(sum(g.rollouts for g in groups)), "rollouts", f"in {amount(sum(g.groups for g in groups))} groups"),
    ]


def _rates(success: Sequence[Window], rubrics: Sequence[Window]) -> Figure:
    lines = [
        _with_band("tasks passed (verifier)", BLUE, success),
        _with_band("rubrics passed (judge)", RED, rubrics),
    ]
    table = Table(
        ("iterations", "tasks passed", "attempts", "low 95 %", "high 95 %", "rubrics passed", "verdicts"),
        [
            (
                s.span,
                share(s.rate),
                s.evaluations,
                *(interval(s.passes, s.evaluations) or (None, None)),
                share(r.rate),
                r.evaluations,
            )
            for s, r in zip(success, rubrics, strict=True)
        ],
    )
    return Figure(
        "pass-rate",
        "Pass rate and rubric reward",
        line_chart("pass rate of tasks and of rubrics by window", lines, percent=True, y_range=(0.0, 1.0)),
        table,
        "One point per window between pool updates; bands are 95 % intervals. Mastered rubrics are retired and hard "
        "ones added, so rubric reward may fall while the policy improves.",
        tuple((line.name, line.colour) for line in lines),
    )


def _with_band(name: str, colour: str, windows: Sequence[Window]) -> Line:
    band = [(w.end, *found) for w in windows if (found := interval(w.passes, w.evaluations))]
    return Line(name, colour, [(w.end, w.rate) for w in windows], band)


def _outcomes(groups: Sequence[GroupSums]) -> Figure:
    values = {
        "all-fail": [float(g.all_fail) for g in groups],
        "mixed": [float(g.mixed) for g in groups],
        "all-pass": [float(g.all_pass) for g in groups],
        "incomplete": [float(g.incomplete) for g in groups],
    }
    numbers = [g.iteration for g in groups]
    rows = list(zip(numbers, *values.values(), strict=True))
    return Figure(
        "groups",
        "Groups by outcome",
        stacked_bars("groups of an iteration by outcome", numbers, values, OUTCOME),
        Table(("iteration", *values), rows),
        "Only mixed groups teach the task; all-fail groups still teach through rubrics.",
        tuple((name, OUTCOME[name]) for name in values),
    )


def _signal(iterations: Sequence[Iteration]) -> Figure:
    names = (
        ("gradient norm", "grad_norm", ORANGE),
        ("share of tokens kept", "kept_share", GREEN),
        ("age of tokens in versions", "staleness", BLUE),
    )
    every = [Line(name, colour, [(i.number, i.metrics.get(key)) for i in iterations]) for name, key, colour in names]
    lines = [line for line in every if not line.constant]
    still = [f"{line.name}: {decimal(line.constant[0])} throughout" for line in every if line.constant]
    rows = [(i.number, i.metrics.get("loss"), *(i.metrics.get(key) for _, key, _ in names)) for i in iterations]
    return Figure(
        "update",
        "Policy update",
        line_chart("gradient norm, share of tokens kept and their age", lines),
        Table(("iteration", "loss", *(name for name, _, _ in names)), rows),
        ". ".join([*still, ""]).strip(),
        tuple((line.name, line.colour) for line in lines),
    )


def _pace(iterations: Sequence[Iteration]) -> Figure:
    """Draw the seconds between commits, for a run without priced calls."""
    seconds = [(b.number, b.at - a.at) for a, b in pairwise(iterations)]
    line = Line("seconds", BLUE, [(number, max(0.0, spent)) for number, spent in seconds])
    return Figure(
        "pace",
        "Seconds from commit to commit",
        line_chart("seconds an iteration took", [line]),
        Table(("iteration", "seconds"), seconds),
        "This run makes no priced calls.",
    )
