import numpy as np
import pytest

from arise.method.advantage import combined_advantages, normalized
from tests.builders import NAN, close


def test_a_group_of_one_has_no_advantage() -> None:
    assert normalized([3.0]).tolist() == [0.0]


def test_no_rubrics_at_all() -> None:
    np.testing.assert_array_equal(combined_advantages([1, 0], np.zeros((0, 2))), normalized([1, 0]))


def test_rubric_weight_one_leaves_only_the_rubric_term() -> None:
    close(combined_advantages([1, 0], [[0, 1]], rubric_weight=1.0), [-1, 1], tolerance=1e-8)


def test_a_rubric_that_all_failed_is_as_uninformative_as_one_that_all_passed() -> None:
    np.testing.assert_array_equal(combined_advantages([1, 0], [[0.0, 0.0], [0.0, NAN]]), normalized([1, 0]))


def test_uninformative_rubrics_do_not_count_in_the_divisor() -> None:
    informative = [1.0, 0.0]
    alone = combined_advantages([1, 0], [informative])
    np.testing.assert_array_equal(combined_advantages([1, 0], [informative, [0.0, 0.0], [1.0, 1.0]]), alone)
    np.testing.assert_array_equal(combined_advantages([1, 0], [informative, [0.0, NAN], [NAN, NAN]]), alone)


def test_epsilon_is_added_to_the_deviation() -> None:
    assert normalized([0.0, 2e-9]).tolist() == [-0.5, 0.5]


def test_inputs_are_not_changed() -> None:
    rewards, verdicts = np.array([1.0, 0.0]), np.array([[1.0, NAN]])
    combined_advantages(rewards, verdicts)
    normalized(rewards)
    assert rewards.tolist() == [1.0, 0.0]
    np.testing.assert_array_equal(verdicts, [[1.0, NAN]])


def test_empty_group() -> None:
    with pytest.raises(ValueError, match=r"^values is empty: a group has at least one member$"):
        normalized([])


def test_missing_reward() -> None:
    with pytest.raises(ValueError, match=r"^values\[1\] = nan is not finite"):
        combined_advantages([1, NAN], [[1, 0]])


def test_shapes_differ() -> None:
    with pytest.raises(ValueError, match=r"^verdict_IJ has shape \(1, 3\), but reward_J has 2 members$"):
        combined_advantages([1, 0], [[1, 0, 1]])


def test_bad_verdict() -> None:
    with pytest.raises(ValueError, match=r"^verdict_IJ\[0, 1\] = 0\.5 is not a verdict"):
        combined_advantages([1, 0], [[1, 0.5]])


def test_bad_weight() -> None:
    with pytest.raises(ValueError, match=r"^rubric_weight = 1\.5 must be between 0 and 1$"):
        combined_advantages([1, 0], [[1, 0]], rubric_weight=1.5)
