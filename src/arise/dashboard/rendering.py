"""From a page to HTML: one environment of escaped templates, and the filters they use."""

import re
import time
from collections.abc import Mapping
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from arise.dashboard.charts import Link
from arise.dashboard.links import Links
from arise.dashboard.pages.page import Page, amount, percent

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
_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")


def visible(text: str) -> str:
    """Control, direction and zero-width characters as signs: what is in a text must be seen, not obeyed."""
    return _UNSEEN.sub(_sign, text)


def _sign(match: re.Match[str]) -> str:
    code = ord(match[0])
    return chr(0x2400 + code) if code < 0x20 else f"⟨U+{code:04X}⟩"


def number(value: object) -> str:
    """A table cell as people read it."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3f}".rstrip("0").rstrip(".") if abs(value) < 1000 else amount(value)
    return visible(str(value))


def clock(at: float) -> str:
    """A moment in the reader's time zone."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))


@cache
def environment() -> Environment:
    """The templates; everything is escaped, a misspelt name is an error."""
    found = Environment(
        loader=PackageLoader("arise.dashboard"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {"visible": visible, "number": number, "percent": percent, "amount": amount, "clock": clock}
    found.tests["link"] = lambda value: isinstance(value, Link)
    return found


def compile_templates() -> None:
    """So that nobody's first page waits for it."""
    for name in environment().list_templates():
        environment().get_template(name)


def render(page: Page, shell: Mapping[str, Any]) -> bytes:
    """The page as UTF-8; what cannot be encoded is written as its code."""
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
    text = environment().get_template(page.template).render(context)
    return text.encode("utf-8", "backslashreplace")
