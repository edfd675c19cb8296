"""SVG elements as escaped markup, and the scales that place values on them."""

from collections.abc import Iterable, Sequence
from math import ceil, floor, isfinite, log10

from markupsafe import Markup, escape

from arise.text.escape import visible


def element(name: str, *children: object, **attributes: object) -> Markup:
    """Return one element; `class_` is class, `stroke_width` is stroke-width, None omits an attribute."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(shown(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    inside = "".join(escape(shown(child)) for child in children)
    return Markup(f"<{name}{written}>{inside}</{name}>")


def shown(value: object) -> object:
    """Write numbers with at most two decimals, and escape control characters in text."""
    if type(value) is str:
        return visible(value)
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else value


def drawing(
    width: float, height: float, label: str, *children: object, links: bool = False, tips: str | None = None
) -> Markup:
    """Return a whole picture with a label for screen readers; set `links` if it contains links.

    `tips` are the numbers for a crosshair, as `charts.tips` writes them.
    """
    return element(
        "svg",
        *children,
        viewBox=f"0 0 {shown(float(width))} {shown(float(height))}",
        width=shown(float(width)),
        height=shown(float(height)),
        role="group" if links else "img",
        aria_label=label,
        data_tips=tips,
        xmlns="http://www.w3.org/2000/svg",
    )


def text(x: float, y: float, content: object, class_: str = "", anchor: str | None = None, **more: object) -> Markup:
    """Return a line of text."""
    return element("text", content, x=x, y=y, class_=class_ or None, text_anchor=anchor, **more)


def polyline(points: Iterable[tuple[float, float]], **attributes: object) -> Markup:
    """Return straight lines through points."""
    path = "M" + "L".join(f"{shown(float(x))},{shown(float(y))}" for x, y in points)
    return element("path", d=path, fill="none", **attributes)


class Scale:
    """A linear map from values to pixels, with round tick values."""

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        self.low, self.high = low, high if high > low else low + 1.0
        self.start, self.end = start, end

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self, wanted: int = 5) -> list[float]:
        """Return about as many round values within the range as wanted."""
        raw = (self.high - self.low) / max(wanted, 1)
        power = 10.0 ** floor(log10(raw))
        unit = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= raw * 0.999)
        first = ceil(self.low / unit - 1e-9)
        return [n * unit for n in range(first, floor(self.high / unit + 1e-9) + 1)]


def finite(values: Iterable[float | None]) -> list[float]:
    """Return the finite numbers among values."""
    return [value for value in values if value is not None and isfinite(value)]


def runs_of_numbers(points: Sequence[tuple[float, float | None]]) -> list[list[tuple[float, float]]]:
    """Split points at missing values, so that the chart shows gaps."""
    runs: list[list[tuple[float, float]]] = [[]]
    for x, y in points:
        if y is None or not isfinite(y):
            runs.append([])
        else:
            runs[-1].append((x, y))
    return [run for run in runs if run]
