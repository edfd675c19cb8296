"""The held-out evaluations of a run: before, during and after training; ad-hoc and failed ones are separate."""

from dataclasses import dataclass
from typing import NamedTuple

from arise.method.intervals import difference_interval
from arise.run.facts.score import Evaluation, score
from arise.run.labels import is_held_out, point_of
from arise.run.queries import RunQueries
from arise.text import numbers
from arise.types import Tally

BEFORE, AFTER = "before", "after"


class RateChange(NamedTuple):
    """Two tallies of the same quantity, the earlier first: `RateChange(Tally(3, 12), Tally(9, 12))`."""

    first: Tally
    last: Tally

    @property
    def difference(self) -> float:
        return self.last.passes / self.last.evaluations - self.first.passes / self.first.evaluations

    @property
    def interval(self) -> tuple[float, float]:
        return difference_interval(self.first, self.last)

    @property
    def clear(self) -> bool:
        """Return whether the 95 % interval of the difference excludes zero."""
        low, high = self.interval
        return low > 0.0 or high < 0.0

    @property
    def from_to(self) -> str:
        """Write both rates, `12.0 % → 0.0 %`, or both counts if one is of few evaluations: `7 of 51 → 0 of 1`."""
        if self.few:
            return " → ".join(f"{tally.passes} of {tally.evaluations}" for tally in self)
        return " → ".join(numbers.percent(tally.passes / tally.evaluations) for tally in self)

    @property
    def few(self) -> bool:
        """Return whether one of the rates is of too few evaluations to be read as a rate."""
        return min(tally.evaluations for tally in self) < numbers.FEW

    @property
    def difference_text(self) -> str:
        """Write the difference with its interval: `-12.0 points (95 % -21.0 to -3.0)`."""
        return f"{numbers.difference(self.difference)} points ({numbers.interval(*self.interval, signed=True)})"

    @property
    def noise_text(self) -> str:
        if self.clear:
            return "beyond noise"
        return "too few to tell" if self.few else "within noise"

    @property
    def reading(self) -> str:
        """Write the difference and whether it is noise; counts too small for a difference say so instead."""
        return self.noise_text if self.few and not self.clear else f"{self.difference_text}, {self.noise_text}"


@dataclass(frozen=True)
class HeldOut:
    """Evaluations on held-out tasks; `others` were requested by hand, `failed` have no attempt that counts."""

    before: Evaluation | None = None
    points: tuple[Evaluation, ...] = ()
    after: Evaluation | None = None
    others: tuple[Evaluation, ...] = ()
    failed: tuple[Evaluation, ...] = ()

    @property
    def now(self) -> Evaluation | None:
        """Return the newest of the run's own evaluations: after training, or the last point of the learning curve."""
        return self.after or (self.points[-1] if self.points else None)

    @property
    def change(self) -> RateChange | None:
        return RateChange(self.before.tally, self.now.tally) if self.before and self.now else None

    @property
    def own(self) -> list[Evaluation]:
        """Return the run's own evaluations in order."""
        return [found for found in (self.before, *self.points, self.after) if found]


def held_out(run: RunQueries) -> HeldOut:
    """Score every evaluation on held-out tasks."""
    found = [score(label, run) for label in run.evaluations() if is_held_out(label)]
    counted = {evaluation.label: evaluation for evaluation in found if evaluation.attempts}
    points = {label: evaluation for label, evaluation in counted.items() if point_of(label) is not None}
    others = [evaluation for label, evaluation in counted.items() if label not in {BEFORE, AFTER, *points}]
    return HeldOut(
        counted.get(BEFORE),
        tuple(sorted(points.values(), key=lambda point: point.iteration)),
        counted.get(AFTER),
        tuple(others),
        tuple(evaluation for evaluation in found if not evaluation.attempts),
    )
