"""Iteration numbers: k in the tables, from 1 for people."""

from arise.run.numbering import iteration_of, k_of, rollout_name


def test_people_count_from_one_and_zero_is_before_training() -> None:
    assert [iteration_of(k) for k in (-1, 0, 11)] == [0, 1, 12]
    assert all(k_of(iteration_of(k)) == k for k in range(-1, 5))


def test_a_rollout_is_shown_with_the_number_of_its_iteration() -> None:
    assert rollout_name("k11/world/k3-task/0") == "12/world/k3-task/0"
    assert rollout_name("eval/before/task/0") == "eval/before/task/0"
