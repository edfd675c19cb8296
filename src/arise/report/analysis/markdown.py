"""The report in Markdown: the numbers and quotes of the page, for a pull request or a notebook."""

from collections.abc import Mapping
from typing import Any

from arise.analyze.gaps import Kind
from arise.report.analysis.screen import TITLES, coverage_lines, pass_line, percent, tested
from arise.text.escape import visible

METHOD = """\
How to read this. A behaviour is counted only in attempts that gave an opportunity for it. Rates are of attempts with
a valid verdict, with 95 % Wilson intervals. The test is exact and conditional within tasks where at least three tasks
have both outcomes, else within groups, else between tasks; q is the p-value after Benjamini-Hochberg over all
behaviours. Points are an upper bound: they take the association for the cause. Every quote is an exact substring of
the turn it names. Attempts whose verdict is not valid, and failures by time limit, take no part in the contrast."""


def markdown(facts: Mapping[str, Any]) -> str:
    """Return the whole report as Markdown."""
    lines = ["# What this agent keeps getting wrong", "", "```", *coverage_lines(facts), pass_line(facts), "```"]
    for kind, title in TITLES.items():
        gaps = [gap for gap in facts["gaps"] if gap["kind"] == kind.value]
        if gaps:
            lines += ["", f"## {title}"]
        for gap in gaps:
            lines += ["", *_section(gap, kind)]
    return visible("\n".join([*lines, "", "---", METHOD, ""]))


def _section(gap: Mapping[str, Any], kind: Kind) -> list[str]:
    lines = [
        f"### {gap['habit']}",
        "",
        f"- wanted: {gap['criterion']}",
        f"- {gap['name']} · {gap['capability']} · {gap['id']}",
    ]
    if kind is not Kind.NO_CONTRAST:
        lines.append(f"- missed in {percent(gap['in_failures'])} failures, {percent(gap['in_passes'])} passes")
    lines += [
        f"- missed in {percent(gap['overall'])} attempts with the opportunity, {gap['tasks']:,} tasks",
        f"- {tested(gap)}; fixing it could bring up to {gap['gain_points']:.1f} points of pass rate",
        f"- rubric: {gap['rule']}",
    ]
    for quote in gap["quotes"]:
        lines += [
            "",
            f"> `{_inline(quote['quote'])}`",
            f"> {_inline(quote['why'])} — turn {quote['turn']} of {quote['source']}",
        ]
    return lines


def _inline(text: str) -> str:
    return text.replace("`", "'").replace("\n", " ")
