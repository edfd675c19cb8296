"""Redact keys in a trajectory before it is judged or stored, or log a warning."""

import logging
from dataclasses import dataclass, replace

from arise.ports import Agent, Sandbox
from arise.text.secrets import found, redact
from arise.types import ShownSkill, Task, Trajectory, Turn

log = logging.getLogger(__name__)


@dataclass
class RedactingAgent:
    """Redact keys in the trajectories of an agent; with `keep`, keep them and log the first one."""

    agent: Agent
    keep: bool
    warned: bool = False

    async def attempt(
        self, task: Task, sandbox: Sandbox, system: str, shown: tuple[ShownSkill, ...], key: str, seed: int
    ) -> Trajectory:
        """Return the agent's trajectory with keys redacted in its text; tokens are unchanged."""
        trajectory = await self.agent.attempt(task, sandbox, system, shown, key, seed)
        if not self.keep:
            return replace(trajectory, turns=tuple(map(redacted_turn, trajectory.turns)))
        if not self.warned and any(found(seen.text) for turn in trajectory.turns for seen in turn.observations):
            self.warned = True
            log.warning("%s saw what looks like a key, and storage.secrets = 'keep' stores it", key)
        return trajectory


def redacted_turn(turn: Turn) -> Turn:
    """Return a turn with keys redacted in its text, calls and observations."""
    calls = tuple(
        replace(call, arguments={name: _redacted(value) for name, value in call.arguments.items()})
        for call in turn.calls
    )
    observations = tuple(replace(seen, text=redact(seen.text)) for seen in turn.observations)
    return Turn(redact(turn.text), calls, observations, redact(turn.reasoning))


def _redacted(value: object) -> object:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [_redacted(item) for item in value]
    if isinstance(value, dict):
        return {name: _redacted(item) for name, item in value.items()}
    return value
