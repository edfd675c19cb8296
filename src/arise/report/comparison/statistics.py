"""Intervals and paired tests for a few seeds and a set of tasks that all methods share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import mean, stdev

import numpy as np
from numpy.typing import NDArray

STUDENT_975 = (
    12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
    2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860,
    2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423,
)  # fmt: skip
"""The 97.5 % quantile of Student's t with 1, 2, ... 30 degrees of freedom."""

RESAMPLES = 10_000

Outcomes = Mapping[tuple[int, str, int], bool]
"""Held-out attempts of a method: (seed, task, attempt) to success, without those that infrastructure ended."""


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % interval; a single value has no interval — `Interval(4.0, 1.5, 6.5, 5)`."""

    estimate: float
    low: float | None
    high: float | None
    count: int

    def within(self, least: float, most: float) -> "Interval":
        """Clip the interval to the bounds of its quantity."""
        if self.low is None or self.high is None:
            return self
        return Interval(self.estimate, max(least, self.low), min(most, self.high), self.count)

    def above(self, bound: float) -> bool:
        return self.low is not None and self.low > bound

    def below(self, bound: float) -> bool:
        return self.high is not None and self.high < bound


def student_interval(values: Sequence[float]) -> Interval:
    """Return the mean of independent values with mean +- t x deviation / sqrt(n)."""
    centre, count = mean(values), len(values)
    if count < 2:
        return Interval(centre, None, None, count)
    half = (STUDENT_975[count - 2] if count <= 31 else 1.96 + 2.4 / (count - 1)) * stdev(values) / sqrt(count)
    return Interval(centre, centre - half, centre + half, count)


@dataclass(frozen=True)
class PairedComparison:
    """One method minus another on their shared attempts, in points of pass rate, by seed and by task."""

    pairs: int
    by_seed: Interval
    by_seed_and_task: Interval
    p_by_seed: float
    p_by_task: float
    best_p_by_seed: float


def compare(ours: Outcomes, theirs: Outcomes) -> PairedComparison | None:
    """Return the difference of pass rates, paired by attempt; None if no attempt is shared."""
    shared = sorted(ours.keys() & theirs.keys())
    if not shared:
        return None
    seeds, tasks = (sorted({key[n] for key in shared}) for n in (0, 1))
    won_ST, tried_ST = np.zeros((len(seeds), len(tasks))), np.zeros((len(seeds), len(tasks)))
    for key in shared:
        place = seeds.index(key[0]), tasks.index(key[1])
        won_ST[place] += int(ours[key]) - int(theirs[key])
        tried_ST[place] += 1
    rates = [100.0 * float(w / t) for w, t in zip(won_ST.sum(1), tried_ST.sum(1), strict=True)]
    by_seed, by_task = ([int(total) for total in won_ST.sum(axis)] for axis in (1, 0))
    return PairedComparison(
        len(shared),
        student_interval(rates),
        _crossed_bootstrap(won_ST, tried_ST),
        sign_flip_test(by_seed),
        sign_flip_test(by_task),
        2.0 ** (1 - len(seeds)),
    )


def sign_flip_test(differences: Sequence[int]) -> float:
    """Return the exact two-sided p-value of a sign-flip test on the sum of differences.

    All 2^n sign patterns are counted through the distribution of their sums.
    """
    sizes = [abs(difference) for difference in differences if difference]
    reach = sum(sizes)
    share = np.zeros(2 * reach + 1)
    share[reach] = 1.0
    for size in sizes:
        share = (np.roll(share, size) + np.roll(share, -size)) / 2.0  # the edges are 0 until the last size is added
    sums = np.abs(np.arange(-reach, reach + 1))
    return float(min(1.0, share[sums >= abs(sum(differences))].sum()))


def _crossed_bootstrap(won_ST: NDArray[np.float64], tried_ST: NDArray[np.float64]) -> Interval:
    """Return the percentile interval of the pooled difference, resampling both seeds and tasks."""
    random = np.random.default_rng(0)
    seeds, tasks = won_ST.shape
    estimate = 100.0 * float(won_ST.sum() / tried_ST.sum())
    if seeds < 2 or tasks < 2:
        return Interval(estimate, None, None, seeds)
    weight_S = random.multinomial(seeds, np.full(seeds, 1.0 / seeds), RESAMPLES).astype(np.float64)
    weight_T = random.multinomial(tasks, np.full(tasks, 1.0 / tasks), RESAMPLES).astype(np.float64)
    won = np.einsum("rs,st,rt->r", weight_S, won_ST, weight_T, optimize=True)
    tried = np.einsum("rs,st,rt->r", weight_S, tried_ST, weight_T, optimize=True)
    low, high = np.percentile(100.0 * won[tried > 0] / tried[tried > 0], [2.5, 97.5])
    return Interval(estimate, float(low), float(high), seeds)


Curves = Mapping[int, Mapping[int, float]]
"""Learning curves: seed to iteration to pass rate."""


@dataclass(frozen=True)
class Reach:
    """Iterations until a mean curve first reaches a target; None if it never does."""

    first: float | None
    low: float | None
    high: float | None
    seeds: int


def reach(curves: Curves, target_of: Mapping[int, float]) -> Reach | None:
    """Return when the mean of a method's curves first reaches the mean target of the same seeds, with its interval."""
    seeds = sorted(curves.keys() & target_of.keys())
    points = sorted(set.intersection(*(set(curves[seed]) for seed in seeds))) if seeds else []
    if not points:
        return None
    rate_SK = np.array([[curves[seed][k] for k in points] for seed in seeds])
    target_S = np.array([target_of[seed] for seed in seeds])
    first = _first(rate_SK.mean(0)[None], target_S.mean()[None], points)[0]
    if len(seeds) < 2:
        return Reach(_finite(first), None, None, 1)
    weight_RS = np.random.default_rng(0).multinomial(len(seeds), np.full(len(seeds), 1.0 / len(seeds)), RESAMPLES)
    drawn = _first(weight_RS @ rate_SK / len(seeds), weight_RS @ target_S / len(seeds), points)
    low, high = np.percentile(drawn, [2.5, 97.5], method="inverted_cdf")
    return Reach(_finite(first), _finite(low), _finite(high), len(seeds))


def _first(rate_RK: NDArray[np.float64], target_R: NDArray[np.float64], points: Sequence[int]) -> NDArray[np.float64]:
    """Return the first point at or above the target in each row; infinity if there is none."""
    there_RK = rate_RK >= target_R[:, None] - 1e-9
    return np.where(there_RK.any(1), np.array(points, dtype=np.float64)[there_RK.argmax(1)], np.inf)


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
