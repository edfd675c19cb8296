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
    """The agent of the embedded world: one shell command per turn, written as `$ command`."""

    kind: Literal["shell"] = "shell"


SYSTEM_PROMPT = """You are an agent that solves tasks on a Linux machine by calling tools.
Work in the current directory. Look at the files that matter before you change anything, and take one step at a time.
Read the result of every call. When the task is done, check the result against the task, then answer in one sentence
without calling a tool."""


class ToolAgentConfig(AgentConfig):
    """The agent for instruct models: native tool calls, several per turn, commands of any number of lines."""

    kind: Literal["tools"] = "tools"
    max_turns: Count = 40
    max_tokens: Count = 2048
    """Most tokens of one turn; a turn that is cut is told so and the attempt goes on."""
    attempt_tokens: Count = 32_768
    """Most generated tokens of one attempt."""
    attempt_seconds: Positive = 3600.0
    """Most seconds of one attempt, waiting for the model included; checked between turns."""
    command_seconds: Positive = 60.0
    observation_chars: Count = 8_000
    """Most characters of one tool result; of a longer one the beginning and the end are shown."""
    tools: Annotated[tuple[Literal["bash", "read", "write", "edit"], ...], Field(min_length=1, strict=False)] = (
        "bash",
        "read",
        "write",
        "edit",
    )
    """The tools that the model is offered."""
    reasoning: Literal["keep", "drop"] = "keep"
    """`keep` leaves reasoning in the conversation; `drop` removes it from earlier turns, so that each turn is a row."""
    system_prompt: str = SYSTEM_PROMPT
    """The system message; evolved skills are appended to it."""


class ImportedAgent(AgentConfig, Imported):
    """An agent of your own; the limits are handed to it."""


AgentChoice = Annotated[ShellAgentConfig | ToolAgentConfig | ImportedAgent, Field(discriminator="kind")]
