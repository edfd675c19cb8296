import pytest

from arise.config import SkillGuidance
from arise.method.evidence import records_of
from arise.method.pass_rate import unguided_success
from arise.rollouts.showing import ActiveSkills
from arise.types import Group, ShownSkill, Tally
from tests.builders import a_rollout, a_task


@pytest.mark.parametrize(
    ("dose", "unguided", "share"),
    [
        ("fixed", Tally(4, 8), 0.5),
        ("fading", Tally(), 0.5),
        ("fading", Tally(0, 8), 0.5),
        ("fading", Tally(2, 8), 0.375),
        ("fading", Tally(8, 8), 0.0),
        ("unsolved", Tally(), 0.5),
        ("unsolved", Tally(0, 8), 0.5),
        ("unsolved", Tally(1, 8), 0.0),
    ],
)
def test_the_dose_sets_the_guided_share(dose: str, unguided: Tally, share: float) -> None:
    guidance = ActiveSkills(SkillGuidance.model_validate({"share": 0.5, "dose": dose}))
    assert guidance.share(unguided) == share


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
