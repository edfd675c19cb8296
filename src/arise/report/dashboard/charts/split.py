"""Advantages of a group's rollouts, split into their task and rubric parts, and the token mask of one of them."""

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from arise.report.dashboard.charts.palette import BLUE, RED
from arise.report.dashboard.charts.svg import Scale, drawing, element, shown, text
from arise.run.chunks import Mask
from arise.text.numbers import signed

COLUMNS = 400


class Part(NamedTuple):
    """One rollout: its name, its link, whether it is selected, and the weighted parts."""

    name: str
    href: str
    current: bool
    task: float | None
    rubric: float | None


def advantage_split(parts: Sequence[Part], width: float = 350.0) -> Markup:
    """Draw the task part above the rubric part; negative values extend to the left."""
    gutter, tall, top = 84.0, 30.0, 8.0
    largest = max([abs(v) for part in parts for v in (part.task, part.rubric) if v is not None], default=1.0) or 1.0
    x = Scale(-largest * 1.1, largest * 1.1, gutter, width - 10)
    height = top + tall * len(parts) + 26
    drawn: list[Markup] = []
    for value in x.ticks(3):
        drawn.append(element("line", x1=x(value), x2=x(value), y1=top, y2=height - 22, class_="grid"))
        drawn.append(text(x(value), height - 8, shown(float(value)), "tick", "middle"))
    drawn.append(element("line", x1=x(0.0), x2=x(0.0), y1=top, y2=height - 22, class_="axis"))
    for n, part in enumerate(parts):
        y = top + n * tall
        label = text(gutter - 12, y + 18, part.name, "name strong" if part.current else "name", "end")
        drawn.append(element("a", label, href=part.href, aria_label=f"rollout {part.name}"))
        if part.task is None or part.rubric is None:
            drawn.append(text(x(0.0) + 6, y + 18, "no advantage: its group was incomplete", "tick"))
            continue
        for value, offset, colour, word in ((part.task, 5, BLUE, "task"), (part.rubric, 15, RED, "rubric")):
            said = element("title", f"{part.name}: {word} part {signed(value, 3)}")
            left, right = sorted((x(0.0), x(value)))
            drawn.append(
                element("rect", said, x=left, y=y + offset, width=max(right - left, 1.0), height=8, rx=1, fill=colour)
            )
    return drawing(width, height, "advantage of each rollout, task and rubric part", *drawn, links=True)


def mask_strip(mask: Mask, width: float = 350.0) -> Markup:
    """Draw a row of tokens: blue tokens are trained on, grey ones are masked."""
    columns = min(COLUMNS, max(mask.tokens, 1))
    share = [0.0] * columns
    for start, length in mask.spans:
        for token_range in _covered(start, length, mask.tokens, columns):
            column, part = token_range
            share[column] += part
    wide = width / columns
    bars = [
        element("rect", x=n * wide, y=0, width=wide + 0.3, height=16, fill=BLUE, opacity=round(min(1.0, part), 2))
        for n, part in enumerate(share)
        if part > 0.01
    ]
    trained = sum(length for _, length in mask.spans)
    label = f"{trained} of {mask.tokens} tokens trained on"
    return drawing(width, 16, label, element("rect", x=0, y=0, width=width, height=16, class_="empty"), *bars)


def _covered(start: int, length: int, tokens: int, columns: int) -> list[tuple[int, float]]:
    """Return how much of each column a span of tokens fills."""
    per_column, found = tokens / columns, []
    column = int(start / per_column)
    while column < columns and column * per_column < start + length:
        low, high = max(start, column * per_column), min(start + length, (column + 1) * per_column)
        if high > low:
            found.append((column, (high - low) / per_column))
        column += 1
    return found
