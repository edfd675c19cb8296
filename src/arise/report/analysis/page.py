"""The report as one HTML file: gaps, rubrics, evidence and the turns around every quote. No scripts or requests."""

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from arise.analyze.gaps import Kind
from arise.report.analysis.markdown import METHOD
from arise.report.analysis.screen import TITLES, coverage_lines, pass_line, percent, tested
from arise.report.dashboard.app import static_text
from arise.text.escape import visible

TITLE = "What this agent keeps getting wrong"
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
STYLES = ("arise.css", "analysis.css")


def page(facts: Mapping[str, Any]) -> str:
    """Return the whole report with all trajectory text escaped."""
    inline = f"<style>{''.join(map(static_text, STYLES))}</style>"
    sections = "".join(_class(kind, title, facts) for kind, title in TITLES.items())
    quotes = [(gap, quote) for gap in facts["gaps"] for quote in (*gap["quotes"], *gap["quotes_in_passes"])]
    evidence = "".join(_evidence(gap, quote) for gap, quote in quotes)
    return "".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{TITLE} · ARISE</title>{inline}",
            '</head><body class="analysis"><header><span class="brand">ARISE</span><span>analysis</span></header>',
            '<main id="main"><h1>What this agent keeps getting wrong</h1>',
            f"<pre>{_text(chr(10).join([*coverage_lines(facts), pass_line(facts)]))}</pre>",
            _contents(facts),
            sections,
            "<h2>How to read this</h2>",
            f"<p>{_text(METHOD.partition('. ')[2])}</p>",
            f'<h2 id="evidence">Evidence</h2>{evidence}' if evidence else "",
            "</main></body></html>",
        ]
    )


def _contents(facts: Mapping[str, Any]) -> str:
    worst = [gap for gap in facts["gaps"] if gap["kind"] in (Kind.ASSOCIATED, Kind.SUSPECTED, Kind.NO_CONTRAST)][:3]
    if not worst:
        judge = facts["coverage"]["judge"]
        left = judge and judge["unjudged"]
        return f"<p>No behaviour stands out.{' Unjudged attempts are not known to be clean.' if left else ''}</p>"
    items = "".join(f'<li><a href="#{gap["id"]}">{_text(gap["habit"])}</a>: {_lead(gap)}</li>' for gap in worst)
    return f"<p>Look first at:</p><ol>{items}</ol>"


def _lead(gap: Mapping[str, Any]) -> str:
    if gap["kind"] == Kind.NO_CONTRAST:
        return f"{percent(gap['overall'])} attempts."
    return f"{percent(gap['in_failures'])} failures, {percent(gap['in_passes'])} passes."


def _class(kind: Kind, title: str, facts: Mapping[str, Any]) -> str:
    gaps = [gap for gap in facts["gaps"] if gap["kind"] == kind.value]
    return f"<h2>{_text(title)}</h2>" + "".join(map(_gap, gaps)) if gaps else ""


def _gap(gap: Mapping[str, Any]) -> str:
    known = gap["in_failures"]["total"] and gap["in_passes"]["total"]
    rates = [("failures", gap["in_failures"], ""), ("passes", gap["in_passes"], " pass")]
    bars = "".join(_bar(*rate) for rate in (rates if known else [("all", gap["overall"], "")]))
    gain = f" · could bring up to {gap['gain_points']:.1f} points" if gap["gain_points"] >= 0.05 else ""
    quotes = "".join(_quote(quote) for quote in gap["quotes"])
    in_passes = "".join(_quote(quote) for quote in gap["quotes_in_passes"])
    return (
        f'<section class="gap" id="{_text(gap["id"])}"><h3>{_text(gap["habit"])}</h3>'
        f"<p>{_text(gap['name'])} · {_text(gap['capability'])} · {gap['tasks']:,} tasks · {tested(gap)}{gain}</p>"
        f'<div class="bars">{bars}</div>{quotes}'
        + (f"<details><summary>Seen in a pass as well</summary>{in_passes}</details>" if in_passes else "")
        + f"<details><summary>Rubric and skill</summary><p><b>Wanted:</b> {_text(gap['criterion'])}</p>"
        f"<p><b>Applies:</b> {_text(gap['applies'])}</p>"
        f"<p><b>Rule:</b> {_text(gap['rule'])}</p><p><b>Skill:</b> {_text(gap['skill'])}</p></details></section>"
    )


def _bar(name: str, rate: Mapping[str, Any], style: str) -> str:
    width = 100 * (rate["rate"] or 0.0)
    shape = f'<rect width="{width:.1f}" height="4"/>'
    bar = f'<svg class="bar{style}" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">{shape}</svg>'
    return f"<span>{name}</span>{bar}<span>{percent(rate)}</span>"


def _quote(quote: Mapping[str, Any]) -> str:
    return (
        f"<blockquote><code>{_text(quote['quote'])}</code><br>{_text(quote['why'])} "
        f'<a href="#{_text(quote["id"])}">turn {quote["turn"]} of {_text(quote["source"])}</a></blockquote>'
    )


def _evidence(gap: Mapping[str, Any], quote: Mapping[str, Any]) -> str:
    outcome = {True: "passed", False: "failed", None: "outcome unknown"}[quote["passed"]]
    turns = "".join(_turn(turn, quote) for turn in quote["turns"])
    return (
        f'<section id="{_text(quote["id"])}"><h3>{_text(quote["task"])}: {outcome}</h3>'
        f"<p>{_text(quote['source'])}, turn {quote['turn']} · "
        f'<a href="#{_text(gap["id"])}">{_text(gap["name"])}</a></p>'
        f"<details><summary>Instruction</summary><pre>{_text(quote['instruction'])}</pre></details>{turns}</section>"
    )


def _turn(turn: Mapping[str, Any], quote: Mapping[str, Any]) -> str:
    quoted = turn["number"] == quote["turn"]
    parts: Iterable[str] = (
        f"<p>{_marked(turn['text'], quote, quoted)}</p>" if turn["text"] else "",
        *(f"<pre><code>{_marked(call['call'], quote, quoted)}</code></pre>" for call in turn["calls"]),
        *(
            f"<details{' open' if quoted else ''}><summary{' class=error' if seen['error'] else ''}>"
            f"{'error' if seen['error'] else 'result'}</summary>"
            f"<pre>{_marked(seen['text'], quote, quoted)}</pre></details>"
            for seen in turn["results"]
        ),
    )
    style = "turn quoted" if quoted else "turn"
    return f'<div class="{style}"><b>turn {turn["number"]}</b>{"".join(parts)}</div>'


def _marked(text: str, quote: Mapping[str, Any], quoted: bool) -> str:
    before, found, after = text.partition(quote["quote"]) if quoted else (text, "", "")
    return f"{_text(before)}<mark>{_text(found)}</mark>{_text(after)}" if found else _text(text)


def _text(text: object) -> str:
    return escape(visible(str(text)))
