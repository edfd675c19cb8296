"""ARISE: train agents on what they still get wrong.

The public API is what `__all__` lists; every name is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

_MODULES = {
    "arise.baselines.uniform": ("Uniform",),
    "arise.baselines.vade": ("Vade",),
    "arise.compose.api": ("resume_run", "start_run"),
    "arise.config": ("AgentConfig", "Config", "SamplingConfig"),
    "arise.config.file": ("ConfigError", "load_config"),
    "arise.errors": ("AriseError",),
    "arise.method.advantage": ("combined_advantages",),
    "arise.method.credit": ("Advantages", "CreditRule", "group_advantages", "separate_credit"),
    "arise.method.lifecycle": ("evolve", "fates"),
    "arise.method.loss": ("policy_loss",),
    "arise.method.reward": ("length_regularized",),
    "arise.method.sampler": ("CapabilitySampler",),
    "arise.ports": (
        "Agent",
        "Chat",
        "Engine",
        "Judge",
        "PolicyLost",
        "Reflector",
        "Sampler",
        "Sandbox",
        "SandboxLost",
        "SandboxPool",
        "Tracker",
    ),
    "arise.rollouts.token_record": ("TokenRecord",),
    "arise.run.reader": ("RunReader",),
    "arise.types": (
        "Capabilities",
        "Capability",
        "CommandResult",
        "Diagnostic",
        "DiagnosticItem",
        "DiagnosticKind",
        "Draw",
        "DrawPath",
        "Example",
        "GenerationRecord",
        "Group",
        "Judgment",
        "LossSpec",
        "Observation",
        "OptimSpec",
        "Pair",
        "PolicyRef",
        "Pool",
        "Proposal",
        "RefinementRecord",
        "Reflection",
        "Rejection",
        "Rewrite",
        "Rollout",
        "Rubric",
        "SamplingParams",
        "Segment",
        "Selection",
        "ShownSkill",
        "Skill",
        "StepStats",
        "StopReason",
        "Task",
        "Tokens",
        "ToolCall",
        "Trajectory",
        "Turn",
        "Verdict",
    ),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}

if TYPE_CHECKING:
    from arise.baselines.uniform import Uniform
    from arise.baselines.vade import Vade
    from arise.compose.api import resume_run, start_run
    from arise.config import AgentConfig, Config, SamplingConfig
    from arise.config.file import ConfigError, load_config
    from arise.errors import AriseError
    from arise.method.advantage import combined_advantages
    from arise.method.credit import Advantages, CreditRule, group_advantages, separate_credit
    from arise.method.lifecycle import evolve, fates
    from arise.method.loss import policy_loss
    from arise.method.reward import length_regularized
    from arise.method.sampler import CapabilitySampler
    from arise.ports import (
        Agent,
        Chat,
        Engine,
        Judge,
        PolicyLost,
        Reflector,
        Sampler,
        Sandbox,
        SandboxLost,
        SandboxPool,
        Tracker,
    )
    from arise.rollouts.token_record import TokenRecord
    from arise.run.reader import RunReader
    from arise.types import (
        Capabilities,
        Capability,
        CommandResult,
        Diagnostic,
        DiagnosticItem,
        DiagnosticKind,
        Draw,
        DrawPath,
        Example,
        GenerationRecord,
        Group,
        Judgment,
        LossSpec,
        Observation,
        OptimSpec,
        Pair,
        PolicyRef,
        Pool,
        Proposal,
        RefinementRecord,
        Reflection,
        Rejection,
        Rewrite,
        Rollout,
        Rubric,
        SamplingParams,
        Segment,
        Selection,
        ShownSkill,
        Skill,
        StepStats,
        StopReason,
        Task,
        Tokens,
        ToolCall,
        Trajectory,
        Turn,
        Verdict,
    )

__all__ = [
    "Advantages",
    "Agent",
    "AgentConfig",
    "AriseError",
    "Capabilities",
    "Capability",
    "CapabilitySampler",
    "Chat",
    "CommandResult",
    "Config",
    "ConfigError",
    "CreditRule",
    "Diagnostic",
    "DiagnosticItem",
    "DiagnosticKind",
    "Draw",
    "DrawPath",
    "Engine",
    "Example",
    "GenerationRecord",
    "Group",
    "Judge",
    "Judgment",
    "LossSpec",
    "Observation",
    "OptimSpec",
    "Pair",
    "PolicyLost",
    "PolicyRef",
    "Pool",
    "Proposal",
    "RefinementRecord",
    "Reflection",
    "Reflector",
    "Rejection",
    "Rewrite",
    "Rollout",
    "Rubric",
    "RunReader",
    "Sampler",
    "SamplingConfig",
    "SamplingParams",
    "Sandbox",
    "SandboxLost",
    "SandboxPool",
    "Segment",
    "Selection",
    "ShownSkill",
    "Skill",
    "StepStats",
    "StopReason",
    "Task",
    "TokenRecord",
    "Tokens",
    "ToolCall",
    "Tracker",
    "Trajectory",
    "Turn",
    "Uniform",
    "Vade",
    "Verdict",
    "__version__",
    "combined_advantages",
    "evolve",
    "fates",
    "group_advantages",
    "length_regularized",
    "load_config",
    "policy_loss",
    "resume_run",
    "separate_credit",
    "start_run",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that `import arise` stays fast."""
    if name not in _HOME:
        raise AttributeError(f"module 'arise' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
