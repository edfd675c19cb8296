import numpy as np
import pytest

from arise.evaluation.metrics import (
    domain_pass_rates,
    mean_and_deviation,
    pass_rate,
    pooled_pass_rate,
)
from tests.builders import NAN, close


def test_pass_rates() -> None:
    assert pass_rate([[1, 0, 1], [0, 0, 0]]) == pytest.approx(100 / 3)
    assert pooled_pass_rate(1, 4) == 25.0
    assert pooled_pass_rate(0, 1) == 0.0
    assert pooled_pass_rate(1, 1) == 100.0


def test_domains_keep_their_first_order() -> None:
    rates = domain_pass_rates([[1], [0], [1]], ["b", "a", "b"])
    assert list(rates.items()) == [("b", 100.0), ("a", 0.0)]


def test_mean_and_sample_deviation() -> None:
    close(mean_and_deviation([1.0, 3.0]), (2.0, 2**0.5))


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
