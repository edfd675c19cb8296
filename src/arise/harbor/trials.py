"""Trials of Harbor: their configuration, and what their result means for ARISE."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from arise.rollouts.reward import RewardError, choose_reward

CAUSED_BY_ATTEMPT = frozenset(
    {
        *("AgentTimeoutError", "NonZeroAgentExitCodeError", "ContextLengthExceededError", "OutputLengthExceededError"),
        *("VerifierTimeoutError", "VerifierOutputParseError", "RewardFileNotFoundError", "RewardFileEmptyError"),
    }
)
"""Exceptions of a trial that an agent can cause: the attempt failed, and no infrastructure did."""


@dataclass(frozen=True)
class HarborEnvironment:
    """An environment of Harbor — `HarborEnvironment("daytona")`, or `module:Class` for one of your own."""

    name: str = "docker"
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of Harbor's `environment` section, such as `kwargs`."""

    def fields(self) -> dict[str, Any]:
        """Return it as Harbor's configuration writes it."""
        chosen = {"import_path": self.name} if ":" in self.name else {"type": self.name}
        return {**self.options, **chosen}


@dataclass(frozen=True)
class TrialOutcome:
    """What a trial earned — `TrialOutcome(1.0)`; with a `fault` there is no reward."""

    reward: float | None
    fault: str = ""
    reason: str = ""
    """Why the reward is 0 where the tests did not say so."""


def trial_config(task: Path, name: str, folder: Path, environment: HarborEnvironment) -> dict[str, Any]:
    """Return the configuration of a trial, without its agent."""
    return {
        "task": {"path": str(task.resolve())},
        "trial_name": name,
        "trials_dir": str(folder),
        "environment": environment.fields(),
    }


def outcome(result: Mapping[str, Any]) -> TrialOutcome:
    """Return what a trial earned; an exception that no agent can cause is a fault."""
    rewards = (result.get("verifier_result") or {}).get("rewards")
    raised = _raised(result)
    if rewards:
        try:
            return TrialOutcome(choose_reward({name: float(value) for name, value in rewards.items()}))
        except RewardError as error:
            return TrialOutcome(0.0, reason=str(error))
    if raised is None:
        return TrialOutcome(None, "the trial ended without a reward and without an exception")
    kind, said = raised
    if kind in CAUSED_BY_ATTEMPT:
        return TrialOutcome(0.0, reason=f"{kind}: {said}")
    return TrialOutcome(None, f"{kind}: {said}")


def _raised(result: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the exception of a trial, or the first of its steps."""
    for part in (result, *(result.get("step_results") or ())):
        if found := part.get("exception_info"):
            return str(found["exception_type"]), str(found["exception_message"])[:1000]
    return None
