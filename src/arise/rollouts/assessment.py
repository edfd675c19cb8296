"""Assess a group: judge each rollout by the pool's rubrics (paper Sec. 3.2), and some by retired ones too."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from hashlib import blake2b

from arise.ports import Assessor, Judge
from arise.text.progress import Progress
from arise.types import Group, Pool, Rollout
from arise.types.absence import WITHHELD

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class EachRollout:
    """Judge every rollout separately."""

    judge: Judge
    wait: Progress = field(default_factory=lambda: Progress(log, "judge: rollouts"))

    async def assess(self, group: Group, pool: Pool) -> Group:
        """Return the group with its judgments."""

        async def judged(rollout: Rollout) -> Rollout:
            # A rollout with an infrastructure fault has nothing to judge.
            judgment = None if rollout.fault else await self.judge.judge(group.task, rollout, pool)
            self.wait.add()
            return rollout if judgment is None else replace(rollout, judgment=judgment)

        self.wait.expect(len(group.rollouts))
        return replace(group, rollouts=tuple(await asyncio.gather(*map(judged, group.rollouts))))


@dataclass(frozen=True)
class WhileUsable:
    """Judge with `assessor`, and withhold its verdicts while `unusable` says why they should not count.

    Verdicts are still requested, so that a judge that has recovered is noticed. `unusable` may raise to
    stop the run.
    """

    assessor: Assessor
    unusable: Callable[[], str]

    async def assess(self, group: Group, pool: Pool) -> Group:
        """Return the group with its judgments, or with the reason why they do not count."""
        why = self.unusable()
        judged = await self.assessor.assess(group, pool)
        return (
            replace(judged, rollouts=tuple(_withheld(rollout, why) for rollout in judged.rollouts)) if why else judged
        )


def _withheld(rollout: Rollout, why: str) -> Rollout:
    found = rollout.judgment
    if found is None:
        return rollout
    absent = dict(found.absent) | dict.fromkeys(found.verdicts, f"{WITHHELD}: {why}")
    return replace(rollout, judgment=replace(found, verdicts={}, absent=absent))


@dataclass(frozen=True)
class WithWatch:
    """Judge with `assessor`, and a share of the rollouts also by retired rubrics, in separate calls."""

    assessor: Assessor
    judge: Judge
    share: float
    seed: int

    async def assess(self, group: Group, pool: Pool) -> Group:
        """Return the group with its judgments; verdicts on retired rubrics are in `watched`."""
        judged = await self.assessor.assess(group, pool)
        retired = Pool(pool.retired, pool.version)

        async def watched(rollout: Rollout) -> Rollout:
            if rollout.judgment is None or not retired.pairs or not self._chosen(rollout.trajectory.id):
                return rollout
            found = await self.judge.judge(group.task, rollout, retired)
            return replace(rollout, judgment=replace(rollout.judgment, watched=found.verdicts))

        return replace(judged, rollouts=tuple(await asyncio.gather(*map(watched, judged.rollouts))))

    def _chosen(self, trajectory_id: str) -> bool:
        """Return whether a rollout is watched, by a hash of seed and id, so that a replay selects the same rollouts."""
        lot = blake2b(f"{self.seed}/watch/{trajectory_id}".encode(), digest_size=8).digest()
        return int.from_bytes(lot, "big") < self.share * 2**64
