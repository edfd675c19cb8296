"""golden.md section 7: weights, moments, discovery weights and quotas (the draws themselves: tests/property)."""

import numpy as np
import pytest

from arise.method.coverage import inverse_attempt_weights
from arise.method.sampler import cell_probabilities, cell_quota, cell_weight
from tests.builders import close


def test_weights_of_fixed_draws() -> None:
    weights = cell_weight([0.1, 1 / 3, 0.5, 0.9])
    close(weights, [0.081, 0.148148148148148148, 0.125, 0.009])
    assert weights.sum() == pytest.approx(0.363148148148148148, rel=1e-12)
    expected = [0.223049464558898521, 0.407955124936257012, 0.344212136664966854, 0.0247832738398776135]
    close(cell_probabilities(weights), expected)


def test_the_maximum_is_at_a_third() -> None:
    grid = np.linspace(0, 1, 3001)
    assert grid[int(np.argmax(cell_weight(grid)))] == pytest.approx(1 / 3, abs=1e-3)
    assert float(cell_weight(1 / 3)) == pytest.approx(4 / 27, rel=1e-12)
    assert float(cell_weight(1 / 3)) > float(cell_weight(0.5))


def test_discovery_weights() -> None:
    weights = inverse_attempt_weights([0, 1, 3, 7])
    assert weights.tolist() == [1, 0.5, 0.25, 0.125]
    close(weights / weights.sum(), [8 / 15, 4 / 15, 2 / 15, 1 / 15])


@pytest.mark.parametrize(
    ("batch", "fraction", "quota"),
    [(32, 0.25, 8), (1, 0.25, 1), (3, 0.25, 1), (5, 0.25, 2), (100, 0.07, 7), (32, 0.0, 1), (32, 1.0, 32)],
)
def test_quota_is_exact(batch: int, fraction: float, quota: int) -> None:
    assert cell_quota(batch, fraction) == quota
