"""Evaluation: held-out tasks without any evolved skill, infrastructure failures beside the score."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import groupby
from statistics import stdev

from arise.evaluation.retention import curves, retired
from arise.evaluation.score import score
from arise.report.dashboard.charts import Figure, Link, Table
from arise.report.dashboard.charts.bars import Dot, dot_chart
from arise.report.dashboard.charts.palette import SERIES
from arise.report.dashboard.held_out import counts, curve, held_out, principal, summary
from arise.report.dashboard.pages.page import Asked, Fact, Page, interval, percent, rate
from arise.run.rows import AttemptRow
from arise.types import Tally

ALL = "all tasks"
TASKS_ON_PAGE = 400


def build(asked: Asked) -> Page:
    """Every evaluation in the run, side by side."""
    attempts = held_out(asked.run)
    named, labels = principal(attempts), list(attempts)
    facts = [Fact(*found) for found in summary(attempts)[-4:]]
    leaked = sum(attempt.skill_bytes for rows in attempts.values() for attempt in rows)
    facts.append(Fact(f"{leaked} bytes", "evolved skills in prompts", "must be 0: the policy is on its own"))
    figures = [
        _rates("domains", "Pass rate by domain", named, "domain"),
        _rates("types", "Pass rate by task type", named, "task_type"),
        *_behaviours(asked, list(named)),
        *curve(attempts),
    ]
    signs = {label: _signs(attempts[label]) for label in labels}
    shown = sorted({task_id for found in signs.values() for task_id in found})[:TASKS_ON_PAGE]
    tasks = [(task_id, [" ".join(signs[label][task_id]) for label in labels]) for task_id in shown]
    scores = [_score(label, attempts[label]) for label in labels]
    content = {"labels": labels, "tasks": tasks, "scores": scores, "retention": _retention(asked)}
    return Page("evaluation.html", "Evaluation", "evaluation", facts, figures, content)


def _score(label: str, attempts: Sequence[AttemptRow]) -> dict[str, object]:
    """Mean and sample deviation over attempts, as papers report them."""
    won, tried = counts(attempts)
    by_attempt = [counts(list(rows)) for _, rows in groupby(sorted(attempts, key=_number), _number)]
    rates = [100 * w / t for w, t in by_attempt if t]
    return {
        "label": label,
        "iteration": max((attempt.k for attempt in attempts), default=0),
        "rate": rate(won, tried),
        "won": won,
        "tried": tried,
        "interval": interval(won, tried),
        "deviation": stdev(rates) if len(rates) > 1 else None,
        "faults": len(attempts) - tried,
        "skill_bytes": sum(attempt.skill_bytes for attempt in attempts),
    }


def _number(attempt: AttemptRow) -> int:
    return attempt.attempt


def _rates(figure_id: str, title: str, attempts: dict[str, list[AttemptRow]], field: str) -> Figure:
    tallies: dict[str, dict[str, list[AttemptRow]]] = defaultdict(lambda: defaultdict(list))
    for label, rows in attempts.items():
        for attempt in rows:
            for name in (ALL, getattr(attempt, field) or "none"):
                tallies[name][label].append(attempt)
    names = sorted(tallies, key=lambda name: (name != ALL, name))
    lines, table = [], []
    for name in names:
        dots = []
        for label, rows in tallies[name].items():
            won, tried = counts(rows)
            found = interval(won, tried)
            table.append((name, label, won, tried, rate(won, tried), *(found or (None, None)), len(rows) - tried))
            if found:
                dots.append(Dot(label, won / tried, *found, f"{100 * won / tried:.1f} % ({won} of {tried})"))
        lines.append((name, dots))
    colours = {label: SERIES[n % len(SERIES)] for n, label in enumerate(attempts)}
    columns = (
        figure_id.removesuffix("s"),
        "evaluation",
        "passed",
        "attempts",
        "rate",
        "low 95 %",
        "high 95 %",
        "faults",
    )
    return Figure(figure_id, title, dot_chart(title, lines, colours), Table(columns, table), "", tuple(colours.items()))


def _behaviours(asked: Asked, labels: Sequence[str]) -> list[Figure]:
    """What the rubrics found in the same attempts; nothing where no attempt was judged."""
    tallies = {label: score(label, asked.run.query).behaviours for label in labels}
    tallies = {label: found for label, found in tallies.items() if found}
    colours = {label: SERIES[labels.index(label) % len(SERIES)] for label in tallies}
    lines, rows = [], []
    for pair in asked.run.pairs():
        dots = []
        for label, (passes, tried) in ((label, found.get(pair.rubric.id, Tally())) for label, found in tallies.items()):
            found = interval(passes, tried)
            if found:
                said = f"{100 * passes / tried:.1f} % ({passes} of {tried})"
                dots.append(Dot(label, passes / tried, *found, said))
                link = Link(pair.rubric.id, asked.links.rubric(pair.rubric.id))
                rows.append((link, pair.rubric.criteria_text, label, passes, tried, passes / tried, *found))
        if dots:
            lines.append((f"{pair.rubric.id} {pair.rubric.criteria_text.removeprefix('The agent ')}", dots))
    columns = ("rubric", "behaviour", "evaluation", "passes", "verdicts", "rate", "low 95 %", "high 95 %")
    figure = Figure(
        "behaviours",
        "Behaviours, no skills shown",
        dot_chart("pass rate of every rubric by evaluation", lines, colours, 1140.0),
        Table(columns, rows),
        "What the judge found in the same attempts: a behaviour that rose here is the policy's own.",
        tuple(colours.items()),
        wide=True,
    )
    return [figure] if lines else []


def _retention(asked: Asked) -> Table | None:
    """Retired behaviours on their own training tasks, as `arise retention` measured them; None when none retired."""
    gone = retired(asked.run.query, asked.update_every)
    rows: list[tuple[str | Link | int, ...]] = []
    for life in curves(gone, asked.run.query):
        later = [(k, *found) for k, found in life["later"].items() if found[1]]
        if later:
            link = Link(life["rubric"], asked.links.rubric(life["rubric"]))
            seen = ", ".join(f"{k}: {percent(share, 0)} of {verdicts}" for k, share, verdicts in later)
            rows.append((link, life["criterion"], life["retired"], percent(life["at_retirement"][0], 0), seen))
    columns = ("rubric", "behaviour", "retired after", "rate then", "later iterations: rate of verdicts")
    return Table(columns, rows) if gone else None


def _signs(attempts: Sequence[AttemptRow]) -> dict[str, list[str]]:
    """By task one sign an attempt: a check, a cross, or a question mark for a fault."""
    signs: dict[str, list[str]] = defaultdict(list)
    for attempt in attempts:
        signs[attempt.task_id].append({None: "?", 0: "✗", 1: "✓"}[attempt.success])
    return signs
