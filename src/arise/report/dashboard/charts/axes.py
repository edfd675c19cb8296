"""The frame shared by line and bar charts: plot area, grid, tick labels."""

from dataclasses import dataclass

from markupsafe import Markup

from arise.report.dashboard.charts.svg import Scale, element, shown, text

LEFT, RIGHT, TOP, BOTTOM = 46.0, 14.0, 12.0, 34.0


@dataclass(frozen=True)
class Axes:
    """A plot area of the given size with its two scales."""

    width: float
    height: float
    x_low: float
    x_high: float
    y_low: float
    y_high: float
    percent: bool = False
    x_name: str = "iteration"
    whole: bool = False
    """Whether y counts things, so that only whole numbers are marked."""

    @property
    def x(self) -> Scale:
        return Scale(self.x_low, self.x_high, LEFT, self.width - RIGHT)

    @property
    def y(self) -> Scale:
        return Scale(self.y_low, self.y_high, self.height - BOTTOM, TOP)

    def frame(self) -> list[Markup]:
        """Return grid lines, tick labels and the name of the x axis."""
        parts = []
        for value in self.y.ticks(4):
            if self.whole and value != int(value):
                continue
            at = self.y(value)
            parts.append(element("line", x1=LEFT, x2=self.width - RIGHT, y1=at, y2=at, class_="grid"))
            parts.append(text(LEFT - 6, at + 4, self._label(value), "tick", "end"))
        for value in self.x.ticks(max(2, int(self.width / 110))):
            if self.x_name in ("iteration", "rollouts") and value != int(value):
                continue
            parts.append(text(self.x(value), self.height - BOTTOM + 16, self._count(value), "tick", "middle"))
        parts.append(text((LEFT + self.width - RIGHT) / 2, self.height - 4, self.x_name, "tick", "middle"))
        return parts

    def _label(self, value: float) -> str:
        return f"{100 * value:.0f} %" if self.percent else self._count(value)

    @staticmethod
    def _count(value: float) -> str:
        if abs(value) >= 1e6:
            return f"{value / 1e6:g}M"
        return f"{value / 1e3:g}k" if abs(value) >= 10_000 else str(shown(float(value)))
