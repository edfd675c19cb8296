import numpy as np

from arise.config import SeparateCredit
from arise.method.advantage import combined_advantages, normalized
from arise.method.credit import group_advantages, separate_credit, trusted
from arise.method.reward import length_regularized
from arise.types import Capability, Group, Rollout, ShownSkill, StopReason, Tokens, Trajectory, Verdict
from tests.builders import NAN, a_group, a_pool, a_rollout, a_task, close

PASS, FAIL = Verdict.PASS, Verdict.FAIL


def of_length(rollout: Rollout, length: int) -> Rollout:
    tokens = Tokens(
        np.zeros(length, dtype=np.int64),
        np.ones(length, dtype=np.bool_),
        np.zeros(length),
        np.zeros(length, dtype=np.int64),
    )
    trajectory = Trajectory(rollout.trajectory.id, "x1", (), StopReason.FINISHED, rows=(tokens,))
    return Rollout(trajectory, rollout.reward, rollout.success, rollout.judgment)


def test_length_regularisation_comes_before_normalisation() -> None:
    judged = a_group(a_task(), {"a": "10n"}, rewards=[1.0, 0.0, 1.0])
    group = Group(judged.task, tuple(of_length(r, n) for r, n in zip(judged.rollouts, (10, 40, 20), strict=True)), 3)
    credit = SeparateCredit(rubric_weight=0.4, length_strength=0.25, length_threshold=30)
    found = group_advantages(group, ["a"], credit)
    assert found is not None
    reward_J = length_regularized([1, 0, 1], [10, 40, 20], 0.25, 30)
    close(found.combined_J, combined_advantages(reward_J, [[1.0, 0.0, NAN]], 0.4))
    close(found.task_J, normalized(reward_J))
    close(found.rubric_J, [1, -1, 0], tolerance=1e-8)
    assert found.task_J[0] > found.task_J[2], "the shorter success is worth more"


def test_an_incomplete_group_is_dropped() -> None:
    assert group_advantages(a_group(a_task(), {"a": "10"}, rewards=[1.0, None]), ["a"], SeparateCredit()) is None
    lost = Group(a_task(), (a_rollout(0),), 2)
    assert group_advantages(lost, [], SeparateCredit()) is None


def test_rollouts_can_be_compared_with_those_of_the_same_prompt_only() -> None:
    shown = [ShownSkill("a", 0)]
    rewards = (1.0, 1.0, 0.0, 0.0)
    rollouts = tuple(
        a_rollout(j, {"a": PASS if j < 3 else FAIL}, reward=reward, shown=shown if j < 2 else ())
        for j, reward in enumerate(rewards)
    )
    group = Group(a_task(), rollouts, 4)
    paper = group_advantages(group, ["a"], SeparateCredit())
    same = group_advantages(group, ["a"], SeparateCredit(compared="prompt"))
    assert paper is not None
    assert same is not None
    close(paper.task_J, normalized(rewards))
    close(same.task_J, [0, 0, 0, 0])
    close(same.rubric_J, [0, 0, 1, -1], tolerance=1e-8)
    close(same.combined_J, [0, 0, 0.3, -0.3], tolerance=1e-8)


def test_a_rubric_can_need_more_than_one_verdict_against_the_others() -> None:
    group = a_group(a_task(), {"a": "11110", "b": "11100"}, rewards=[1.0, 0.0, 0.0, 0.0, 0.0])
    found = group_advantages(group, ["a", "b"], SeparateCredit(min_minority=2))
    alone = group_advantages(
        a_group(a_task(), {"b": "11100"}, rewards=[1.0, 0.0, 0.0, 0.0, 0.0]), ["b"], SeparateCredit()
    )
    assert found is not None
    assert alone is not None
    close(found.combined_J, alone.combined_J)


def test_a_single_verdict_against_the_others_is_removed_and_no_other_rubric_changes() -> None:
    verdict_IJ = np.array([[1, 0, 0, 0, NAN], [1, 1, 0, 0, NAN], [0, 1, 1, 1, NAN]])
    found_IJ = trusted(verdict_IJ, 2)
    assert found_IJ.dtype == np.float64
    np.testing.assert_array_equal(found_IJ, [[NAN] * 5, [1, 1, 0, 0, NAN], [NAN] * 5])
    np.testing.assert_array_equal(trusted(verdict_IJ, 1), verdict_IJ)


def test_the_rule_of_the_paper_judges_by_the_rubrics_of_the_pool() -> None:
    group = a_group(a_task(), {"a": "110", "b": "011", "left": "001"}, rewards=[1.0, 0.0, 0.0])
    credit = SeparateCredit(rubric_weight=0.4)
    pool = a_pool({"a": Capability.EXECUTION, "b": Capability.DEBUGGING})
    found = separate_credit(credit)(group, pool)
    expected = group_advantages(group, ["a", "b"], credit)
    assert found is not None
    assert expected is not None
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    close(found.combined_J, combined_advantages([1.0, 0.0, 0.0], [[1, 1, 0], [0, 1, 1]], 0.4))
