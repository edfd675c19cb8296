"""Evaluation: held-out tasks without evolved skills; ad-hoc and failed evaluations and faults are separate."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from arise.evaluation.retention import curves, retired
from arise.method.pass_rate import pass_rate
from arise.report.dashboard.attempt_view import attempt_link
from arise.report.dashboard.charts import Figure, Link, OneLine, Table
from arise.report.dashboard.charts.bars import Dot, dot_chart
from arise.report.dashboard.charts.palette import SERIES
from arise.report.dashboard.held_out import curve, principal, score_facts
from arise.report.dashboard.pages.page import Asked, Fact, Page, interval, rate
from arise.run.facts.behaviours import behaviours, weakness
from arise.run.facts.held_out import HeldOut, held_out
from arise.run.facts.score import Evaluation, succeeded
from arise.run.labels import is_held_out
from arise.run.rows import AttemptRow
from arise.text.numbers import counted_rate, decimal, percent
from arise.types import Tally


class Tried(NamedTuple):
    """One held-out attempt in the table: its symbol, the symbol's meaning, and its page."""

    sign: str
    said: str
    href: str


ALL = "all tasks"
TASKS_ON_PAGE = 400


def build(asked: Asked, evaluation: str = "", task_type: str = "") -> Page:
    """Build the page with every evaluation in the run; its attempts may be those of one evaluation or task type."""
    found = held_out(asked.run)
    named = principal(found)
    leaked = sum(evaluation.skill_bytes for evaluation in (*found.own, *found.others, *found.failed))
    facts = score_facts(found)[-4:]
    facts.append(Fact(f"{leaked} bytes", "evolved skills in prompts", "must be 0: held-out attempts see no skill"))
    figures = [
        _rates("domains", "Pass rate by domain", {e.label: e.by_domain for e in named}, named),
        _rates("types", "Pass rate by task type", {e.label: e.by_task_type for e in named}, named),
        *_behaviours(asked, found, named),
        *curve(found),
    ]
    labels = [label for label in asked.run.evaluations() if is_held_out(label)]
    shown = [label for label in labels if label == evaluation] or [e.label for e in (*named, *found.failed)]
    tasks = _tasks(asked, shown, task_type)
    content = {
        "labels": labels,
        "shown": shown,
        "evaluation": evaluation,
        "task_type": task_type,
        "types": sorted({name for e in named for name in e.by_task_type if name}),
        "tasks": tasks[:TASKS_ON_PAGE],
        "scores": [(title, note, _scores(group)) for title, note, group in _groups(found) if group],
        "retention": _retention(asked),
    }
    return Page("evaluation.html", "Evaluation", "evaluation", facts, figures, content)


def _groups(found: HeldOut) -> list[tuple[str, str, Sequence[Evaluation]]]:
    return [
        ("Scores", "The run's own evaluations: before, on the way and after training.", found.own),
        ("Requested by hand", "Made with arise eval; their tasks and attempts may differ.", found.others),
        ("Without a result", "Infrastructure ended every attempt; Health has the faults.", found.failed),
    ]


def _scores(group: Sequence[Evaluation]) -> Table:
    """Tabulate rate, counts, interval, and the sample deviation over attempts."""
    columns = (
        "evaluation",
        "at iteration",
        "pass rate",
        "passed",
        "low 95 %",
        "high 95 %",
        "deviation, points",
        "faults, left out",
        "skill bytes",
    )
    rows = [
        (
            e.label,
            e.iteration,
            rate(*e.tally),
            OneLine(f"{e.successes} of {e.attempts}"),
            *(interval(*e.tally) or (None, None)),
            decimal(e.spread[1], 1) if e.spread else None,
            e.faults,
            e.skill_bytes,
        )
        for e in group
    ]
    return Table(columns, rows)


def _rates(figure_id: str, title: str, by_label: dict[str, dict[str, Tally]], named: Sequence[Evaluation]) -> Figure:
    names = [ALL, *sorted({name for tallies in by_label.values() for name in tallies})]
    lines, table = [], []
    for name in names:
        dots = []
        for evaluation in named:
            tally = evaluation.tally if name == ALL else by_label[evaluation.label].get(name)
            if tally is None:
                continue
            found = interval(*tally)
            table.append((name or "none", evaluation.label, *tally, rate(*tally), *(found or (None, None))))
            if found:
                dots.append(Dot(evaluation.label, tally.passes / tally.evaluations, *found, counted_rate(*tally)))
        lines.append((name or "none", dots))
    colours = _colours(named)
    columns = (figure_id.removesuffix("s"), "evaluation", "passed", "attempts", "rate", "low 95 %", "high 95 %")
    return Figure(figure_id, title, dot_chart(title, lines, colours), Table(columns, table), "", tuple(colours.items()))


