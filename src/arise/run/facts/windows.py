"""Verdicts and outcomes summed over windows, the iterations between two pool updates."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from arise.method.pass_rate import pass_rate
from arise.run.facts.verdicts import guided_counts
from arise.run.numbering import iteration_of
from arise.run.pool_rows import PairLife, VerdictCount
from arise.text.numbers import FEW
from arise.types import PairStatus, Tally

NONE = Tally()


@dataclass(frozen=True)
class Window:
    """Passes among evaluations in iterations k = first to last, both included; also those of unguided rollouts."""

    first: int
    last: int
    passes: int
    evaluations: int
    shown: bool = False
    absent: int = 0
    unguided: Tally = NONE

    @property
    def rate(self) -> float | None:
        return pass_rate(self.tally)

    @property
    def tally(self) -> Tally:
        return Tally(self.passes, self.evaluations)

    @property
    def guided(self) -> Tally:
        return Tally(self.passes - self.unguided.passes, self.evaluations - self.unguided.evaluations)

    @property
    def unguided_rate(self) -> float | None:
        return pass_rate(self.unguided)

    @property
    def end(self) -> int:
        """Return the number of its last iteration."""
        return iteration_of(self.last)

    @property
    def span(self) -> str:
        """Return its iterations, numbered from 1: `11-20`."""
        return f"{iteration_of(self.first)}-{self.end}"


def pair_windows(pair: PairLife, counts: Sequence[VerdictCount], size: int, committed: int) -> list[Window]:
    """Return every window in which a pair was in the pool, including those without a verdict."""
    first, last = pair.born_at + 1, committed - 1 if pair.retired_at is None else pair.retired_at
    rows_of: dict[int, list[VerdictCount]] = defaultdict(list)
    for count in counts:
        rows_of[count.k // size].append(count)
    found = []
    for number in range(first // size, last // size + 1 if last >= first else first // size):
        rows = rows_of[number]
        start, end = max(first, number * size), min(last, (number + 1) * size - 1)
        if not rows and pair.after(start - 1).status is PairStatus.RETIRED:
            continue
        verdicts = guided_counts(rows)
        shown, absent = any(row.shown for row in rows), sum(row.absent for row in rows)
        found.append(Window(start, end, *verdicts.all, shown, absent, verdicts.unguided))
    return found


def summed(rows: Iterable[tuple[int, int, int]], size: int, committed: int) -> list[Window]:
    """Sum (k, passes, evaluations) by window, from the first iteration to the last committed one."""
    sums: dict[int, Tally] = defaultdict(Tally)
    for k, passes, evaluations in rows:
        sums[k // size] = sums[k // size].plus(Tally(passes, evaluations))
    return [
        Window(number * size, min(committed, (number + 1) * size) - 1, *sums[number])
        for number in range(-(-committed // size))
    ]


def latest(tallies: Sequence[Tally]) -> Tally:
    """Return the verdicts of the last window; add earlier ones but the first while they are too few for a rate."""
    total = Tally()
    for tally in reversed(tallies[1:] or tallies):
        total = total.plus(tally)
        if total.evaluations >= FEW:
            break
    return total
