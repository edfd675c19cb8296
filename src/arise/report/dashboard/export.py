"""Export a run as one self-contained HTML file: every page and rubric, the last attempts, no scripts."""

import logging
import re
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from html import escape, unescape
from typing import Any

from arise.report.dashboard.app import static_text
from arise.report.dashboard.catalogue import Catalogue
from arise.report.dashboard.pages import compare, evaluation, health, judge, overview, pool, rubric, sampler, tasks
from arise.report.dashboard.pages import trajectory as one_rollout
from arise.report.dashboard.pages.page import Asked, Page
from arise.report.dashboard.rendering import render
from arise.report.dashboard.responses import standing
from arise.text.progress import Progress

log = logging.getLogger(__name__)

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
RUBRICS, ATTEMPTS = 80, 8
_MAIN = re.compile(r'<main id="main"[^>]*>(.*)</main>', re.DOTALL)
_REFERENCE = re.compile(r'\b(href|id|aria-labelledby|for)="([^"]*)"')
_HEADING = re.compile(r"<(/?)h([1-4])\b")

Build = Callable[[Asked], Page]


def export(catalogue: Catalogue) -> str:
    """Export all runs of a catalogue as one HTML file."""
    pages = [page for name in catalogue.runs() for page in _pages_of(catalogue, name)]
    if len(catalogue.runs()) > 1:
        pages.append(("Compare", "/compare", _comparison(catalogue)))
    anchors = {address: f"p{n}" for n, (_, address, _) in enumerate(pages)}
    sections = [
        f'<section class="page" id="p{n}" aria-label="{escape(title)}">{_within(html, f"p{n}", anchors)}</section>'
        for n, (title, _, html) in enumerate(pages)
    ]
    contents = "".join(f'<li><a href="#p{n}">{escape(title)}</a></li>' for n, (title, _, _) in enumerate(pages))
    names = ", ".join(catalogue.runs())
    return "".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{escape(names)} · ARISE</title><style>{static_text('arise.css')}</style></head><body>",
            f'<header><span class="brand">ARISE</span><span>{escape(names)}</span></header><main id="main">',
            f'<h1>Contents</h1><nav aria-label="Contents"><ul class="toc">{contents}</ul></nav>',
            *sections,
            "</main></body></html>",
        ]
    )


def _pages_of(catalogue: Catalogue, name: str) -> list[tuple[str, str, str]]:
    """Return (title, address, HTML) of every page of one run."""
    with catalogue.open(name) as asked:
        links, around = asked.links, {"run": standing(asked), "many": False, "exported": True, "csv_link": str}
        found: list[tuple[str, Build]] = [
            (links.page(), overview.build),
            (links.page("pool"), pool.build),
            (links.page("sampler"), sampler.build),
            (links.page("tasks"), tasks.build),
            (links.page("judge"), judge.build),
            (links.page("evaluation"), evaluation.build),
            (links.page("health"), health.build),
        ]
        rubrics = [pair.rubric.id for pair in asked.run.pairs()[-RUBRICS:]]
        found += [(links.rubric(i), partial(rubric.build, rubric_id=i)) for i in rubrics]
        attempts = [row.id for row in asked.run.rollouts(limit=ATTEMPTS)]
        found += [(links.trajectory(i), partial(one_rollout.build, rollout_id=i)) for i in attempts]
        with Progress(log, f"exporting {name}: pages", len(found)) as wait:
            return [_rendered(asked, address, build, around, wait) for address, build in found]


def _rendered(asked: Asked, address: str, build: Build, around: dict[str, Any], wait: Progress) -> tuple[str, str, str]:
    page = build(asked)
    wait.add()
    return f"{asked.name}: {page.title}", address, _main(render(page, around))


def _comparison(catalogue: Catalogue) -> str:
    with ExitStack() as stack:
        asked = [stack.enter_context(catalogue.open(name)) for name in list(catalogue.runs())[-compare.MOST_RUNS :]]
        return _main(render(compare.build(asked, "iteration"), {"many": True, "exported": True, "csv_link": str}))


def _main(html: bytes) -> str:
    found = _MAIN.search(html.decode())
    assert found, "every page has a main part"
    return found[1]


def _within(html: str, prefix: str, anchors: dict[str, str]) -> str:
    """Make the ids of a page unique, turn links to exported pages into anchors, and remove all others."""

    def reference(match: re.Match[str]) -> str:
        name, value = match[1], unescape(match[2])
        if name != "href":
            return f'{name}="{prefix}-{match[2]}"'
        if value.startswith("#"):
            return f'href="#{prefix}-{escape(value[1:])}"'
        anchor = anchors.get(value.partition("#")[0].partition("?")[0] if value.partition("#")[0] else value)
        return f'href="#{anchor}"' if anchor else ""

    return _HEADING.sub(lambda m: f"<{m[1]}h{min(6, int(m[2]) + 1)}", _REFERENCE.sub(reference, html))
