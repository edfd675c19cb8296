"""What a page is made of, and the small words pages share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from arise.evaluation.metrics import wilson_interval
from arise.report.dashboard.charts import Figure
from arise.report.dashboard.links import Links
from arise.run.reader import RunReader


class Fact(NamedTuple):
    """A number with its name — `Fact("38.2 %", "pass rate", "last 10 iterations")`."""

    value: str
    name: str
    detail: str = ""


@dataclass(frozen=True)
class Page:
    """A template with everything it shows."""

    template: str
    title: str
    section: str
    facts: Sequence[Fact] = ()
    figures: Sequence[Figure] = ()
    content: Mapping[str, Any] = field(default_factory=dict)

    def figure(self, figure_id: str) -> Figure | None:
        return next((figure for figure in self.figures if figure.id == figure_id), None)


@dataclass(frozen=True)
class Asked:
    """One request for a page of one run."""

    run: RunReader
    name: str

    @property
    def links(self) -> Links:
        return Links(self.name)

    @property
    def update_every(self) -> int:
        """Iterations in a window: the pool changes at its end."""
        return self.run.update_every


class NotFound(LookupError):  # noqa: N818 - it is an answer
    """Nothing of this name in the run; the message says what was looked for."""


def percent(share: float | None, digits: int = 1) -> str:
    """A share as people read it; a dash where there is none."""
    return "–" if share is None else f"{100 * share:.{digits}f} %"


def rate(passes: float, evaluations: float) -> float | None:
    """A pass rate, None without evaluations."""
    return passes / evaluations if evaluations else None


def interval(passes: int, evaluations: int) -> tuple[float, float] | None:
    """95 % Wilson interval, None without evaluations."""
    return wilson_interval(passes, evaluations) if evaluations else None


def amount(value: float) -> str:
    """A count as people read it."""
    return f"{value:,.0f}".replace(",", " ")
