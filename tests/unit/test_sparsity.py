"""The calculation behind the map of when rubrics and skills help."""

from itertools import combinations
from math import prod

import numpy as np
import pytest
from benchmarks.sparsity import expected_success, train


def test_expected_success_is_the_mean_over_all_tasks_of_a_depth() -> None:
    rates = np.array([0.1, 0.4, 0.5, 0.9])
    for depth in range(1, 5):
        tasks = [prod(chosen) for chosen in combinations(rates.tolist(), depth)]
        assert expected_success(rates, depth) == pytest.approx(sum(tasks) / len(tasks))


def test_rubrics_help_where_the_outcome_is_sparse_and_not_where_it_is_frequent() -> None:
    easy = [train(1, 0, rubrics, False, 30).reaches(0.5) for rubrics in (False, True)]
    assert None not in easy
    assert abs((easy[0] or 0) - (easy[1] or 0)) <= 3
    assert train(5, 0, False, False, 60).reaches(0.5) is None
    assert train(5, 0, True, False, 60).reaches(0.5) is not None
