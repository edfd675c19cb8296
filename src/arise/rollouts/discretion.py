"""Keys that an agent comes across: taken out of a trajectory before anything judges or stores it, or flagged."""

import logging
from dataclasses import dataclass, replace

from arise.ports import Agent, Sandbox
from arise.text.secrets import found, redact
from arise.types import ShownSkill, Task, Trajectory, Turn

log = logging.getLogger(__name__)


@dataclass
class RedactingAgent:
    """Redact keys from what an agent leaves; with `keep` they stay and the first one is logged."""

    agent: Agent
    keep: bool
    warned: bool = False

    async def attempt(
        self, task: Task, sandbox: Sandbox, system: str, shown: tuple[ShownSkill, ...], key: str, seed: int
    ) -> Trajectory:
        """One trajectory, as the agent made it but for keys in its text; tokens stay as they are."""
        trajectory = await self.agent.attempt(task, sandbox, system, shown, key, seed)
        if not self.keep:
            return replace(trajectory, turns=tuple(map(redacted_turn, trajectory.turns)))
        if not self.warned and any(found(seen.text) for turn in trajectory.turns for seen in turn.observations):
            self.warned = True
            log.warning("%s saw what looks like a key, and storage.secrets = 'keep' stores it", key)
        return trajectory


def redacted_turn(turn: Turn) -> Turn:
    """A turn without keys in its text, calls and observations."""
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
