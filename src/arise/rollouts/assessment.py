"""Who says how well a group did: each rollout by the pool's rubrics (paper Sec. 3.2), some by retired ones too."""

import asyncio
from dataclasses import dataclass, replace
from hashlib import blake2b

from arise.ports import Assessor, Judge
from arise.types import Group, Pool, Rollout


@dataclass(frozen=True)
class EachRollout:
    """Asks the judge about every rollout by itself."""

    judge: Judge

    async def assess(self, group: Group, pool: Pool) -> Group:
        """The group with its judgments."""

        async def judged(rollout: Rollout) -> Rollout:
            # An attempt that infrastructure ended has nothing to be judged by.
            if rollout.fault:
                return rollout
            return replace(rollout, judgment=await self.judge.judge(group.task, rollout, pool))

        return replace(group, rollouts=tuple(await asyncio.gather(*map(judged, group.rollouts))))


@dataclass(frozen=True)
class WithWatch:
    """Judges as `assessor` does, and a share of the rollouts by the retired rubrics as well, apart from all else."""

    assessor: Assessor
    judge: Judge
    share: float
    seed: int

    async def assess(self, group: Group, pool: Pool) -> Group:
        """The group with its judgments, retired rubrics under `watched`."""
        judged = await self.assessor.assess(group, pool)
        retired = Pool(pool.retired, pool.version)

        async def watched(rollout: Rollout) -> Rollout:
            if rollout.judgment is None or not retired.pairs or not self._chosen(rollout.trajectory.id):
                return rollout
            found = await self.judge.judge(group.task, rollout, retired)
            return replace(rollout, judgment=replace(rollout.judgment, watched=found.verdicts))

        return replace(judged, rollouts=tuple(await asyncio.gather(*map(watched, judged.rollouts))))

    def _chosen(self, trajectory_id: str) -> bool:
        """A lot that depends on the names only, so that a replay watches the same rollouts."""
        lot = blake2b(f"{self.seed}/watch/{trajectory_id}".encode(), digest_size=8).digest()
        return int.from_bytes(lot, "big") < self.share * 2**64
