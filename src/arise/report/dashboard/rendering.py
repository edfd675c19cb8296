"""Render pages as HTML: one environment of escaped templates, and the filters they use."""

import time
from collections.abc import Mapping
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, UndefinedError
from markupsafe import Markup, escape

from arise.report.dashboard.charts import Link, OneLine, Share
from arise.report.dashboard.links import Links
from arise.report.dashboard.pages.page import Page, brief
from arise.run.facts.score import rate_text
from arise.run.numbering import rollout_name
from arise.text import numbers
from arise.text.escape import visible

SECTIONS = (
    ("", "Overview"),
    ("pool", "Pool"),
    ("sampler", "Sampler"),
    ("tasks", "Tasks"),
    ("rollouts", "Rollouts"),
    ("judge", "Judge and cost"),
    ("evaluation", "Evaluation"),
    ("health", "Health"),
)


def number(value: object) -> str:
    """Write a table cell."""
    if value is None:
        return numbers.MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Share):
        return numbers.percent(value)
    if isinstance(value, float):
        return numbers.decimal(value, 3).rstrip("0").rstrip(".") if abs(value) < 1000 else numbers.amount(value)
    return str(value)


def clock(at: float) -> str:
    """Write a timestamp in local time."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))


def with_code(text: str) -> Markup:
    """Escape a message and format the text between backticks as code."""
    parts = [escape(visible(part)) for part in text.split("`")]
    if len(parts) % 2 == 0:
        return escape(visible(text))
    return Markup("").join(Markup("<code>{}</code>").format(part) if i % 2 else part for i, part in enumerate(parts))


def _shown(value: object) -> object:
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def environment() -> Environment:
    """Return the template environment, with autoescape and errors for undefined names."""
    found = Environment(
        loader=PackageLoader("arise.report.dashboard"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {
        "number": number,
        "brief": brief,
        "rollout": rollout_name,
        "percent": numbers.percent,
        "rate": rate_text,
        "difference": numbers.signed,
        "dollars": numbers.dollars,
        "amount": numbers.amount,
        "clock": clock,
        "with_code": with_code,
    }
    found.tests["link"] = lambda value: isinstance(value, Link)
    found.tests["one_line"] = lambda value: isinstance(value, OneLine)
    return found


def compile_templates() -> None:
    """Compile all templates in advance, so that the first page is not slow."""
    for name in environment().list_templates():
        environment().get_template(name)


def render(page: Page, shell: Mapping[str, Any]) -> bytes:
    """Render a page as UTF-8; escape characters that cannot be encoded."""
    run = shell.get("run")
    context = {
        "page": page,
        "figures": {figure.id: figure for figure in page.figures},
        "sections": SECTIONS,
        "links": Links(run["name"]) if run else None,
        "run": None,
        "exported": False,
        **shell,
        **page.content,
    }
    try:
        text = environment().get_template(page.template).render(context)
    except UndefinedError as error:
        raise ValueError(f"{page.template} cannot be rendered: {error}") from error
    return text.encode("utf-8", "backslashreplace")
