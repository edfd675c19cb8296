"""95 % intervals of pass rates and of their differences, from counts."""

from math import sqrt

from arise.types import Tally


def wilson_interval(successes: int, attempts: int, z: float = 1.959963984540054) -> tuple[float, float]:
    """Return the Wilson score interval of a proportion as fractions, 95 % by default."""
    if attempts < 1 or not 0 <= successes <= attempts:
        raise ValueError(f"{successes} successes of {attempts} attempts is not a rate")
    rate = successes / attempts
    centre = rate + z * z / (2 * attempts)
    half = z * sqrt(rate * (1.0 - rate) / attempts + z * z / (4 * attempts * attempts))
    scale = 1.0 + z * z / attempts
    return max(0.0, (centre - half) / scale), min(1.0, (centre + half) / scale)


def difference_interval(first: Tally, second: Tally) -> tuple[float, float]:
    """Return Newcombe's 95 % interval of the second proportion minus the first, as fractions."""
    p, q = (tally.passes / tally.evaluations for tally in (first, second))
    (p_low, p_high), (q_low, q_high) = wilson_interval(*first), wilson_interval(*second)
    return q - p - sqrt((q - q_low) ** 2 + (p_high - p) ** 2), q - p + sqrt((q_high - q) ** 2 + (p - p_low) ** 2)
