"""Intervals and exact tests for behaviours in failures and passes; pure functions of counts."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, lgamma, sqrt

import numpy as np
from numpy.typing import NDArray

Z95, Z80 = 1.959963984540054, 0.8416212335729143
"""Normal quantiles: 97.5 % for intervals, 80 % for power."""
RELATIVE = 1e-7
"""Probabilities that differ by less than this are equally extreme (rounding)."""


@dataclass(frozen=True)
class Rate:
    """`Rate(3, 10)` is 30 % with its Wilson interval; undefined for a total of 0."""

    count: int
    total: int

    @property
    def value(self) -> float | None:
        return self.count / self.total if self.total else None

    @property
    def interval(self) -> tuple[float, float] | None:
        return wilson(self.count, self.total) if self.total else None


@dataclass(frozen=True)
class Table:
    """One stratum: attempts with and without a behaviour, failed and passed."""

    failed_with: int
    passed_with: int
    failed_without: int
    passed_without: int

    @property
    def informative(self) -> bool:
        """Return whether the stratum has both outcomes and both kinds of attempts."""
        outcomes = self.failed_with + self.failed_without, self.passed_with + self.passed_without
        kinds = self.failed_with + self.passed_with, self.failed_without + self.passed_without
        return min(*outcomes, *kinds) > 0


def wilson(count: int, total: int) -> tuple[float, float]:
    """Return the 95 % Wilson score interval of a proportion."""
    share, z2 = count / total, Z95**2
    centre = (share + z2 / (2 * total)) / (1 + z2 / total)
    half = Z95 * sqrt(share * (1 - share) / total + z2 / (4 * total**2)) / (1 + z2 / total)
    return (0.0 if count == 0 else max(0.0, centre - half)), (1.0 if count == total else min(1.0, centre + half))


def exact_conditional(tables: Sequence[Table]) -> float | None:
    """Test exactly, two-sided, whether behaviour and failure are independent within strata; None if uninformative.

    Given the margins of every stratum, failures among attempts with the behaviour are a sum of hypergeometric
    variables. With one stratum this is Fisher's exact test.
    """
    useful = [table for table in tables if table.informative]
    if not useful:
        return None
    total, offset = np.ones(1), 0
    for table in useful:
        weights, lowest = _hypergeometric(table)
        total, offset = np.convolve(total, weights), offset + lowest
    total = total / total.sum()
    seen = total[sum(table.failed_with for table in useful) - offset]
    return float(min(1.0, total[total <= seen * (1 + RELATIVE)].sum()))


def _hypergeometric(table: Table) -> tuple[NDArray[np.float64], int]:
    """Return probabilities of the number of failures with the behaviour, and the lowest possible number."""
    having = table.failed_with + table.passed_with
    failed = table.failed_with + table.failed_without
    size = having + table.failed_without + table.passed_without
    lowest, highest = max(0, having + failed - size), min(having, failed)
    logs = np.array([_log_comb(failed, k) + _log_comb(size - failed, having - k) for k in range(lowest, highest + 1)])
    weights = np.exp(logs - _log_comb(size, having))
    return weights, lowest


def _log_comb(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def odds_ratio(tables: Sequence[Table]) -> float | None:
    """Return the Mantel-Haenszel odds ratio over strata; None if undefined, infinity if no pass has the behaviour."""
    above = below = 0.0
    for table in tables:
        size = table.failed_with + table.passed_with + table.failed_without + table.passed_without
        if size:
            above += table.failed_with * table.passed_without / size
            below += table.passed_with * table.failed_without / size
    if not above and not below:
        return None
    return above / below if below else float("inf")


def attributable(tables: Sequence[Table]) -> float:
    """Return how many failures would pass if attempts with the behaviour failed as often as those without it.

    Computed within each stratum that has both kinds of attempts; elsewhere with the pooled share of failures without
    it. Never negative. It is an upper bound, because it treats the association as causal.
    """
    without = sum(table.failed_without for table in tables), sum(table.passed_without for table in tables)
    pooled = without[0] / sum(without) if sum(without) else 0.0
    spared = 0.0
    for table in tables:
        having, rest = table.failed_with + table.passed_with, table.failed_without + table.passed_without
        base = table.failed_without / rest if rest else pooled
        spared += table.failed_with - having * base
    return max(0.0, spared)


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Return false-discovery-rate adjusted p-values, in the given order."""
    count = len(p_values)
    order = sorted(range(count), key=lambda place: p_values[place], reverse=True)
    adjusted, smallest = [0.0] * count, 1.0
    for rank, place in enumerate(order):
        smallest = min(smallest, p_values[place] * count / (count - rank))
        adjusted[place] = smallest
    return adjusted


def mcnemar(better: int, worse: int) -> float:
    """Return the exact two-sided McNemar p-value of a split between better and worse."""
    count, fewer = better + worse, min(better, worse)
    if count == 0:
        return 1.0
    tail = sum(comb(count, k) for k in range(fewer + 1))
    return float(min(1.0, 2 * tail / 2**count))


def detectable_difference(pairs: int, discordant_share: float) -> float | None:
    """Return the smallest paired difference of pass rates that a 5 % test detects with 80 % power."""
    if pairs <= 0:
        return None
    share = min(1.0, max(discordant_share, 1.0 / pairs))
    difference = 0.0
    for _ in range(100):
        rest = max(0.0, share - difference**2)
        difference = min(1.0, (Z95 * sqrt(share) + Z80 * sqrt(rest)) / sqrt(pairs))
    return difference


def paired_interval(differences: Sequence[float]) -> tuple[float, float] | None:
    """Return the 95 % normal interval of a mean of paired differences; None for fewer than two."""
    count = len(differences)
    if count < 2:
        return None
    centre = sum(differences) / count
    spread = sqrt(sum((value - centre) ** 2 for value in differences) / (count - 1) / count)
    return max(-1.0, centre - Z95 * spread), min(1.0, centre + Z95 * spread)


@dataclass(frozen=True)
class Agreement:
    """Two raters on the same yes-no questions: counts of both yes, only ours, only theirs, both no."""

    both: int
    ours: int
    theirs: int
    neither: int

    @property
    def precision(self) -> float | None:
        return self.both / (self.both + self.ours) if self.both + self.ours else None

    @property
    def recall(self) -> float | None:
        return self.both / (self.both + self.theirs) if self.both + self.theirs else None

    @property
    def kappa(self) -> float | None:
        """Return Cohen's kappa; None without data or if chance agreement is 1."""
        total = self.both + self.ours + self.theirs + self.neither
        if not total:
            return None
        agreed = (self.both + self.neither) / total
        yes = (self.both + self.ours) * (self.both + self.theirs)
        no = (self.theirs + self.neither) * (self.ours + self.neither)
        chance = (yes + no) / total**2
        return (agreed - chance) / (1 - chance) if chance < 1 else None
