"""The numbers behind a chart, for the crosshair of `charts.js`; without scripts the data table has them."""

import json
from collections.abc import Mapping, Sequence

from arise.report.dashboard.charts.svg import shown

DIGITS = 4


def tips(places: Sequence[float], names: Sequence[str], series: Mapping[str, Sequence[float | None]], unit: str) -> str:
    """Return JSON: pixels and names of the x positions, and each series' values there; `unit` is "%" or empty."""
    values = [[name, [None if v is None else round(float(v), DIGITS) for v in found]] for name, found in series.items()]
    return json.dumps({"x": [round(x, 1) for x in places], "at": list(names), "series": values, "unit": unit})


def x_name(name: str, value: float) -> str:
    """Return the name of an x position: `iteration 12`."""
    return f"{name} {shown(float(value))}"
