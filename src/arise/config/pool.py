"""Settings of the pool: limits and thresholds, evidence for updates, and the watch over retired rubrics."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from arise.config.base import Count, Fraction, Section


class PoolConfig(Section):
    """Update interval and maximum size of the pool, and the thresholds to activate and retire a pair."""

    update_every: Count = 10
    max_pairs: Count = 64
    max_new_pairs: Annotated[int, Field(ge=0)] = 8
    activate_at: Fraction = 0.3
    retire_at: Annotated[float, Field(gt=0.0, le=1.0)] = 0.9
    rate: Literal["all", "unguided"] = "all"
    """Which verdicts of a window decide on activation and retirement: all, as in the paper, or those of rollouts
    without the pair's skill in the prompt; if a window has none of these (every rollout is guided), all."""
    min_evaluations: Count = 1
    """With fewer deciding verdicts in its window, a pair is unchanged."""
    reopen_issues: Count = 3
    """Rollouts since retirement that must lack a behaviour before generation may reopen its pair."""
    evolves: bool = True
    """If false, the pool is never updated."""
    retires: bool = True
    """If false, a mastered pair stays in the pool with its skill hidden."""
    lifecycle: str = ""
    """A file of `arise pool export`: the pool starts with every pair that the run ever had, skills hidden."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.activate_at >= self.retire_at:
            raise ValueError(f"activate_at ({self.activate_at}) must be below retire_at ({self.retire_at})")
        return self


class EvidenceConfig(Section):
    """B_k: its window in iterations, and the number of records per call."""

    window: Count = 10
    generation_records: Count = 256
    refinement_records: Count = 32
    generation_rounds: Count = 3


class WatchConfig(Section):
    """Re-judge retired rubrics on a share of training rollouts (0: never) and reopen those that were unlearned."""

    share: Fraction = 0.0
    reopen_below: Fraction = 0.7
    min_evaluations: Count = 8
