"""The parts of a page, and rates and intervals as table cells."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from arise.method.intervals import wilson_interval
from arise.report.dashboard.charts import Figure, Share
from arise.report.dashboard.links import Links
from arise.run.reader import RunReader


class Fact(NamedTuple):
    """A number with its name — `Fact("38.2 %", "pass rate", "last 10 iterations")`."""

    value: str
    name: str
    detail: str = ""


@dataclass(frozen=True)
class Page:
    """A template with the values it shows."""

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
        """Return the iterations per window; the pool is updated at the end of each window."""
        return self.run.update_every


class NotFound(LookupError):  # noqa: N818 - it is an answer
    """The run has no item of this name; the message says what was requested."""


def brief(name: str) -> str:
    """Return the last part of a task's name; its folder is the same for most tasks of a run."""
    return name.rpartition("/")[2]


def rate(passes: float, evaluations: float) -> Share | None:
    """Return a pass rate, None without evaluations."""
    return Share(passes / evaluations) if evaluations else None


def share(value: float | None) -> Share | None:
    """Mark a number as a share, which a table writes in percent."""
    return None if value is None else Share(value)


def interval(passes: int, evaluations: int) -> tuple[Share, Share] | None:
    """Return the 95 % Wilson interval, None without evaluations."""
    if not evaluations:
        return None
    low, high = wilson_interval(passes, evaluations)
    return Share(low), Share(high)
