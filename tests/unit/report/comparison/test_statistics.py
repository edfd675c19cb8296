"""Intervals and paired tests against numbers worked out by hand, by brute force and by scipy."""

from itertools import product

import pytest
from scipy import stats

from arise.report.comparison.statistics import STUDENT_975, compare, reach, sign_flip_test, student_interval
from tests.builders import close


def test_student_interval_by_hand() -> None:
    interval = student_interval([1.0, 2.0, 3.0])  # deviation 1, standard error 1 / sqrt(3), t = 4.3027
    close([interval.estimate, interval.low or 0.0, interval.high or 0.0], [2.0, -0.484165, 4.484165], 1e-5)


def test_one_value_has_no_interval() -> None:
    interval = student_interval([7.0])
    assert (interval.estimate, interval.low, interval.high) == (7.0, None, None)
    assert not interval.above(0.0)
    assert not interval.below(9.0)


def test_the_table_of_student_is_scipys() -> None:
    close(STUDENT_975, [stats.t.ppf(0.975, degrees) for degrees in range(1, 31)], 1e-4)


def test_many_values_use_a_close_approximation() -> None:
    values = [float(n % 7) for n in range(50)]
    interval = student_interval(values)
    low, high = stats.t.interval(0.95, 49, loc=interval.estimate, scale=stats.sem(values))
    close([interval.low or 0.0, interval.high or 0.0], [low, high], 2e-3)


@pytest.mark.parametrize(
    ("differences", "p"),
    [
        ([3, 1], 0.5),  # sums 4, 2, -2, -4: two of four are as far out
        ([1, 1, 1], 0.25),
        ([2, -1, 1], 0.75),  # sums 4, 2, 2, 0, 0, -2, -2, -4
        ([5, 4, 3, 2, 1], 0.0625),  # the least that five seeds can give
        ([0, 0], 1.0),
        ([], 1.0),
        ([4, 0], 1.0),
    ],
)
def test_sign_flips_by_hand(differences: list[int], p: float) -> None:
    assert sign_flip_test(differences) == p


def test_sign_flips_count_every_pattern() -> None:
    differences = [3, -1, 4, 1, -5, 9, 2, 6, 0, -5, 3]
    sums = [sum(s * d for s, d in zip(signs, differences, strict=True)) for signs in product((1, -1), repeat=11)]
    expected = sum(abs(total) >= abs(sum(differences)) for total in sums) / len(sums)
    close(sign_flip_test(differences), expected)


def test_paired_differences_by_hand() -> None:
    ours = {(s, t, a): (s, t) != (0, "y") for s in (0, 1) for t in ("x", "y") for a in (0, 1)}
    theirs = {(s, t, a): t == "y" and a == 0 for s in (0, 1) for t in ("x", "y") for a in (0, 1)}
    found = compare(ours, theirs)
    assert found is not None
    # seed 0: x +2, y -1 of 4 attempts = +25; seed 1: x +2, y +1 of 4 = +75
    assert found.pairs == 8
    assert found.by_seed.estimate == 50.0
    close([found.by_seed.low or 0.0], [50.0 - 12.7062 * 25.0])
    assert found.by_seed_and_task.estimate == 50.0
    assert (found.p_by_seed, found.best_p_by_seed) == (0.5, 0.5)
    assert found.p_by_task == 1.0  # x +4, y 0


def test_attempts_that_one_side_lacks_are_left_out() -> None:
    ours = {(0, "x", 0): True, (0, "x", 1): True, (0, "y", 0): False}
    theirs = {(0, "x", 0): False, (0, "y", 0): False, (0, "z", 0): True}
    found = compare(ours, theirs)
    assert found is not None
    assert found.pairs == 2
    assert found.by_seed.estimate == 50.0
    assert compare(ours, {(9, "x", 0): True}) is None


def test_seeds_and_tasks_that_all_agree_leave_no_width() -> None:
    keys = [(s, f"t{t}", 0) for s in range(4) for t in range(6)]
    found = compare(dict.fromkeys(keys, True), dict.fromkeys(keys, False))
    assert found is not None
    assert (found.by_seed_and_task.low, found.by_seed_and_task.high) == (100.0, 100.0)
    assert found.p_by_task == 2 / 2**6


def test_the_crossed_bootstrap_is_wider_than_one_over_tasks_alone() -> None:
    """Seeds that disagree must show even when every task agrees."""
    ours = {(s, f"t{t}", 0): s < 2 for s in range(4) for t in range(20)}
    found = compare(ours, dict.fromkeys(ours, False))
    assert found is not None
    assert found.by_seed_and_task.low is not None
    assert found.by_seed_and_task.low <= 0.0
    assert found.by_seed_and_task.high == 100.0


def test_thresholds_reached_by_hand() -> None:
    curves = {0: {0: 0.0, 5: 20.0, 10: 40.0}, 1: {0: 0.0, 5: 30.0, 10: 50.0}}
    found = reach(curves, {0: 24.0, 1: 26.0})  # the mean curve is 0, 25, 45; the mean target 25
    assert found is not None
    assert found.first == 5.0
    assert (found.low, found.high) == (5.0, 10.0)  # seed 0 alone needs 10, seed 1 alone 5


def test_a_rate_that_is_never_reached_has_no_iteration() -> None:
    found = reach({0: {0: 0.0, 5: 20.0}, 1: {0: 0.0, 5: 20.0}}, {0: 90.0, 1: 90.0})
    assert found is not None
    assert (found.first, found.low, found.high) == (None, None, None)
    assert reach({}, {0: 1.0}) is None


def test_a_rate_cannot_leave_its_bounds() -> None:
    assert student_interval([81.0, 96.0]).within(0.0, 100.0).high == 100.0
    assert student_interval([2.0, 9.0]).within(0.0, 100.0).low == 0.0
    assert student_interval([5.0]).within(0.0, 100.0).low is None
