"""Selection of the rollouts of a group that see the active skills."""

from dataclasses import dataclass

from arise.rollouts.guidance import active_pairs
from arise.types import Pair, Pool


@dataclass(frozen=True)
class ActiveSkills:
    """Show every active skill to the first `share` of a group; the paper shows them to all (1.0)."""

    share: float = 1.0

    def shown(self, pool: Pool, iteration: int, task_id: str, group_size: int) -> list[tuple[Pair, ...]]:  # noqa: ARG002
        """Return the pairs that each rollout of the group sees."""
        guided = round(self.share * group_size)
        return [active_pairs(pool) if j < guided else () for j in range(group_size)]
