import pytest

from arise.config import SkillGuidance
from arise.rollouts.showing import ActiveSkills
from arise.types import Tally


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
