"""Every setting of a run, with the paper's value as its default. `file` loads TOML; everything else is pure data."""

from arise.config.schema import (
    AgentConfig,
    Config,
    HarborTasks,
    LossConfig,
    NoJudging,
    OfflineJudging,
    OptimizerConfig,
    PolicyConfig,
    PoolCriteria,
    PretrainedModel,
    SamplingConfig,
    SeparateCredit,
    SkillGuidance,
    SmallModel,
    TrainConfig,
    WorldTasks,
)

__all__ = [
    "AgentConfig",
    "Config",
    "HarborTasks",
    "LossConfig",
    "NoJudging",
    "OfflineJudging",
    "OptimizerConfig",
    "PolicyConfig",
    "PoolCriteria",
    "PretrainedModel",
    "SamplingConfig",
    "SeparateCredit",
    "SkillGuidance",
    "SmallModel",
    "TrainConfig",
    "WorldTasks",
]
