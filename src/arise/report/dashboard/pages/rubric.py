"""Rubric: its rule, its evidence, its pass rates, its skill's revisions, and its retention."""

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from arise.method.pass_rate import pass_rate
from arise.report.dashboard.charts import Figure, Table
from arise.report.dashboard.charts.figure import Cell
from arise.report.dashboard.charts.lines import Line, line_chart
from arise.report.dashboard.charts.palette import BLUE, CAPABILITY, GREEN, RED
from arise.report.dashboard.pages.page import Asked, Fact, NotFound, Page, interval, rate, share
from arise.report.dashboard.pages.pool import label
from arise.run.facts.held_out import held_out
from arise.run.facts.score import share_interval
from arise.run.facts.windows import Window, pair_windows
from arise.run.pool_rows import PairLife, VerdictCount
from arise.text import numbers
from arise.text.numbers import counted_rate, percent
from arise.types import DiagnosticItem, EvidenceRecord, Rubric, Tally

VERDICTS_ON_PAGE, SOURCES = 40, 6
STUCK = "three refinements in a row did not raise the rate of the rollouts that saw it"
WINDOW_COLUMNS = (
    "iterations",
    "passes",
    "evaluations",
    "rate",
    "low 95 %",
    "high 95 %",
    "unguided passes",
    "unguided evaluations",
    "unguided rate",
    "skill",
    "no verdict",
)
VERDICT_KINDS = ("", "pass", "fail", "not_applicable", "absent")


@dataclass(frozen=True)
class Revision:
    """A skill's text with its changes, and the pass rates before and after the revision."""

    revision: int
    number: int
    words: tuple[tuple[str, str], ...]
    """(same | added | removed, text)"""
    before: Window | None
    after: Window | None


def build(asked: Asked, rubric_id: str, verdict: str = "") -> Page:
    """Build the page of one pair."""
    run = asked.run
    pair = run.pair(rubric_id)
    if pair is None:
        raise NotFound(f"no rubric {rubric_id!r} in this run")
    counts = run.verdict_counts(rubric_id)
    windows = pair_windows(pair, counts, asked.update_every, run.committed())
    limits = run.config().get("pool", {})
    content = {
        "pair": pair,
        "label": label(pair.rubric.criteria_text),
        "colour": CAPABILITY[pair.rubric.capability],
        "revisions": _revisions(pair, windows),
        "issues": [
            _source(asked, record, _about(pair.rubric, record.view.uncovered_issues))
            for record in run.evidence(pair.rubric.issue_refs[:SOURCES])
        ],
        "contrasts": [
            _source(asked, record, _about(pair.rubric, record.view.positive_uncovered_strategies))
            for record in run.evidence(pair.rubric.contrast_refs[:SOURCES])
        ],
        "verdicts": run.verdicts(rubric_id, verdict, limit=VERDICTS_ON_PAGE),
        "verdict": verdict,
        "kinds": VERDICT_KINDS,
        "retention": _retention(asked, rubric_id),
    }
    figures = [_rates(windows, limits), _shown(counts)]
    return Page("rubric.html", f"Rubric {rubric_id}", "pool", _facts(pair, windows), figures, content)


def _facts(pair: PairLife, windows: Sequence[Window]) -> list[Fact]:
    judged = [window for window in windows if window.evaluations]
    when = "" if pair.retired is None else f"after iteration {pair.retired}"
    return [
        Fact(str(pair.standing), "now", STUCK if pair.standing.stuck else when),
        _passed(judged[:1], "passed unguided, first window"),
        _passed(judged[-1:], "passed unguided, last window"),
        Fact(str(sum(window.evaluations for window in windows)), "verdicts", "where it applied"),
        Fact(str(len(pair.skills)), "skill revisions"),
    ]


def _passed(windows: Sequence[Window], name: str) -> Fact:
    """Return the unguided pass rate of one window, with that of all its rollouts."""
    alone, every = (windows[0].unguided, windows[0].tally) if windows else (Tally(), Tally())
    return Fact(percent(pass_rate(alone)), name, f"n = {alone.evaluations}; all rollouts {counted_rate(*every)}")


