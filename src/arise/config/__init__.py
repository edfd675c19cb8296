"""Every setting of a run, with the paper's value as its default. `file` loads TOML; everything else is pure data."""

from arise.config.agent import AgentConfig, ToolAgentConfig
from arise.config.engine import ArealConfig, PolicyConfig, VerlConfig
from arise.config.imported import Imported
from arise.config.schema import (
    Config,
    HarborTasks,
    LossConfig,
    NoJudging,
    OfflineJudging,
    OfflineReflection,
    OptimizerConfig,
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
    "ArealConfig",
    "Config",
    "HarborTasks",
    "Imported",
    "LossConfig",
    "NoJudging",
    "OfflineJudging",
    "OfflineReflection",
    "OptimizerConfig",
    "PolicyConfig",
    "PoolCriteria",
    "PretrainedModel",
    "SamplingConfig",
    "SeparateCredit",
    "SkillGuidance",
    "SmallModel",
    "ToolAgentConfig",
    "TrainConfig",
    "VerlConfig",
    "WorldTasks",
]
