"""The lives of rubrics as lanes: pass rate as colour, skill shown as an under-line, events as signs."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from arise.report.dashboard.charts.bars import short
from arise.report.dashboard.charts.lines import mark
from arise.report.dashboard.charts.palette import RED, viridis
from arise.report.dashboard.charts.svg import Scale, drawing, element, text
from arise.run.pool_rows import EVENTS
from arise.text.numbers import counted_rate

LANE, BAR, GUTTER, RIGHT, HEAD = 32.0, 12.0, 430.0, 34.0, 26.0
BELOW = 7.0
"""Space between a bar and the lane's lower edge; signs are drawn above the bar, the under-line below."""
BIRTHS = ("born", "imported")


@dataclass(frozen=True)
class Stretch:
    """Iterations first to last (numbers, both included) of one window."""

    first: int
    last: int
    passes: int
    evaluations: int
    shown: bool


@dataclass(frozen=True)
class Lane:
    """One pair: its name, its link, its windows and its events as (iteration number, kind)."""

    rubric_id: str
    name: str
    href: str
    colour: str
    stretches: tuple[Stretch, ...]
    events: tuple[tuple[int, str], ...]


def swimlanes(label: str, lanes: Sequence[Lane], last: int, width: float = 1140.0) -> Markup:
    """Draw all lanes on one axis of iterations."""
    height = HEAD + LANE * len(lanes) + 6
    x = Scale(0.0, float(max(last, 1)), GUTTER, width - RIGHT)
    parts: list[Markup] = []
    for value in x.ticks(10):
        if value == int(value):
            parts.append(element("line", x1=x(value), x2=x(value), y1=HEAD - 6, y2=height - 4, class_="grid"))
            parts.append(text(x(value), HEAD - 11, int(value), "tick", "middle"))
    for n, lane in enumerate(lanes):
        parts += _lane(lane, x, HEAD + n * LANE)
    return drawing(width, height, label, *parts, links=True)


def _lane(lane: Lane, x: Scale, y: float) -> list[Markup]:
    top = y + LANE - BAR - BELOW
    name = element(
        "a",
        element("rect", x=6, y=top + 1, width=11, height=11, rx=2, fill=lane.colour),
        text(24, top + 11, lane.rubric_id, "tick"),
        text(64, top + 11, short(lane.name, 58), "name"),
        href=lane.href,
        aria_label=f"{lane.rubric_id}: {lane.name}",
    )
    parts = [name]
    for stretch in lane.stretches:
        left, right = x(stretch.first - 1), x(stretch.last)
        parts.append(_stretch(stretch, left + 0.5, max(right - left - 1, 0.5), top))
        if stretch.shown:
            parts.append(element("rect", x=left + 0.5, y=top + BAR + 1.5, width=right - left - 1, height=2.5, fill=RED))
    beside = {"born": -7.0, "imported": -7.0, "retire": 9.0}
    for number, kind in lane.events:
        height = top + BAR / 2 if kind in beside else top - 6
        parts.append(sign(kind, x(number) + beside.get(kind, 0.0), height, number))
    return parts


def _stretch(stretch: Stretch, x: float, width: float, y: float) -> Markup:
    span = f"iterations {stretch.first} to {stretch.last}"
    box = {"x": x, "y": y, "width": width, "height": BAR, "rx": 2}
    if not stretch.evaluations:
        return element("rect", element("title", f"{span}: no applicable verdict"), class_="empty", **box)
    rate = stretch.passes / stretch.evaluations
    said = f"{span}: {counted_rate(stretch.passes, stretch.evaluations)}"
    if stretch.shown:
        said += ", skill shown"
    return element("rect", element("title", said), fill=viridis(rate), **box)


def sign(kind: str, x: float, y: float, number: int | None = None) -> Markup:
    """Draw the sign of an event: circle, triangle, diamond or check mark."""
    said = EVENTS.get(kind, kind) + (f" after iteration {number}" if number else "")
    if kind in BIRTHS:
        return element("circle", element("title", said), cx=x, cy=y, r=4, class_="sign hollow")
    if kind == "retire":
        return element(
            "path", element("title", said), d=f"M{x - 5:.1f},{y:.1f}l3.5,4l6.5,-8", class_="sign hollow check"
        )
    shape = {"activate": "triangle", "hide": "triangle-down", "refine": "diamond"}.get(kind, "square")
    return element("g", mark(shape, x, y, "currentColor", said, 4.0), class_="sign")


def legend_sign(kind: str) -> Markup:
    """Draw a sign for the legend."""
    return drawing(18, 16, EVENTS[kind], sign(kind, 8, 8))


def scale_bar(label: str = "pass rate") -> Markup:
    """Draw the colour scale with its ends."""
    boxes = [element("rect", x=4 + n * 12, y=2, width=12, height=12, fill=viridis(n / 10)) for n in range(11)]
    return drawing(
        172, 30, f"colour scale of the {label}, 0 to 100 percent", *boxes,
        text(4, 27, "0 %", "tick"), text(136, 27, "100 %", "tick", "end"),
    )  # fmt: skip
