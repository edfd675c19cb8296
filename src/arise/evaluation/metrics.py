"""Pass rates and their spread (App. "Metrics" and "Evaluation Stability"), computed from counts."""

from collections.abc import Sequence
from statistics import mean, stdev

import numpy as np
from numpy.typing import ArrayLike


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
    """Return the rate of Eq. 21 from counts, for unequal numbers of attempts per task."""
    if attempts < 1 or not 0 <= successes <= attempts:
        raise ValueError(f"{successes} successes of {attempts} attempts is not a rate")
    return 100.0 * successes / attempts


def domain_pass_rates(success_NM: ArrayLike, domain_N: Sequence[str]) -> dict[str, float]:
    """Eq. 21 applied to each domain; the overall rate pools all tasks, so larger domains weigh more."""
    success_NM = np.asarray(success_NM, dtype=np.float64)
    if len(domain_N) != len(success_NM):
        raise ValueError(f"domain_N names {len(domain_N)} tasks, success_NM has {len(success_NM)}")
    labels = np.asarray(domain_N, dtype=object)
    return {domain: pass_rate(success_NM[labels == domain]) for domain in dict.fromkeys(domain_N)}


def mean_and_deviation(rates: Sequence[float]) -> tuple[float, float]:
    """Return mean and sample standard deviation over evaluation runs; raise ValueError for fewer than two."""
    if len(rates) < 2:
        raise ValueError(f"{len(rates)} run: a sample standard deviation needs at least two")
    return mean(rates), stdev(rates)
