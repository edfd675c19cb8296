"""Who says how well a group did: each rollout by the pool's rubrics (paper Sec. 3.2)."""

import asyncio
from dataclasses import dataclass, replace

from arise.ports import Judge
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
