"""Line charts with bands, thresholds and points with tooltips."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from arise.report.dashboard.charts.axes import LEFT, RIGHT, Axes
from arise.report.dashboard.charts.svg import drawing, element, finite, polyline, runs_of_numbers, shown, text
from arise.report.dashboard.charts.tips import tips, x_name
from arise.text.numbers import percent

POINTS_WITH_MARKS = 80
MARKS = ("circle", "square", "diamond", "triangle", "triangle-down")
DASHES = (None, "6 3", "2 3", "8 3 2 3")


@dataclass(frozen=True)
class Line:
    """A named series of (x, y), with None for a missing y; `band` is (x, low, high)."""

    name: str
    colour: str
    points: Sequence[tuple[float, float | None]]
    band: Sequence[tuple[float, float, float]] = field(default=())

    @property
    def constant(self) -> list[float]:
        """Return the only value of a line that never changes; it is written as text and does not flatten the others."""
        values = set(finite([y for _, y in self.points]))
        return list(values) if len(values) == 1 and len(self.points) > 1 else []


def line_chart(
    label: str,
    lines: Sequence[Line],
    *,
    width: float = 560.0,
    height: float = 240.0,
    percent: bool = False,
    y_range: tuple[float, float] | None = None,
    thresholds: Sequence[tuple[str, float]] = (),
    x_name: str = "iteration",
) -> Markup:
    """Draw lines that differ in colour, dashes and marks, so that colour is never the only difference."""
    xs = [x for line in lines for x, _ in line.points]
    ys = finite([y for line in lines for _, y in line.points])
    ys += [edge for line in lines for _, low, high in line.band for edge in (low, high)]
    low, high = y_range or (min([0.0, *ys]), max(ys, default=1.0) * 1.05 or 1.0)
    first, last = min(xs, default=0.0), max(xs, default=1.0)
    if first == last:
        first, last = first - 1, last + 1
    axes = Axes(width, height, first, last, low, high, percent, x_name)
    parts = axes.frame()
    for name, value in thresholds:
        at = axes.y(value)
        parts.append(element("line", x1=LEFT, x2=width - RIGHT, y1=at, y2=at, class_="threshold"))
        parts.append(text(LEFT + 4, at + (12 if at < height / 2 else -4), name, "tick"))
    for number, line in enumerate(lines):
        parts += _line(axes, line, number)
    return drawing(width, height, label, *parts, tips=_tips(axes, lines) if xs else None)


def _tips(axes: Axes, lines: Sequence[Line]) -> str:
    at = sorted({float(x) for line in lines for x, _ in line.points})
    values = {}
    for line in lines:
        known = {float(x): y for x, y in line.points}
        values[line.name] = [known.get(x) for x in at]
    names = [x_name(axes.x_name, x) for x in at]
    return tips([axes.x(x) for x in at], names, values, "%" if axes.percent else "")


def _line(axes: Axes, line: Line, number: int) -> list[Markup]:
    parts = []
    if line.band:
        upper = [(axes.x(x), axes.y(high)) for x, _, high in line.band]
        lower = [(axes.x(x), axes.y(low)) for x, low, _ in reversed(line.band)]
        outline = " ".join(f"{shown(float(x))},{shown(float(y))}" for x, y in (*upper, *lower))
        parts.append(element("polygon", points=outline, fill=line.colour, class_="band"))
    for run in runs_of_numbers(line.points):
        places = [(axes.x(x), axes.y(y)) for x, y in run]
        parts.append(polyline(places, stroke=line.colour, class_="line", stroke_dasharray=DASHES[number % 4]))
        if len(line.points) <= POINTS_WITH_MARKS:
            for (x, y), (px, py) in zip(run, places, strict=True):
                said = f"{line.name}: {percent(y)}" if axes.percent else f"{line.name}: {shown(float(y))}"
                parts.append(
                    mark(MARKS[number % len(MARKS)], px, py, line.colour, f"{said} at {axes.x_name} {shown(float(x))}")
                )
    return parts


def mark(kind: str, x: float, y: float, colour: str, title: str, size: float = 3.0) -> Markup:
    """Draw a small shape with a tooltip."""
    said = element("title", title)
    if kind == "circle":
        return element("circle", said, cx=x, cy=y, r=size, fill=colour)
    if kind == "square":
        return element("rect", said, x=x - size, y=y - size, width=2 * size, height=2 * size, fill=colour)
    shapes = {
        "diamond": ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)),
        "triangle": ((0, -1.3), (1.2, 1), (-1.2, 1)),
        "triangle-down": ((0, 1.3), (1.2, -1), (-1.2, -1)),
    }
    corners = " ".join(f"{shown(x + size * dx)},{shown(y + size * dy)}" for dx, dy in shapes[kind])
    return element("polygon", said, points=corners, fill=colour)


def sparkline(label: str, values: Sequence[float | None], colour: str, width: float = 110.0) -> Markup:
    """Draw a line of values between 0 and 1 without axes."""
    height, last = 22.0, max(1, len(values) - 1)
    points = [
        (2 + n * (width - 4) / last, None if v is None else 2 + (1 - v) * (height - 4)) for n, v in enumerate(values)
    ]
    parts = [polyline(run, stroke=colour, class_="line") for run in runs_of_numbers(points) if len(run) > 1]
    parts += [mark("circle", *run[0], colour, label, 1.5) for run in runs_of_numbers(points) if len(run) == 1]
    return drawing(width, height, label, *parts)
