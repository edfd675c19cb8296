"""Every setting of a run, with the paper's value as its default. `file` loads TOML; everything else is pure data."""

from arise.config.schema import (
    Agent,
    Config,
    Credit,
    HarborTasks,
    Loss,
    NoJudging,
    OfflineJudging,
    Optimizer,
    Policy,
    PoolCriteria,
    PretrainedModel,
    Sampling,
    SkillGuidance,
    SmallModel,
    Train,
    WorldTasks,
)

__all__ = [
    "Agent",
    "Config",
    "Credit",
    "HarborTasks",
    "Loss",
    "NoJudging",
    "OfflineJudging",
    "Optimizer",
    "Policy",
    "PoolCriteria",
    "PretrainedModel",
    "Sampling",
    "SkillGuidance",
    "SmallModel",
    "Train",
    "WorldTasks",
]
