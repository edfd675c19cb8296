"""Gaps: what the agent keeps getting wrong, in the order of what mending it could bring, and what was read."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from arise.analyze.gaps import Kind
from arise.report.analysis.folder import StoredAnalysis
from arise.report.analysis.markdown import METHOD
from arise.report.analysis.pages.parts import LINKS, Quoted, quoted, rate_cell, rates
from arise.report.analysis.screen import TITLES, coverage_lines, percent, tested
from arise.report.dashboard.charts import Link, Table
from arise.report.dashboard.pages.page import Fact, Page
from arise.text.numbers import amount
from arise.text.numbers import percent as percentage

LED, DRAWN = 3, 12
"""Behaviours that are shown with a quote, and those in the chart."""
LEADING = (Kind.ASSOCIATED, Kind.SUSPECTED, Kind.NO_CONTRAST)
COLUMNS = ("behaviour", "capability", "in failures", "in passes", "all attempts", "tasks", "tested", "could bring")


@dataclass(frozen=True)
class Lead:
    """One of the first behaviours, with its rates in words and a quote."""

    habit: str
    href: str
    rates: str
    about: str
    quote: Quoted | None


def build(analysis: StoredAnalysis) -> Page:
    """Build the first page: pass rate, the first gaps with a quote each, then all behaviours by class."""
    facts = analysis.facts
    gaps = [(kind, [gap for gap in facts["gaps"] if gap["kind"] == kind.value]) for kind in TITLES]
    leading = [gap for kind, found in gaps if kind in LEADING for gap in found]
    figures = []
    if leading:
        note = "Dots are rates, lines their 95 % intervals; a rate of fewer than five attempts is only in the table."
        figures.append(rates("How often the first behaviours were seen", leading[:DRAWN], note))
    content = {
        "pass_rate": facts["pass_rate"],
        "raw": percent(facts["raw_pass_rate"]),
        "interval": percent(facts["pass_rate"]),
        "rate": percentage(facts["pass_rate"]["rate"]),
        "partial": facts["coverage"]["partial_rewards"],
        "leads": [_lead(gap) for gap in leading[:LED]],
        "classes": [(TITLES[kind], _table(found)) for kind, found in gaps if found],
        "coverage": "\n".join(coverage_lines(facts)),
        "method": METHOD.partition(". ")[2],
        "unjudged": bool(facts["coverage"]["judge"] and facts["coverage"]["judge"]["unjudged"]),
        "paths": facts["paths"],
    }
    return Page("analysis_gaps.html", "Gaps", "", _facts(facts), figures, content)


def _facts(facts: Mapping[str, Any]) -> list[Fact]:
    coverage = facts["coverage"]
    skipped = sum(entry["count"] for entry in coverage["skipped"]) + coverage["duplicates"]
    judge = coverage["judge"]
    judged = judge["judged"] if judge else coverage["analysed"]
    return [
        Fact(amount(coverage["found"]), "attempts found"),
        Fact(amount(coverage["parsed"]), "parsed", f"{amount(skipped)} skipped"),
        Fact(amount(coverage["outcome_known"]), "outcome known"),
        Fact(amount(judged), "judged", f"by {judge['identity']}" if judge else "by offline detectors"),
    ]


def _lead(gap: Mapping[str, Any]) -> Lead:
    words = f"{percent(gap['in_failures'])} failures, {percent(gap['in_passes'])} passes; {tested(gap)}"
    if gap["kind"] == Kind.NO_CONTRAST:
        words = f"{percent(gap['overall'])} attempts that gave the opportunity"
    about = f"{gap['name']} · {gap['capability']} · {gap['tasks']:,} tasks{_gain(gap, ' · could bring up to ')}"
    quotes = gap["quotes"]
    return Lead(gap["habit"], LINKS.rubric(gap["id"]), words, about, quoted(quotes[0]) if quotes else None)


def _gain(gap: Mapping[str, Any], before: str = "") -> str:
    points = gap["gain_points"]
    return f"{before}{points:+.1f} points" if points >= 0.05 else ""


def _table(gaps: list[Mapping[str, Any]]) -> Table:
    rows = [
        (
            Link(gap["habit"], LINKS.rubric(gap["id"])),
            gap["capability"],
            rate_cell(gap["in_failures"]),
            rate_cell(gap["in_passes"]),
            rate_cell(gap["overall"]),
            gap["tasks"],
            tested(gap),
            _gain(gap),
        )
        for gap in gaps
    ]
    return Table(COLUMNS, rows)
