"""Rates of behaviours without guidance, with their skill and with all: what counts, and what is missing."""

from pathlib import Path

import pytest

from arise.compose.evaluations import PolicyChoice, Wanted, guidance
from arise.errors import AriseError, Exit
from arise.evaluation.guidance import arm_of, report
from arise.run.folder import claim
from arise.types import Attempt, ShownSkill, Tally
from tests.builders import FAIL, NA, PASS, a_pair, an_attempt
from tests.stored_runs import write_run

NOTHING = an_attempt(success=False)


def attempts(passes: int, fails: int, rubric: str = "r1") -> list[Attempt]:
    made = [(True, PASS)] * passes + [(False, FAIL)] * fails
    return [an_attempt(success=success, verdicts={rubric: verdict}) for success, verdict in made]


def test_only_applicable_verdicts_and_known_outcomes_count() -> None:
    lost = an_attempt(success=None, fault="sandbox: lost")
    elsewhere = an_attempt(verdicts={"r1": NA})
    arm = arm_of([*attempts(2, 1), lost, elsewhere])
    assert (arm.outcomes, arm.faults, arm.behaviours) == (Tally(3, 4), 1, {"r1": Tally(2, 3)})


def test_a_skill_is_compared_with_no_skill_on_its_own_behaviour() -> None:
    records = {"none": attempts(1, 9), "r1": attempts(6, 4), "all": attempts(8, 2)}
    found = report([a_pair("r1")], {name: arm_of(given) for name, given in records.items()})
    (row,) = found["behaviours"]
    assert [row[name]["rate"] for name in ("without", "with_skill", "with_all")] == [10.0, 60.0, 80.0]
    assert row["difference"]["points"] == pytest.approx(50.0)
    assert row["difference"]["interval"][0] > 0.0
    assert (found["passed_without"]["passes"], found["passed_with_all"]["passes"]) == (1, 8)
    assert row["without"]["interval"] == pytest.approx([1.79, 40.42], abs=0.01)


def test_skills_that_did_not_fit_are_named() -> None:
    crowded = an_attempt(left_out=[ShownSkill("r1", 0)])
    arms = {name: arm_of(attempts(1, 1)) for name in ("none", "r1")}
    arms["all"] = arm_of([crowded])
    assert report([a_pair("r1")], arms)["left_out"] == {"all": ["r1"]}


def test_a_behaviour_that_never_applied_has_no_rate_and_no_difference() -> None:
    arms = {name: arm_of([NOTHING] * 3) for name in ("none", "r1", "all")}
    (row,) = report([a_pair("r1")], arms)["behaviours"]
    assert row["without"] == {"passes": 0, "evaluations": 0, "rate": None, "interval": None}
    assert row["difference"] is None


def test_a_run_without_a_skill_is_refused_before_anything_is_tried(tmp_path: Path) -> None:
    write_run(tmp_path / "run", iterations=1)
    with pytest.raises(AriseError, match="there is no skill in its pool") as caught:
        guidance(tmp_path / "run", claim(tmp_path / "run"), PolicyChoice(), Wanted("base"), False, print)
    assert caught.value.exit_code == Exit.CONFIG
