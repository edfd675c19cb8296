import numpy as np
import pytest
from scipy.stats import binomtest

from arise.evaluation.metrics import (
    difference_interval,
    domain_pass_rates,
    mean_and_deviation,
    pass_rate,
    pooled_pass_rate,
    wilson_interval,
)
from arise.types import Tally
from tests.builders import NAN, close


def test_rates() -> None:
    assert pass_rate([[1, 0, 1], [0, 0, 0]]) == pytest.approx(100 / 3)
    assert pooled_pass_rate(1, 4) == 25.0
    assert pooled_pass_rate(0, 1) == 0.0
    assert pooled_pass_rate(1, 1) == 100.0


def test_domains_keep_their_first_order() -> None:
    rates = domain_pass_rates([[1], [0], [1]], ["b", "a", "b"])
    assert list(rates.items()) == [("b", 100.0), ("a", 0.0)]


def test_mean_and_sample_deviation() -> None:
    close(mean_and_deviation([1.0, 3.0]), (2.0, 2**0.5))


@pytest.mark.parametrize(("successes", "attempts"), [(0, 10), (10, 10), (3, 10), (119, 261)])
def test_wilson_interval_agrees_with_scipy(successes: int, attempts: int) -> None:
    expected = binomtest(successes, attempts).proportion_ci(method="wilson")
    close(wilson_interval(successes, attempts), (expected.low, expected.high), tolerance=1e-9)


def test_wilson_interval_at_another_level() -> None:
    expected = binomtest(3, 10).proportion_ci(confidence_level=0.6826894921370859, method="wilson")
    close(wilson_interval(3, 10, z=1.0), (expected.low, expected.high), tolerance=1e-9)


@pytest.mark.parametrize("bad", [0.5, 2.0, NAN])
def test_success_is_zero_or_one(bad: float) -> None:
    with pytest.raises(ValueError, match=rf"^success_NM\[1, 0\] = {bad} is not 0 or 1; leave failed infrastructure"):
        pass_rate([[1.0, 0.0], [bad, 1.0]])


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (3,)])
def test_shape_of_successes(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"^success_NM must be tasks x attempts and not empty, got shape \("):
        pass_rate(np.zeros(shape))


@pytest.mark.parametrize(("successes", "attempts"), [(0, 0), (-1, 3), (4, 3)])
def test_counts_that_are_no_rate(successes: int, attempts: int) -> None:
    with pytest.raises(ValueError, match=rf"^{successes} successes of {attempts} attempts is not a rate$"):
        pooled_pass_rate(successes, attempts)


def test_domains_must_name_every_task() -> None:
    with pytest.raises(ValueError, match=r"^domain_N names 1 tasks, success_NM has 2$"):
        domain_pass_rates([[1], [0]], ["a"])


@pytest.mark.parametrize("rates", [[], [1.0]])
def test_one_run_has_no_deviation(rates: list[float]) -> None:
    with pytest.raises(ValueError, match=rf"^{len(rates)} run: a sample standard deviation needs at least two$"):
        mean_and_deviation(rates)


def test_the_interval_of_a_difference_is_newcombes() -> None:
    """His example (1998, method 10): 56 of 70 against 48 of 80."""
    close(difference_interval(Tally(48, 80), Tally(56, 70)), (0.0524, 0.3339), tolerance=2e-4)
    low, high = difference_interval(Tally(56, 70), Tally(48, 80))
    close((-high, -low), difference_interval(Tally(48, 80), Tally(56, 70)))