def _rates(windows: Sequence[Window], limits: dict[str, Any]) -> Figure:
    points = [(w.end, w.rate) for w in windows]
    alone = [(w.end, w.unguided_rate) for w in windows]
    lines = [Line("all rollouts", BLUE, points, _band(windows)), Line("unguided rollouts", GREEN, alone)]
    decides = "all its rollouts" if limits.get("rate", "all") == "all" else "its rollouts without the skill"
    thresholds = [
        (f"retires at {percent(limits.get('retire_at', 0.9))}", limits.get("retire_at", 0.9)),
        (f"skill shown at {percent(limits.get('activate_at', 0.3))}", limits.get("activate_at", 0.3)),
    ]
    rows = [
        (
            w.span,
            w.passes,
            w.evaluations,
            share(w.rate),
            *(interval(w.passes, w.evaluations) or (None, None)),
            *w.unguided,
            share(w.unguided_rate),
            "shown" if w.shown else "hidden",
            w.absent,
        )
        for w in windows
    ]
    return Figure(
        "windows",
        "Pass rate by window",
        line_chart(
            "pass rate by window with thresholds",
            lines,
            percent=True,
            y_range=(0.0, 1.0),
            thresholds=thresholds,
        ),
        Table(WINDOW_COLUMNS, rows),
        f"At the end of a window the rate of {decides} decides the fate: retire, show, rewrite or hide.",
        tuple((line.name, line.colour) for line in lines),
    )


def _band(windows: Sequence[Window]) -> list[tuple[float, float, float]]:
    return [(w.end, *found) for w in windows if (found := interval(w.passes, w.evaluations))]


def _shown(counts: Sequence[VerdictCount]) -> Figure:
    lines = []
    for shown, name, colour in ((False, "skill hidden", BLUE), (True, "skill shown", RED)):
        chosen = [c for c in counts if bool(c.shown) == shown and c.evaluations]
        lines.append(Line(name, colour, [(c.iteration, c.passes / c.evaluations) for c in chosen]))
    rows = [
        (c.iteration, "shown" if c.shown else "hidden", c.passes, c.fails, c.not_applicable, c.absent) for c in counts
    ]
    return Figure(
        "skill-shown",
        "With and without its skill",
        line_chart("pass rate with and without the skill", lines, percent=True, y_range=(0.0, 1.0)),
        Table(("iteration", "skill", "passes", "fails", "not applicable", "no verdict"), rows),
        "What counts in the end is the line without the skill: the behaviour is the policy's own then.",
        tuple((line.name, line.colour) for line in lines),
    )


def _revisions(pair: PairLife, windows: Sequence[Window]) -> list[Revision]:
    found, old = [], ""
    for skill in pair.skills:
        before = next((w for w in reversed(windows) if w.last <= skill.k and w.evaluations), None)
        after = next((w for w in windows if w.first > skill.k and w.evaluations), None)
        words = tuple(_changes(old, skill.text)) if skill.revision else (("same", skill.text),)
        found.append(Revision(skill.revision, skill.iteration, words, before, after))
        old = skill.text
    return found


def _changes(old: str, new: str) -> Iterator[tuple[str, str]]:
    """Yield the word-level differences of two texts."""
    a, b = (re.findall(r"\s+|\S+", text) for text in (old, new))
    for kind, a1, a2, b1, b2 in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if kind == "equal":
            yield "same", "".join(a[a1:a2])
            continue
        if a2 > a1:
            yield "removed", "".join(a[a1:a2])
        if b2 > b1:
            yield "added", "".join(b[b1:b2])


def _about(rubric: Rubric, items: Sequence[DiagnosticItem]) -> Sequence[DiagnosticItem]:
    """Return the items of a record that concern this behaviour."""
    return [item for item in items if item.issue_tag == rubric.issue_tag] or items


def _source(asked: Asked, record: EvidenceRecord, items: Sequence[DiagnosticItem]) -> dict[str, object]:
    return {
        "id": record.view.evidence_id,
        "href": asked.links.trajectory(record.trajectory_id),
        "task": record.task_id,
        "items": items[:2],
        "outcome": record.outcome,
    }


def _retention(asked: Asked, rubric_id: str) -> Table:
    """Tabulate held-out attempts judged by this rubric; these never see a skill."""
    rows: list[tuple[Cell, ...]] = []
    found = held_out(asked.run)
    for evaluation in (*found.own, *found.others):
        tally = evaluation.behaviours.get(rubric_id, Tally())
        if tally.evaluations:
            rows.append((evaluation.label, rate(*tally), numbers.interval(*share_interval(tally)), *tally))
    return Table(("evaluation", "pass rate", "interval", "passes", "verdicts where it applied"), rows)
