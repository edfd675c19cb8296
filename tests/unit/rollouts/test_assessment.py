import asyncio
from dataclasses import replace

import pytest

from arise.config import SkillGuidance
from arise.rollouts.assessment import EachRollout, WithWatch
from arise.rollouts.showing import ActiveSkills
from arise.types import Group, Judgment, Pool, Rollout, Tally, Task
from tests.builders import PASS, a_pair, a_rollout, a_task

POOL = Pool((a_pair("r002", active=True), a_pair("r003")), 4, 3, (a_pair("r001"),))


class Passes:
    """A judge to whom everything passes; it remembers what it was asked."""

    identity = "passes"

    def __init__(self) -> None:
        self.asked: list[tuple[str, tuple[str, ...]]] = []

    async def judge(self, task: Task, rollout: Rollout, pool: Pool) -> Judgment:
        del task
        ids = tuple(rubric.id for rubric in pool.rubrics)
        self.asked.append((rollout.trajectory.id, ids))
        return Judgment(pool.version, self.identity, dict.fromkeys(ids, PASS))


def a_batch(size: int) -> Group:
    lost = replace(a_rollout(0, reward=None), fault="sandbox: gone")
    return Group(a_task(), (lost, *(a_rollout(n) for n in range(1, size))), size)


def test_every_attempt_that_was_made_is_judged() -> None:
    judge = Passes()
    group = asyncio.run(EachRollout(judge).assess(a_batch(3), POOL))
    assert group.rollouts[0].judgment is None
    assert [rollout.judgment and dict(rollout.judgment.verdicts) for rollout in group.rollouts[1:]] == [
        {"r002": PASS, "r003": PASS}
    ] * 2
    assert len(judge.asked) == 2


@pytest.mark.parametrize(("share", "low", "high"), [(1.0, 199, 199), (0.25, 30, 70), (0.0, 0, 0)])
def test_the_watch_judges_a_share_by_retired_rubrics_and_leaves_verdicts_alone(
    share: float, low: int, high: int
) -> None:
    judge = Passes()
    group = asyncio.run(WithWatch(EachRollout(judge), judge, share, seed=1).assess(a_batch(200), POOL))
    judged = [rollout.judgment for rollout in group.rollouts if rollout.judgment]
    assert all(set(judgment.verdicts) == {"r002", "r003"} for judgment in judged)
    assert low <= sum(dict(judgment.watched) == {"r001": PASS} for judgment in judged) <= high


def test_the_watch_has_nothing_to_do_before_a_retirement() -> None:
    judge = Passes()
    asyncio.run(WithWatch(EachRollout(judge), judge, 1.0, seed=1).assess(a_batch(3), replace(POOL, retired=())))
    assert len(judge.asked) == 2


@pytest.mark.parametrize(("share", "guided"), [(1.0, 8), (0.5, 4), (0.25, 2), (0.0, 0)])
def test_a_share_of_the_group_sees_the_active_skills(share: float, guided: int) -> None:
    shown = ActiveSkills(SkillGuidance(share=share)).shown(POOL, 0, "x1", 8, Tally())
    assert shown == [(POOL.pairs[0],)] * guided + [()] * (8 - guided)
