"""Intervals of pass rates: against scipy and against published numbers."""

import re

import pytest
from scipy.stats import binomtest

from arise.method.intervals import difference_interval, wilson_interval
from arise.types import Tally
from tests.builders import close


@pytest.mark.parametrize(("successes", "attempts"), [(0, 10), (10, 10), (3, 10), (119, 261)])
def test_wilson_interval_agrees_with_scipy(successes: int, attempts: int) -> None:
    expected = binomtest(successes, attempts).proportion_ci(method="wilson")
    close(wilson_interval(successes, attempts), (expected.low, expected.high), tolerance=1e-9)


def test_wilson_interval_at_another_level() -> None:
    expected = binomtest(3, 10).proportion_ci(confidence_level=0.6826894921370859, method="wilson")
    close(wilson_interval(3, 10, z=1.0), (expected.low, expected.high), tolerance=1e-9)


@pytest.mark.parametrize(("successes", "attempts"), [(0, 0), (-1, 3), (4, 3)])
def test_counts_that_are_no_rate_are_refused(successes: int, attempts: int) -> None:
    message = re.escape(f"{successes} successes of {attempts} attempts is not a rate")
    with pytest.raises(ValueError, match=f"^{message}$"):
        wilson_interval(successes, attempts)


def test_the_interval_of_a_difference_is_newcombes() -> None:
    """His example (1998, method 10): 56 of 70 against 48 of 80."""
    close(difference_interval(Tally(48, 80), Tally(56, 70)), (0.0524, 0.3339), tolerance=2e-4)
    low, high = difference_interval(Tally(56, 70), Tally(48, 80))
    close((-high, -low), difference_interval(Tally(48, 80), Tally(56, 70)))
