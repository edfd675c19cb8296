"""The lives of rubrics as lanes: pass rate as colour, skill shown as an under-line, events as signs."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from arise.report.dashboard.charts.lines import mark
from arise.report.dashboard.charts.palette import RED, viridis
from arise.report.dashboard.charts.svg import Scale, drawing, element, text
from arise.run.pool_rows import EVENTS
from arise.text.numbers import FEW, counted_rate

WIDTH, HEIGHT, BAR, TOP, LEFT, RIGHT = 600.0, 32.0, 13.0, 13.0, 12.0, 18.0
"""A strip: signs of events above the bar, an under-line below it where the skill was shown."""
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
    """One behaviour: its names with links, newest first, its unguided rate, its windows, its events (number, kind)."""

    name: str
    ids: tuple[tuple[str, str], ...]
    colour: str
    rate: str
    counts: str
    standing: str
    stretches: tuple[Stretch, ...]
    events: tuple[tuple[int, str], ...]


def swimlanes(label: str, lanes: Sequence[Lane], last: int) -> Markup:
    """Draw all lanes on one axis of iterations; names are text, so that a narrow page can put them above the strips."""
    x = Scale(0.0, float(max(last, 1)), LEFT, WIDTH - RIGHT)
    ticks = [value for value in x.ticks(8) if value == int(value)]
    labels = [text(x(value), 12, int(value), "tick", "middle") for value in ticks]
    axis = drawing(WIDTH, 16.0, "iterations", *labels)
    head = element(
        "div",
        element("span", "behaviour"),
        element("span", "unguided now"),
        axis,
        class_="lane lane-head",
    )
    return element(
        "div", head, *(_lane(lane, x, ticks) for lane in lanes), class_="lanes", role="group", aria_label=label
    )


def _lane(lane: Lane, x: Scale, ticks: Sequence[float]) -> Markup:
    (newest, href), *older = lane.ids
    chip = element("rect", width=11, height=11, rx=2, fill=lane.colour)
    name = element(
        "div",
        element("svg", chip, width=11, height=11, aria_hidden="true"),
        " ",
        element("a", element("small", newest), " ", lane.name, href=href),
        *(element("a", f" also {rubric_id}", href=address, class_="minor") for rubric_id, address in older),
        class_="lane-name",
    )
    rate = element(
        "div", element("b", lane.rate), " ", lane.counts, element("small", lane.standing), class_="lane-rate"
    )
    return element("div", name, rate, _strip(lane, x, ticks), class_="lane")


def _strip(lane: Lane, x: Scale, ticks: Sequence[float]) -> Markup:
    parts = [element("line", x1=x(value), x2=x(value), y1=0, y2=HEIGHT, class_="grid") for value in ticks]
    for stretch in lane.stretches:
        left, right = x(stretch.first - 1), x(stretch.last)
        width = max(right - left - 1, 0.5)
        parts.append(_stretch(stretch, left + 0.5, width, TOP))
        if stretch.shown:
            parts.append(element("rect", x=left + 0.5, y=TOP + BAR + 2, width=width, height=3, fill=RED))
    beside = {"born": -6.0, "imported": -6.0, "retire": 9.0}
    for number, kind in lane.events:
        height = TOP + BAR / 2 if kind in beside else TOP - 6
        parts.append(sign(kind, x(number) + beside.get(kind, 0.0), height, number))
    return drawing(WIDTH, HEIGHT, f"pass rate of {lane.ids[0][0]} over the iterations", *parts)


def _stretch(stretch: Stretch, x: float, width: float, y: float) -> Markup:
    span = f"iterations {stretch.first} to {stretch.last}"
    box = {"x": x, "y": y, "width": width, "height": BAR, "rx": 2}
    if not stretch.evaluations:
        return element("rect", element("title", f"{span}: no applicable verdict"), class_="empty", **box)
    rate = stretch.passes / stretch.evaluations
    said = f"{span}: {counted_rate(stretch.passes, stretch.evaluations)}"
    if stretch.shown:
        said += ", skill shown"
    pale = {"fill_opacity": 0.3} if stretch.evaluations < FEW else {}
    return element("rect", element("title", said), fill=viridis(rate), **box, **pale)


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
