"""Settings of the agent. A new kind of agent is one class here and one line in `compose/registry.py`."""

from typing import Annotated, Literal

from pydantic import Field

from arise.config.base import Count, Positive, Section
from arise.config.imported import Imported


class AgentConfig(Section):
    """Limits of one attempt, shared by every kind of agent."""

    max_turns: Count = 12
    max_tokens: Count = 64
    command_seconds: Positive = 10.0
    observation_chars: Count = 400


class ShellAgentConfig(AgentConfig):
    """The built-in agent: one shell command per turn, written as `$ command`."""

    kind: Literal["shell"] = "shell"


class ImportedAgent(AgentConfig, Imported):
    """An agent of your own; the limits are handed to it."""


AgentChoice = Annotated[ShellAgentConfig | ImportedAgent, Field(discriminator="kind")]
