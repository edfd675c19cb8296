"""Pass rates and their spread (App. "Metrics" and "Evaluation Stability"), from counts, never from rounded rates."""

from collections.abc import Sequence
from math import sqrt
from statistics import mean, stdev

import numpy as np
from numpy.typing import ArrayLike

from arise.types import Tally


def pass_rate(success_NM: ArrayLike) -> float:
    """Eq. 21 — percentage of verifier-confirmed successes over N tasks x M attempts."""
    success_NM = np.asarray(success_NM, dtype=np.float64)
    if success_NM.ndim != 2 or success_NM.size == 0:
        raise ValueError(f"success_NM must be tasks x attempts and not empty, got shape {success_NM.shape}")
    if not np.isin(success_NM, (0.0, 1.0)).all():
        n, m = (int(index[0]) for index in np.nonzero(~np.isin(success_NM, (0.0, 1.0))))
        raise ValueError(f"success_NM[{n}, {m}] = {success_NM[n, m]} is not 0 or 1; leave failed infrastructure out")
    return 100.0 * float(success_NM.sum()) / success_NM.size


def pooled_pass_rate(successes: int, attempts: int) -> float:
    """The rate of Eq. 21 from counts, for attempts that are not a full rectangle."""
    if attempts < 1 or not 0 <= successes <= attempts:
        raise ValueError(f"{successes} successes of {attempts} attempts is not a rate")
    return 100.0 * successes / attempts


def domain_pass_rates(success_NM: ArrayLike, domain_N: Sequence[str]) -> dict[str, float]:
    """Eq. 21 applied to each domain; the overall rate pools all tasks and so weighs domains by their size."""
    success_NM = np.asarray(success_NM, dtype=np.float64)
    if len(domain_N) != len(success_NM):
        raise ValueError(f"domain_N names {len(domain_N)} tasks, success_NM has {len(success_NM)}")
    labels = np.asarray(domain_N, dtype=object)
    return {domain: pass_rate(success_NM[labels == domain]) for domain in dict.fromkeys(domain_N)}


def mean_and_deviation(rates: Sequence[float]) -> tuple[float, float]:
    """Mean and sample standard deviation over evaluation runs; one run has no deviation."""
    if len(rates) < 2:
        raise ValueError(f"{len(rates)} run: a sample standard deviation needs at least two")
    return mean(rates), stdev(rates)


def wilson_interval(successes: int, attempts: int, z: float = 1.959963984540054) -> tuple[float, float]:
    """The Wilson score interval of a proportion, 95 % by default, as fractions."""
    rate = pooled_pass_rate(successes, attempts) / 100.0
    centre = rate + z * z / (2 * attempts)
    half = z * sqrt(rate * (1.0 - rate) / attempts + z * z / (4 * attempts * attempts))
    scale = 1.0 + z * z / attempts
    return max(0.0, (centre - half) / scale), min(1.0, (centre + half) / scale)


def difference_interval(first: Tally, second: Tally) -> tuple[float, float]:
    """Newcombe's 95 % interval of the second proportion minus the first, from their Wilson intervals, as fractions."""
    p, q = (tally.passes / tally.evaluations for tally in (first, second))
    (p_low, p_high), (q_low, q_high) = wilson_interval(*first), wilson_interval(*second)
    return q - p - sqrt((q - q_low) ** 2 + (p_high - p) ** 2), q - p + sqrt((q_high - q) ** 2 + (p - p_low) ** 2)
