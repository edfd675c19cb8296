"""Alarms from the counts of a run."""

import pytest

from arise.run.facts.alarms import ONE_SIDED_AFTER, _one_sided
from arise.run.pool_rows import VerdictCount
from arise.run.rows import GroupSums


def outcomes(successes: int) -> list[GroupSums]:
    return [GroupSums(0, 8, 64, 64, successes, 0, 8, 0, 0)]


def verdicts(passes: int, fails: int) -> list[VerdictCount]:
    return [VerdictCount("r001", 0, False, passes, fails, 3, 0)]


@pytest.mark.parametrize(("passes", "fails", "said"), [(ONE_SIDED_AFTER, 0, "passes"), (0, ONE_SIDED_AFTER, "fails")])
def test_a_judge_that_gives_one_verdict_to_everything_is_named(passes: int, fails: int, said: str) -> None:
    alarm = _one_sided(verdicts(passes, fails), outcomes(20))
    assert alarm is not None
    assert f"All {ONE_SIDED_AFTER} recent verdicts are {said}, while 20 of 64 rollouts succeed" in alarm.text


def test_verdicts_that_differ_or_agree_with_the_outcome_are_no_alarm() -> None:
    assert _one_sided(verdicts(ONE_SIDED_AFTER, 1), outcomes(20)) is None
    assert _one_sided(verdicts(ONE_SIDED_AFTER, 0), outcomes(64)) is None, "everything succeeds"
    assert _one_sided(verdicts(0, ONE_SIDED_AFTER), outcomes(0)) is None, "everything fails"
    assert _one_sided(verdicts(ONE_SIDED_AFTER - 1, 0), outcomes(20)) is None, "too few to tell"
