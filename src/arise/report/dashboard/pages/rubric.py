"""Rubric: how often it passes without and with its skill, its rule, its life, its skill's revisions, its evidence."""

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from arise.method.pass_rate import pass_rate
from arise.method.standing import STUCK_AFTER
from arise.report.dashboard.attempt_view import attempt_link
from arise.report.dashboard.charts import Figure, Link, Table
from arise.report.dashboard.charts.figure import Cell
from arise.report.dashboard.charts.lines import Line, line_chart
from arise.report.dashboard.charts.palette import BLUE, CAPABILITY, RED
from arise.report.dashboard.pages.page import Asked, Fact, NotFound, Page, brief, interval, rate, share
from arise.report.dashboard.pages.trajectory import sentence
from arise.run.facts.behaviours import HELD_OUT, Behaviour, behaviours
from arise.run.facts.held_out import HeldOut, held_out
from arise.run.facts.score import share_interval
from arise.run.facts.story import what_is_done
from arise.run.facts.windows import Window, pair_windows
from arise.run.pool_rows import PairLife
from arise.text import numbers
from arise.text.numbers import FEW, percent
from arise.types import DiagnosticItem, EvidenceRecord, Rubric, Tally, Verdict

VERDICTS_ON_PAGE, SOURCES, MISSED = 40, 6, 8
STUCK = f"Its last {STUCK_AFTER} refinements did not raise the rate of the rollouts that saw it."
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
    "guided passes",
    "guided evaluations",
    "guided rate",
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
    found = held_out(run)
    behaviour = next(b for b in behaviours(run, found) if rubric_id in {p.rubric.id for p in b.pairs})
    limits = run.config().get("pool", {})
    content = {
        "pair": pair,
        "stuck": STUCK if pair.standing.stuck else "",
        "worse": _worse(behaviour),
        "under_way": what_is_done(behaviour, {}),
        "same": [p for p in behaviour.pairs if p.rubric.id != rubric_id],
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
        "retention": _retention(found, rubric_id),
        "missed": _missed(asked, found, rubric_id),
    }
    return Page(
        "rubric.html", f"Rubric {rubric_id}", "pool", _facts(behaviour, pair, windows), _rates(windows, limits), content
    )


def _worse(behaviour: Behaviour) -> str:
    """Describe the fall of its unguided rate; empty if it did not fall."""
    change = behaviour.change
    if change is None or change.difference >= 0:
        return ""
    where = "On held-out tasks" if behaviour.source == HELD_OUT else "From the first to the last window of training"
    return f"{where}: {change.from_to}, {change.reading}."


def _facts(behaviour: Behaviour, pair: PairLife, windows: Sequence[Window]) -> list[Fact]:
    alone, guided = behaviour.unguided, behaviour.guided
    when = "" if pair.retired is None else f"after iteration {pair.retired}"
    first = next((w.unguided for w in windows if w.unguided.evaluations), Tally())
    return [
        _rate_fact(alone, f"passed unguided, {behaviour.source}"),
        _rate_fact(guided, "passed with its skill, training"),
        _rate_fact(first, "passed unguided, first window"),
        Fact(str(pair.standing), "now", when),
        Fact(str(sum(window.evaluations for window in windows)), "verdicts", "where it applied"),
        Fact(str(len(pair.skills)), "skill revisions"),
    ]


def _rate_fact(tally: Tally, name: str) -> Fact:
    """Return a rate with its n; counts of few verdicts are shown as counts."""
    if 0 < tally.evaluations < FEW:
        return Fact(f"{tally.passes} of {tally.evaluations}", name, "too few for a rate")
    return Fact(percent(pass_rate(tally)), name, f"n = {tally.evaluations}")


def _rates(windows: Sequence[Window], limits: dict[str, Any]) -> list[Figure]:
    """Draw the rates of windows with enough verdicts; nothing if there is none."""
    alone, guided = ([(w.end, _drawn(t)) for w, t in zip(windows, found, strict=True)] for found in _split(windows))
    band = [(w.end, *found) for w in windows if _drawn(w.unguided) and (found := interval(*w.unguided))]
    lines = [Line("unguided", BLUE, alone, band), Line("with its skill", RED, guided)]
    lines = [line for line in lines if any(rate is not None for _, rate in line.points)]
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
            *w.guided,
            share(pass_rate(w.guided)),
            "shown" if w.shown else "hidden",
            w.absent,
        )
        for w in windows
    ]
    figure = Figure(
        "windows",
        "Pass rate by window, without and with its skill",
        line_chart(
            "pass rate by window without and with the skill",
            lines,
            width=1140.0,
            percent=True,
            y_range=(0.0, 1.0),
            thresholds=thresholds,
        ),
        Table(WINDOW_COLUMNS, rows),
        f"Unguided is what counts: the policy shows the behaviour without its skill. The band is its 95 % interval. "
        f"Rates of fewer than {FEW} verdicts are only in the table. At the end of a window the rate of {decides} "
        "decides what happens: retire, show, rewrite or hide.",
        tuple((line.name, line.colour) for line in lines),
        wide=True,
    )
    return [figure] if lines else []


def _split(windows: Sequence[Window]) -> tuple[list[Tally], list[Tally]]:
    return [w.unguided for w in windows], [w.guided for w in windows]


def _drawn(tally: Tally) -> float | None:
    """Return a rate that a chart may draw."""
    return pass_rate(tally) if tally.evaluations >= FEW else None


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
        "items": [sentence(item) for item in items[:2]],
        "outcome": record.outcome,
    }


def _retention(found: HeldOut, rubric_id: str) -> Table:
    """Tabulate held-out attempts judged by this rubric; these never see a skill."""
    rows: list[tuple[Cell, ...]] = []
    for evaluation in (*found.own, *found.others):
        tally = evaluation.behaviours.get(rubric_id, Tally())
        if tally.evaluations:
            rows.append((evaluation.label, rate(*tally), numbers.interval(*share_interval(tally)), *tally))
    return Table(("evaluation", "pass rate", "interval", "passes", "verdicts where it applied"), rows)


def _missed(asked: Asked, found: HeldOut, rubric_id: str) -> list[Link]:
    """Return links to held-out attempts of the newest evaluation that failed this rubric."""
    if found.now is None:
        return []
    rows = [row for row in asked.run.attempts(found.now.label) if row.verdicts.get(rubric_id) == Verdict.FAIL]
    return [Link(f"{brief(row.task_id)} {row.attempt + 1}", attempt_link(asked, row).href) for row in rows[:MISSED]]
