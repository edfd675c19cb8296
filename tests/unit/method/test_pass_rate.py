import numpy as np
import pytest

from arise.method.evidence import records_of
from arise.method.pass_rate import pass_rate, unguided_success, verdict_arrays, window_tallies
from arise.types import Group, ShownSkill, Tally
from tests.builders import FAIL, NA, NAN, PASS, a_group, a_rollout, a_task


def test_rate_is_one_division_of_counts() -> None:
    assert pass_rate(Tally(27, 90)) == 0.3
    assert pass_rate(Tally(0, 4)) == 0.0
    assert pass_rate(Tally(4, 4)) == 1.0
    assert pass_rate(Tally(0, 0)) is None


@pytest.mark.parametrize(("passes", "evaluations"), [(-1, 4), (5, 4), (1, 0), (0, -1)])
def test_impossible_counts(passes: int, evaluations: int) -> None:
    with pytest.raises(ValueError, match=rf"^tally {passes} of {evaluations}: passes must be between 0 and"):
        pass_rate(Tally(passes, evaluations))


def test_not_applicable_is_valid_and_absent_is_not() -> None:
    group = a_group(a_task(), {"a": "10n-", "b": "----"})
    verdict_IJ, valid_IJ = verdict_arrays(group, ["a", "b", "unknown"])
    np.testing.assert_array_equal(verdict_IJ, [[1, 0, NAN, NAN], [NAN] * 4, [NAN] * 4])
    assert valid_IJ.tolist() == [[True, True, True, False], [False] * 4, [False] * 4]


def test_a_rollout_without_judgment_has_no_verdicts() -> None:
    group = Group(a_task(), (a_rollout(0, None), a_rollout(1, {"a": PASS})), 2)
    verdict_IJ, valid_IJ = verdict_arrays(group, ["a"])
    np.testing.assert_array_equal(verdict_IJ, [[NAN, 1]])
    assert valid_IJ.tolist() == [[False, True]]


def test_no_rubrics() -> None:
    verdict_IJ, valid_IJ = verdict_arrays(a_group(a_task(), {"a": "11"}), [])
    assert verdict_IJ.shape == valid_IJ.shape == (0, 2)


def test_window_counts_every_valid_applicable_verdict_even_of_incomplete_groups() -> None:
    rollouts = (
        a_rollout(0, {"a": PASS, "b": NA}),
        a_rollout(1, {"a": FAIL, "gone": PASS}, reward=None),
        a_rollout(2, {"a": FAIL}),
    )
    records = records_of(3, [Group(a_task(), rollouts, 8)])
    assert window_tallies(records, ["a", "b", "c"]) == {"a": Tally(1, 3), "b": Tally(0, 0), "c": Tally(0, 0)}


def test_unguided_are_the_rollouts_that_did_not_see_that_rubrics_own_skill() -> None:
    rollouts = (
        a_rollout(0, {"a": PASS, "b": PASS}, shown=[ShownSkill("a", 0)]),
        a_rollout(1, {"a": PASS, "b": FAIL}, shown=[ShownSkill("a", 2), ShownSkill("b", 0)]),
        a_rollout(2, {"a": FAIL, "b": NA}),
    )
    records = records_of(3, [Group(a_task(), rollouts, 3)])
    assert window_tallies(records, ["a", "b"]) == {"a": Tally(2, 3), "b": Tally(1, 2)}
    assert window_tallies(records, ["a", "b"], unguided=True) == {"a": Tally(0, 1), "b": Tally(1, 1)}


def test_unguided_success_counts_verified_rollouts_of_the_types_without_any_skill() -> None:
    skill = ShownSkill("r001", 0)
    rollouts = (
        a_rollout(0, {}, reward=1.0),
        a_rollout(1, {}, reward=0.0),
        a_rollout(2, {}, reward=1.0, shown=[skill]),
        a_rollout(3, {}, reward=None),
    )
    csv = Group(a_task("x1", "csv", "etl"), rollouts, 4)
    logs = Group(a_task("x2", "logs"), (a_rollout(4, {}, reward=1.0),), 1)
    records = records_of(0, [csv, logs])
    found = unguided_success(records, [("csv",), ("etl", "logs"), ("pdf",)])
    assert found == (Tally(1, 2), Tally(2, 3), Tally(0, 0))
