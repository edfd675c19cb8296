"""Task type x capability in colour, with a number in every cell, or a dot for no evidence."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from arise.report.dashboard.charts.bars import short
from arise.report.dashboard.charts.palette import ink_on, viridis
from arise.report.dashboard.charts.svg import drawing, element, text
from arise.text.numbers import percent, points

CELL_WIDTH, CELL_HEIGHT, GUTTER, GAP = 54.0, 24.0, 240.0, 24.0
Values = Mapping[tuple[str, str], float]


def heatmaps(
    label: str, rows: Sequence[str], columns: Sequence[str], panels: Sequence[tuple[str, Values]], top: float
) -> Markup:
    """Draw panels side by side on one scale from 0 to `top`, values in percent."""
    head = 44.0 if any(name for name, _ in panels) else 24.0
    panel_width = CELL_WIDTH * len(columns) + GAP
    parts: list[Markup] = []
    for n, (name, values) in enumerate(panels):
        left = GUTTER + n * panel_width
        parts.append(text(left, 13, name, "name strong"))
        for c, column in enumerate(columns):
            parts.append(text(left + (c + 0.5) * CELL_WIDTH, head - 8, _brief(column), "tick", "middle"))
            for r, row in enumerate(rows):
                place = left + c * CELL_WIDTH, head + r * CELL_HEIGHT
                parts += _cell(*place, values.get((row, column)), top, f"{row}, {column}")
    for r, row in enumerate(rows):
        parts.append(text(GUTTER - 8, head + r * CELL_HEIGHT + 16, short(row.replace("-", " "), 35), "name", "end"))
    width = GUTTER + panel_width * len(panels) - GAP + 4
    return drawing(width, head + CELL_HEIGHT * len(rows) + 4, label, *parts)


def _brief(column: str) -> str:
    return column if len(column) <= 6 else f"{column[:5]}."


def _cell(x: float, y: float, value: float | None, top: float, name: str) -> list[Markup]:
    middle = x + CELL_WIDTH / 2
    box = {"x": x + 1, "y": y + 1, "width": CELL_WIDTH - 2, "height": CELL_HEIGHT - 2, "rx": 3}
    if value is None:
        return [
            element("rect", element("title", f"{name}: no evidence"), class_="empty", **box),
            text(middle, y + 16, "·", "tick", "middle"),
        ]
    share = value / top if top else 0.0
    said = element("title", f"{name}: {percent(value)}")
    return [
        element("rect", said, fill=viridis(share), **box),
        text(middle, y + 16, points(value), f"cell {ink_on(share)}", "middle"),
    ]
