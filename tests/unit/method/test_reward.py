import numpy as np
import pytest

from arise.method.reward import length_regularized, mean_task_reward
from tests.builders import NAN, close


def test_strength_and_threshold() -> None:
    close(length_regularized([1, 0], [10, 30], strength=0.2, threshold=29), [1.2, 0])
    assert length_regularized([1, 0], [10, 30], strength=0.2, threshold=30).tolist() == [1, 0]
    assert length_regularized([1, 0], [10, 30], strength=0.0, threshold=0).tolist() == [1, 0]


def test_the_middle_of_the_range_is_unchanged() -> None:
    close(length_regularized([2, 0, 0], [20, 10, 30], threshold=0), [2, 0, 0], tolerance=1e-9)


def test_epsilon_is_in_the_denominator() -> None:
    close(length_regularized([1, 0], [1e-9, 0], threshold=0), [1.0, 0.0])


def test_length_regularisation_returns_a_copy() -> None:
    raw = np.array([1.0, 1.0])
    length_regularized(raw, [1, 2])[0] = 9
    length_regularized(np.array([1.0, 0.0]), [2, 2])[0] = 9
    assert raw.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("raw", "lengths", "message"),
    [
        ([1, NAN], [1, 2], r"raw_J\[1\] = nan is not finite"),
        ([1, 0], [1, np.inf], r"lengths_J\[1\] = inf is not finite"),
        ([1, 0], [1, 2, 3], r"lengths_J has shape \(3,\), but raw_J has shape \(2,\)"),
        ([1, 0], [0, -2], r"lengths_J\[1\] = -2\.0 must not be negative"),
    ],
)
def test_bad_arrays(raw: list[float], lengths: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        length_regularized(raw, lengths)


def test_bad_constants() -> None:
    with pytest.raises(ValueError, match=r"^strength = -0\.1 must be between 0 and 1$"):
        length_regularized([1, 0], [1, 2], strength=-0.1)
    with pytest.raises(ValueError, match=r"^threshold = nan must not be negative$"):
        length_regularized([1, 0], [1, 2], threshold=NAN)


def test_objective_weighs_tasks_equally() -> None:
    assert mean_task_reward([[1, 0], [1, 1, 1, 1]]) == 0.75


def test_objective_of_nothing() -> None:
    with pytest.raises(ValueError, match=r"^groups is empty"):
        mean_task_reward([])
    with pytest.raises(ValueError, match=r"^groups\[1\] is empty: a task has at least one rollout$"):
        mean_task_reward([[1], []])
    with pytest.raises(ValueError, match=r"^groups\[1\]\[0\] = nan is not finite"):
        mean_task_reward([[1], [NAN]])