def _colours(named: Sequence[Evaluation]) -> dict[str, str]:
    return {evaluation.label: SERIES[n % len(SERIES)] for n, evaluation in enumerate(named)}


def _behaviours(asked: Asked, held: HeldOut, named: Sequence[Evaluation]) -> list[Figure]:
    """Draw the rubric verdicts on the same attempts; return nothing if none were judged."""
    judged = [evaluation for evaluation in named if evaluation.behaviours]
    colours = {label: colour for label, colour in _colours(named).items() if label in {e.label for e in judged}}
    lines, rows = [], []
    for behaviour in sorted(behaviours(asked.run, held), key=weakness):
        rubric, dots = behaviour.rubric, []
        for evaluation in judged:
            tally = evaluation.behaviours.get(rubric.id, Tally())
            found = interval(*tally)
            if found:
                dots.append(Dot(evaluation.label, tally.passes / tally.evaluations, *found, counted_rate(*tally)))
                link = Link(rubric.id, asked.links.rubric(rubric.id))
                rows.append((link, rubric.criteria_text, evaluation.label, *tally, rate(*tally), *found))
        if dots:
            lines.append((f"{rubric.id} {rubric.criteria_text.removeprefix('The agent ')}", dots))
    columns = ("rubric", "behaviour", "evaluation", "passes", "verdicts", "rate", "low 95 %", "high 95 %")
    figure = Figure(
        "behaviours",
        "Behaviours, no skills shown",
        dot_chart("pass rate of every rubric by evaluation", lines, colours, 1140.0),
        Table(columns, rows),
        "What the judge found in the same attempts. A behaviour that rose here was learned: no skill was shown.",
        tuple(colours.items()),
        wide=True,
    )
    return [figure] if lines else []


def _retention(asked: Asked) -> Table | None:
    """Tabulate retired behaviours on their training tasks, as `arise retention` measured them; None if none retired."""
    gone = retired(asked.run)
    rows: list[tuple[str | Link | int, ...]] = []
    for life in curves(gone, asked.run):
        later = [(k, *found) for k, found in life["later"].items() if found[1]]
        if later:
            link = Link(life["rubric"], asked.links.rubric(life["rubric"]))
            seen = ", ".join(f"{k}: {percent(share)} of {verdicts}" for k, share, verdicts in later)
            rows.append((link, life["criterion"], life["retired"], percent(life["at_retirement"][0]), seen))
    columns = ("rubric", "behaviour", "retired after", "rate then", "later iterations: rate of verdicts")
    return Table(columns, rows) if gone else None


def _tasks(asked: Asked, labels: Sequence[str], task_type: str) -> list[tuple[str, str, list[list[Tried]]]]:
    """Return (task, task type, attempts by evaluation), tasks that fail most in the last evaluation first."""
    tried: dict[str, dict[str, list[AttemptRow]]] = defaultdict(lambda: defaultdict(list))
    types: dict[str, str] = {}
    for label in labels:
        for attempt in asked.run.attempts(label):
            if task_type in ("", attempt.task_type):
                tried[attempt.task_id][label].append(attempt)
                types[attempt.task_id] = attempt.task_type

    def weakness(task_id: str) -> tuple[float, str]:
        newest = next((found for label in reversed(labels) if (found := tried[task_id][label])), [])
        return pass_rate(succeeded(newest)) or 0.0, task_id

    return [
        (task_id, types[task_id], [[_tried(asked, attempt) for attempt in tried[task_id][label]] for label in labels])
        for task_id in sorted(tried, key=weakness)
    ]


def _tried(asked: Asked, attempt: AttemptRow) -> Tried:
    sign, said = {None: ("?", "no reward"), 0: ("✗", "failed"), 1: ("✓", "passed")}[attempt.success]
    link = attempt_link(asked, attempt)
    return Tried(sign, f"attempt {link.text} {said}", link.href)
