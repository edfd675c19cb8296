"""Overview: is it learning, is it healthy, what got better."""

from collections.abc import Sequence
from itertools import pairwise

from arise.evaluation.score import score
from arise.method.pass_rate import pass_rate
from arise.report.dashboard.alarms import alarms
from arise.report.dashboard.charts import Figure, Link, Table
from arise.report.dashboard.charts.bars import stacked_bars
from arise.report.dashboard.charts.lines import Line, line_chart
from arise.report.dashboard.charts.palette import BLUE, GREEN, ORANGE, OUTCOME, RED
from arise.report.dashboard.held_out import curve, held_out, summary
from arise.report.dashboard.pages.page import Asked, Fact, Page, amount, interval, percent
from arise.report.dashboard.spend import Spending
from arise.report.dashboard.windows import Window, counts_by_rubric, pair_windows, summed
from arise.run.rows import GroupSums, Iteration, PairLife, VerdictCount
from arise.types import Tally

MOVERS = 6
Change = tuple[float | None, float | None]
Rise = tuple[float, PairLife, Change, Change, Change]
"""How far a behaviour rose; its pair; from where to where on held-out tasks, in training, and there unguided."""


def build(asked: Asked) -> Page:
    """The first page of a run."""
    run, size = asked.run, asked.update_every
    iterations, groups, counts = run.iterations(), run.group_sums(), run.verdict_counts()
    pairs, committed, config = run.pairs(), run.committed(), run.config()
    success = summed(((g.k, g.successes, g.rewarded) for g in groups), size, committed)
    rubrics = summed(((v.k, v.passes, v.evaluations) for v in run.verdict_sums()), size, committed)
    alone = summed(((c.k, c.passes, c.evaluations) for c in counts if not c.shown), size, committed)
    spending = Spending.of(run)
    figures = [
        _rates(success, rubrics),
        _outcomes(groups),
        _signal(iterations),
        spending.figure() or _pace(iterations),
    ]
    tried = held_out(run)
    figures = [*curve(tried), *figures]
    content = {
        "alarms": alarms(iterations, groups, counts, size),
        "movers": _movers(pairs, counts, size, committed, asked),
        "evaluations": summary(tried),
        "planned": config.get("train", {}).get("iterations"),
    }
    facts = _facts(success, rubrics, alone, groups, pairs, iterations)
    return Page("overview.html", "Overview", "", facts, figures, content)


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
        change = f"{100 * (success[-1].rate - success[0].rate):+z.1f} points since the first window"
    return [
        Fact(percent(success[-1].rate if success else None), "tasks passed, last window", change),
        Fact(
            percent(rubrics[-1].rate if rubrics else None),
            "rubrics passed, last window",
            f"unguided {percent(alone[-1].rate if alone else None)}",
        ),
        Fact(str(len(in_pool)), "rubrics in the pool", f"{sum(p.status == 'shown' for p in in_pool)} skills shown"),
        Fact(str(len(pairs) - len(in_pool)), "rubrics mastered and retired", f"of {len(pairs)} ever born"),
        Fact(percent(now.get("coverage"), 0), "coverage", "of the pool over the tasks"),
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
                f"{s.first + 1}-{s.last + 1}",
                s.rate,
                s.evaluations,
                *(interval(s.passes, s.evaluations) or (None, None)),
                r.rate,
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
        "One point a window between pool updates; bands are 95 % intervals. Mastered rubrics leave and hard ones come, "
        "so rubric reward may fall while the policy gets better.",
        tuple((line.name, line.colour) for line in lines),
    )


def _with_band(name: str, colour: str, windows: Sequence[Window]) -> Line:
    band = [(w.last + 1.0, *found) for w in windows if (found := interval(w.passes, w.evaluations))]
    return Line(name, colour, [(w.last + 1.0, w.rate) for w in windows], band)


def _outcomes(groups: Sequence[GroupSums]) -> Figure:
    values = {
        "all-fail": [float(g.all_fail) for g in groups],
        "mixed": [float(g.mixed) for g in groups],
        "all-pass": [float(g.all_pass) for g in groups],
        "incomplete": [float(g.incomplete) for g in groups],
    }
    numbers = [g.k + 1 for g in groups]
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
    lines = [Line(name, colour, [(i.number, i.metrics.get(key)) for i in iterations]) for name, key, colour in names]
    rows = [(i.number, i.metrics.get("loss"), *(i.metrics.get(key) for _, key, _ in names)) for i in iterations]
    return Figure(
        "update",
        "Policy update",
        line_chart("gradient norm, share of tokens kept and their age", lines),
        Table(("iteration", "loss", *(name for name, _, _ in names)), rows),
        "",
        tuple((line.name, line.colour) for line in lines),
    )


def _pace(iterations: Sequence[Iteration]) -> Figure:
    """Seconds from commit to commit: what a run without priced calls spends."""
    seconds = [(b.number, b.at - a.at) for a, b in pairwise(iterations)]
    line = Line("seconds", BLUE, [(number, max(0.0, spent)) for number, spent in seconds])
    return Figure(
        "pace",
        "Seconds from commit to commit",
        line_chart("seconds an iteration took", [line]),
        Table(("iteration", "seconds"), seconds),
        "This run makes no priced calls.",
    )


def _movers(
    pairs: Sequence[PairLife], counts: Sequence[VerdictCount], size: int, committed: int, asked: Asked
) -> Table:
    """Behaviours by how far they rose: on held-out tasks, where no skill helps, or in training where none was held.

    A behaviour that was born again has one row.
    """
    by_rubric = counts_by_rubric(counts)
    found: list[Rise] = []
    before, after = (score(label, asked.run.query).behaviours for label in ("before", "after"))
    for pair in pairs:
        name = pair.rubric.id
        windows = [w for w in pair_windows(pair, by_rubric[name], size, committed) if w.evaluations]
        trained = (windows[0].rate, windows[-1].rate) if len(windows) > 1 else (None, None)
        alone = pass_rate(before.get(name, Tally())), pass_rate(after.get(name, Tally()))
        rises = [last - first for first, last in (alone, trained) if first is not None and last is not None]
        if rises:
            unguided = [w.unguided_rate for w in windows if w.unguided.evaluations] or [None]
            found.append((rises[0], pair, alone, trained, (unguided[0], unguided[-1])))
    found.sort(key=lambda item: -item[0])
    farthest: dict[str, Rise] = {}
    for rise in found:
        farthest.setdefault(rise[1].rubric.criteria_text, rise)
    rows = [
        (
            Link(pair.rubric.id, asked.links.rubric(pair.rubric.id)),
            pair.rubric.criteria_text,
            _from_to(*alone),
            _from_to(*trained),
            _from_to(*unguided),
            pair.rubric.capability.value,
            str(pair.standing),
        )
        for _, pair, alone, trained, unguided in list(farthest.values())[:MOVERS]
    ]
    columns = ("rubric", "behaviour", "held out, no skill", "in training", "there unguided", "capability", "skill now")
    return Table(columns, rows)


def _from_to(first: float | None, last: float | None) -> str:
    return "–" if first is None or last is None else f"{100 * first:.0f} % → {100 * last:.0f} %"
