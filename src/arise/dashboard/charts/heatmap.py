"""Task type x capability in colour, every cell with its number; a dot where there is no evidence."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from arise.dashboard.charts.bars import short
from arise.dashboard.charts.palette import ink_on, viridis
from arise.dashboard.charts.svg import drawing, element, text

CELL_WIDTH, CELL_HEIGHT, GUTTER, HEAD = 58.0, 24.0, 196.0, 26.0


def heatmap(
    label: str,
    rows: Sequence[str],
    columns: Sequence[str],
    value_of: Mapping[tuple[str, str], float],
    *,
    top: float,
    names: bool = True,
) -> Markup:
    """Values from 0 to `top`, shown in percent; a missing one is a dot."""
    gutter = GUTTER if names else 6.0
    parts = [
        text(gutter + (n + 0.5) * CELL_WIDTH, HEAD - 9, short(column, 9), "tick", "middle")
        for n, column in enumerate(columns)
    ]
    for r, row in enumerate(rows):
        y = HEAD + r * CELL_HEIGHT
        if names:
            parts.append(text(gutter - 8, y + 16, short(row.replace("-", " "), 30), "name", "end"))
        for c, column in enumerate(columns):
            parts += _cell(gutter + c * CELL_WIDTH, y, value_of.get((row, column)), top, f"{row}, {column}")
    width = gutter + CELL_WIDTH * len(columns) + 4
    return drawing(width, HEAD + CELL_HEIGHT * len(rows) + 4, label, *parts)


def _cell(x: float, y: float, value: float | None, top: float, name: str) -> list[Markup]:
    middle = x + CELL_WIDTH / 2
    box = {"x": x + 1, "y": y + 1, "width": CELL_WIDTH - 2, "height": CELL_HEIGHT - 2, "rx": 3}
    if value is None:
        return [
            element("rect", element("title", f"{name}: no evidence"), class_="empty", **box),
            text(middle, y + 16, "·", "tick", "middle"),
        ]
    share = value / top if top else 0.0
    said = element("title", f"{name}: {100 * value:.1f} %")
    return [
        element("rect", said, fill=viridis(share), **box),
        text(middle, y + 16, f"{100 * value:.1f}", "cell", "middle", fill=ink_on(share)),
    ]
