"""Stacked bars over iterations, and dots with intervals by name."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup

from arise.report.dashboard.charts.axes import Axes
from arise.report.dashboard.charts.lines import MARKS, mark
from arise.report.dashboard.charts.svg import Scale, drawing, element, shown, text
from arise.report.dashboard.charts.tips import tips
from arise.text.numbers import percent

BARS_ON_CHART = 120
LONGEST_NAME = 48


def binned(values_of: Mapping[str, Sequence[float]], numbers: Sequence[int]) -> list[tuple[int, int, dict[str, float]]]:
    """Group iterations into at most `BARS_ON_CHART` ranges; return first, last and the mean of every series."""
    size = max(1, -(-len(numbers) // BARS_ON_CHART))
    found = []
    for start in range(0, len(numbers), size):
        part = slice(start, start + size)
        means = {name: sum(values[part]) / len(values[part]) for name, values in values_of.items()}
        found.append((numbers[part][0], numbers[part][-1], means))
    return found


def stacked_bars(
    label: str,
    numbers: Sequence[int],
    values_of: Mapping[str, Sequence[float]],
    colour_of: Mapping[str, str],
    *,
    width: float = 560.0,
    height: float = 240.0,
) -> Markup:
    """Draw one bar per iteration, or per range of iterations when there are many."""
    bins = binned(values_of, numbers)
    top = max([sum(values.values()) for *_, values in bins], default=1.0) or 1.0
    axes = Axes(
        width, height, min(numbers, default=1) - 0.5, max(numbers, default=1) + 0.5, 0.0, top * 1.02, whole=True
    )
    parts = axes.frame()
    for first, last, values in bins:
        left, right, base = axes.x(first - 0.5), axes.x(last + 0.5), 0.0
        for name, value in values.items():
            if value > 0:
                y, bottom = axes.y(base + value), axes.y(base)
                at = f"iteration {first}" if first == last else f"iterations {first} to {last}, mean"
                said = element("title", f"{name}: {shown(float(value))} at {at}")
                gap = min(1.0, (right - left) * 0.15)
                bar = element(
                    "rect",
                    said,
                    x=left + gap / 2,
                    y=y,
                    width=right - left - gap,
                    height=bottom - y,
                    fill=colour_of[name],
                )
                parts.append(bar)
                base += value
    middles = [(axes.x(first - 0.5) + axes.x(last + 0.5)) / 2 for first, last, _ in bins]
    names = [
        f"iteration {first}" if first == last else f"iterations {first} to {last}, mean" for first, last, _ in bins
    ]
    series = {name: [values[name] for *_, values in bins] for name in values_of}
    return drawing(width, height, label, *parts, tips=tips(middles, names, series, "") if bins else None)


class Dot(NamedTuple):
    """A rate with its interval — `Dot("after", 0.4, 0.3, 0.5, "24 of 60")`."""

    series: str
    value: float
    low: float
    high: float
    said: str


def dot_chart(
    label: str, rows: Sequence[tuple[str, Sequence[Dot]]], colour_of: Mapping[str, str], width: float = 560.0
) -> Markup:
    """Draw one row per name, with a dot and its interval for each series."""
    gutter, top, bottom = gutter_for([name for name, _ in rows]), 8.0, 30.0
    heights = [10.0 + 12.0 * max(1, len(dots)) for _, dots in rows]
    height = top + sum(heights) + bottom
    x = Scale(0.0, 1.0, gutter, width - 20)
    parts: list[Markup] = []
    for value in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(element("line", x1=x(value), x2=x(value), y1=top, y2=height - bottom, class_="grid"))
        parts.append(text(x(value), height - bottom + 16, f"{100 * value:.0f} %", "tick", "middle"))
    at, kinds = top, {name: MARKS[n % len(MARKS)] for n, name in enumerate(colour_of)}
    for (name, dots), tall in zip(rows, heights, strict=True):
        parts.append(text(gutter - 10, at + tall / 2 + 4, short(name, LONGEST_NAME), "name", "end"))
        for n, dot in enumerate(dots):
            y = at + 11.0 + 12.0 * n
            colour = colour_of[dot.series]
            parts.append(
                element("line", x1=x(dot.low), x2=x(dot.high), y1=y, y2=y, stroke=colour, stroke_width=2, opacity=0.55)
            )
            parts.append(mark(kinds[dot.series], x(dot.value), y, colour, f"{name}, {dot.series}: {dot.said}", 4.0))
        at += tall
    return drawing(width, height, label, *parts)


def share_rows(label: str, rows: Sequence[tuple[str, int, int]], colour: str, width: float = 560.0) -> Markup:
    """Draw (name, part, whole) as one bar per row, filled to part / whole."""
    gutter, tall = gutter_for([name for name, *_ in rows]), 22.0
    x, parts = Scale(0.0, 1.0, gutter, width - 70), []
    for n, (name, part, whole) in enumerate(rows):
        y, share = 4 + n * tall, part / whole if whole else 0.0
        parts.append(text(gutter - 10, y + 14, short(name.replace("-", " "), LONGEST_NAME), "name", "end"))
        parts.append(element("rect", x=gutter, y=y + 4, width=x(1.0) - gutter, height=13, rx=2, class_="empty"))
        said = element("title", f"{name}: {part} of {whole}")
        parts.append(element("rect", said, x=gutter, y=y + 4, width=x(share) - gutter, height=13, rx=2, fill=colour))
        parts.append(text(x(1.0) + 6, y + 14, percent(share), "tick"))
    return drawing(width, 10 + tall * len(rows), label, *parts)


def gutter_for(names: Sequence[str]) -> float:
    """Return the width of the longest name, in pixels."""
    return 24.0 + 6.9 * min(LONGEST_NAME, max(map(len, names), default=0))


def short(content: str, limit: int) -> str:
    """Cut a text to a length."""
    return content if len(content) <= limit else content[: limit - 1].rstrip() + "…"
