"""Selection of the rollouts of a group that see the active skills."""

from dataclasses import dataclass

from arise.config import SkillGuidance
from arise.method.pass_rate import pass_rate
from arise.rollouts.guidance import active_pairs
from arise.types import Pair, Pool, Tally


@dataclass(frozen=True)
class ActiveSkills:
    """Show every active skill to the first rollouts of a group: a share that the dose sets."""

    settings: SkillGuidance

    def shown(
        self,
        pool: Pool,
        iteration: int,  # noqa: ARG002
        task_id: str,  # noqa: ARG002
        group_size: int,
        unguided: Tally,
    ) -> list[tuple[Pair, ...]]:
        """Return the pairs that each rollout of the group sees."""
        guided = round(self.share(unguided) * group_size)
        return [active_pairs(pool) if j < guided else () for j in range(group_size)]

    def share(self, unguided: Tally) -> float:
        """Return the share of a group that is guided, given recent successes without skills at such tasks."""
        solved = pass_rate(unguided) or 0.0
        if self.settings.dose == "unsolved":
            return 0.0 if solved else self.settings.share
        if self.settings.dose == "fading":
            return self.settings.share * (1.0 - solved)
        return self.settings.share
