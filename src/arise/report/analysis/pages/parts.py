"""What several pages of an analysis show: outcomes, quotes with their links, rates as dots."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from arise.report.analysis.folder import AttemptLine, attempt_id
from arise.report.analysis.pages.links import AnalysisLinks
from arise.report.analysis.screen import tail
from arise.report.dashboard.charts import Share
from arise.report.dashboard.charts.bars import Dot, dot_chart
from arise.report.dashboard.charts.figure import Figure, Table
from arise.report.dashboard.charts.palette import BLUE, GREEN, RED
from arise.text import numbers

OUTCOMES = {True: "pass", False: "fail", None: "absent"}
WORDS = {True: "passed", False: "failed", None: "no verdict"}
COLOURS = {"in failures": RED, "in passes": GREEN, "in all attempts": BLUE}
LINKS = AnalysisLinks()


@dataclass(frozen=True)
class Quoted:
    """A quote on a page, with the address of the turn it is from."""

    text: str
    why: str
    place: str
    href: str
    task: str
    outcome: str
    word: str


def quoted(quote: Mapping[str, Any]) -> Quoted:
    """Return a quote as a page shows it."""
    href = LINKS.trajectory(attempt_id(quote["source"]), quote["turn"])
    place = f"turn {quote['turn']} of {tail(quote['source'])}"
    return Quoted(
        quote["quote"], quote["why"], place, href, quote["task"], OUTCOMES[quote["passed"]], WORDS[quote["passed"]]
    )


def rate_cell(rate: Mapping[str, Any]) -> str:
    """Write a rate with the counts behind it, for a table."""
    return numbers.counted_rate(rate["count"], rate["total"])


def series_of(gap: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the rates of a behaviour by name: in failures and in passes, or in all attempts without a contrast."""
    known = gap["in_failures"]["total"] and gap["in_passes"]["total"]
    contrast = {"in failures": gap["in_failures"], "in passes": gap["in_passes"]}
    return contrast if known else {"in all attempts": gap["overall"]}


def rates(title: str, gaps: Iterable[Mapping[str, Any]], note: str) -> Figure:
    """Draw the rates of behaviours as dots with their intervals; a rate of few attempts is in the table only."""
    rows, table, drawn = [], [], set()
    for gap in gaps:
        dots = []
        for name, rate in series_of(gap).items():
            low, high = rate["interval"] or (0.0, 0.0)
            shares = [Share(value) if rate["total"] else None for value in (rate["rate"] or 0.0, low, high)]
            table.append((gap["habit"], name, *shares, rate["count"], rate["total"]))
            if rate["total"] >= numbers.FEW:
                drawn.add(name)
                dots.append(Dot(name, rate["rate"], low, high, rate_cell(rate)))
        if dots:
            rows.append((gap["habit"], dots))
    colours = {name: colour for name, colour in COLOURS.items() if name in drawn}
    columns = ("behaviour", "where", "rate", "low", "high", "missed in", "of")
    svg = dot_chart(title, rows, colours, 1140.0)
    return Figure("rates", title, svg, Table(columns, table), note, tuple(colours.items()), wide=True)


def outcome_of(line: AttemptLine) -> str:
    """Return the outcome of an attempt in words, with what kept it from being a verdict."""
    return WORDS[line.passed] if line.triage == "valid" else f"{WORDS[line.passed]}: {line.triage}"
