"""golden.md section 3: length regularisation."""

import pytest

from arise.method.advantage import normalized
from arise.method.reward import length_regularized
from tests.builders import close

LENGTHS = [4000, 20000, 12000, 30000, 16384, 8000, 25000, 18000]
RAW = [1, 0, 1, 1, 0, 0.5, 0, 0]


def test_rewards_and_their_advantages() -> None:
    reward_J = length_regularized(RAW, LENGTHS)
    expected = [1.5, 0, 1.19230769230770414, 0.500000000000038462, 0, 0.673076923076926036, 0, 0]
    close(reward_J, expected)
    assert reward_J.mean() == pytest.approx(0.483173076923083580, rel=1e-12)
    assert reward_J.std() == pytest.approx(0.559796882740550730, rel=1e-12)
    low = -0.863122126894546962
    advantages = [1.81642119241983057, low, 1.26677128076562042, 0.0300589795436475884]
    advantages += [low, 0.339237054849089267, low, low]
    close(normalized(reward_J), advantages)


@pytest.mark.parametrize(
    ("raw", "lengths", "expected"),
    [
        ([1, 0], [100, 16385], [1.5, 0]),
        ([1, 0], [100, 16384], [1, 0]),
        ([1, 1], [100, 99999], [1, 1]),
        ([0, 0], [100, 99999], [0, 0]),
        ([1, 0], [20000, 20000], [1, 0]),
        ([0.5, -1], [20000, 100], [0.250000000000025, -1]),
    ],
)
def test_activation_truth_table(raw: list[float], lengths: list[int], expected: list[float]) -> None:
    close(length_regularized(raw, lengths), expected)


def test_a_success_longer_than_a_shorter_failure_does_not_get_the_full_bonus() -> None:
    shortest_success, longest = length_regularized([1, 0, 1], [10_000, 4_000, 30_000])[[0, 2]]
    assert shortest_success < 1.5
    assert longest == pytest.approx(0.5, rel=1e-12)
