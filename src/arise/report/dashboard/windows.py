"""Verdicts and outcomes summed over the windows between pool updates."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from arise.method.pass_rate import pass_rate
from arise.report.dashboard.charts.lanes import Stretch
from arise.run.rows import PairLife, VerdictCount
from arise.types import Status, Tally

_NONE = Tally()


@dataclass(frozen=True)
class Window:
    """Passes among evaluations in iterations first to last (k, both included): all, and those of unguided rollouts."""

    first: int
    last: int
    passes: int
    evaluations: int
    shown: bool = False
    absent: int = 0
    unguided: Tally = _NONE

    @property
    def rate(self) -> float | None:
        return self.passes / self.evaluations if self.evaluations else None

    @property
    def unguided_rate(self) -> float | None:
        return pass_rate(self.unguided)

    def stretch(self) -> Stretch:
        return Stretch(self.first + 1, self.last + 1, self.passes, self.evaluations, self.shown)


def counts_by_rubric(counts: Iterable[VerdictCount]) -> dict[str, list[VerdictCount]]:
    """The rows of each rubric."""
    found: dict[str, list[VerdictCount]] = defaultdict(list)
    for count in counts:
        found[count.rubric_id].append(count)
    return found


def pair_windows(pair: PairLife, counts: Sequence[VerdictCount], size: int, committed: int) -> list[Window]:
    """Every window in which a pair was in the pool, also those without a verdict."""
    first, last = pair.born_at + 1, committed - 1 if pair.retired_at is None else pair.retired_at
    rows_of: dict[int, list[VerdictCount]] = defaultdict(list)
    for count in counts:
        rows_of[count.k // size].append(count)
    found = []
    for number in range(first // size, last // size + 1 if last >= first else first // size):
        rows = rows_of[number]
        start, end = max(first, number * size), min(last, (number + 1) * size - 1)
        if not rows and pair.after(start - 1).status is Status.RETIRED:
            continue
        alone = [row for row in rows if not row.shown]
        found.append(
            Window(
                start,
                end,
                sum(row.passes for row in rows),
                sum(row.evaluations for row in rows),
                any(row.shown for row in rows),
                sum(row.absent for row in rows),
                Tally(sum(row.passes for row in alone), sum(row.evaluations for row in alone)),
            )
        )
    return found


def summed(rows: Iterable[tuple[int, int, int]], size: int, committed: int) -> list[Window]:
    """(k, passes, evaluations) summed by window, from the first iteration to the last committed one."""
    passes: dict[int, int] = defaultdict(int)
    evaluations: dict[int, int] = defaultdict(int)
    for k, won, tried in rows:
        passes[k // size] += won
        evaluations[k // size] += tried
    return [
        Window(number * size, min(committed, (number + 1) * size) - 1, passes[number], evaluations[number])
        for number in range(-(-committed // size))
    ]
