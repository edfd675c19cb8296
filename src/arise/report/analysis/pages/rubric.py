"""One behaviour of an analysis: its rates, its rubric and skill, its quotes, and the attempts that show it."""

from collections.abc import Mapping
from typing import Any

from arise.report.analysis.folder import AttemptLine, StoredAnalysis
from arise.report.analysis.pages.parts import LINKS, outcome_of, quoted, rate_cell, rates
from arise.report.analysis.screen import TITLES, tested
from arise.report.dashboard.charts import Link, Table
from arise.report.dashboard.pages.page import Fact, NotFound, Page
from arise.text.numbers import amount

SHOWN = 40
"""Attempts on the page; the list of attempts has all."""
COLUMNS = ("attempt", "task", "outcome", "turn")


def build(analysis: StoredAnalysis, behaviour: str) -> Page:
    """Build the page of one behaviour."""
    gap = next((gap for gap in analysis.facts["gaps"] if gap["id"] == behaviour), None)
    if gap is None:
        raise NotFound(f"no behaviour {behaviour!r} was seen in this analysis")
    showing = [line for line in analysis.attempts if line.behaviours.get(behaviour)]
    showing.sort(key=lambda line: ({False: 0, None: 1, True: 2}[line.passed], line.task, line.source))
    content = {
        "gap": gap,
        "kind": next(title for kind, title in TITLES.items() if kind.value == gap["kind"]),
        "quotes": [quoted(quote) for quote in gap["quotes"]],
        "in_passes": [quoted(quote) for quote in gap["quotes_in_passes"]],
        "attempts": Table(COLUMNS, [_row(line, behaviour) for line in showing[:SHOWN]]),
        "more": len(showing) - SHOWN if len(showing) > SHOWN else 0,
        "all_attempts": LINKS.attempts(behaviour=behaviour),
    }
    figure = rates("How often it was seen", [gap], "Dots are rates, lines their 95 % intervals.")
    return Page("analysis_rubric.html", str(gap["name"]), "", _facts(gap), [figure], content)


def _facts(gap: Mapping[str, Any]) -> list[Fact]:
    known = gap["in_failures"]["total"] and gap["in_passes"]["total"]
    contrast = [
        Fact(rate_cell(gap["in_failures"]), "of failures"),
        Fact(rate_cell(gap["in_passes"]), "of passes"),
    ]
    brings = gap["gain_points"] >= 0.05
    gain = (f"{gap['gain_points']:.1f}", f"at most; {tested(gap)}") if brings else ("none", tested(gap))
    return [
        *(contrast if known else [Fact(rate_cell(gap["overall"]), "of attempts", "that gave the opportunity")]),
        Fact(amount(gap["tasks"]), "tasks"),
        *([Fact(gain[0], "points it could bring", gain[1])] if known else []),
    ]


def _row(line: AttemptLine, behaviour: str) -> tuple[Link, str, str, Link | str]:
    turn = line.turn_of.get(behaviour, 0)
    place = Link(str(turn), LINKS.trajectory(line.id, turn)) if turn else ""
    return Link(line.source, LINKS.trajectory(line.id)), line.task, outcome_of(line), place
