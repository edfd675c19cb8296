"""Settings of the agent. A new kind of agent is one class here and one line in `compose/registry.py`."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

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
    """The agent for instruct models: native tool calls, several per turn, multi-line commands."""

    kind: Literal["tools"] = "tools"
    max_turns: Count = 40
    max_tokens: Count = 2048
    attempt_tokens: Count = 32_768
    """Most generated tokens of one attempt."""
    attempt_seconds: Positive = 3600.0
    """Maximum seconds of one attempt, including time for the model; checked between turns."""
    command_seconds: Positive = 60.0
    observation_chars: Count = 8_000
    tools: Annotated[tuple[Literal["bash", "read", "write", "edit"], ...], Field(min_length=1, strict=False)] = (
        "bash",
        "read",
        "write",
        "edit",
    )
    """The tools of the model."""
    reasoning: Literal["keep", "drop"] = "keep"
    """`keep` leaves reasoning in the conversation; `drop` removes it from earlier turns, so each turn is a row."""
    system_prompt: str = SYSTEM_PROMPT
    """The system message; evolved skills are appended to it."""


class HarnessConfig(AgentConfig):
    """Limits of an attempt by a harness, which uses its own prompts, tools and loop."""

    max_turns: Count = 100
    max_tokens: Count = 4096
    attempt_tokens: Count = 65_536
    """Most generated tokens of one attempt."""
    attempt_seconds: Positive = 3600.0
    """Maximum seconds of one attempt, including time for the model; the task's own limit applies as well."""
    model_name: Annotated[str, Field(pattern=r"^[\w.-]+$")] = "policy"
    """The model name with which the harness calls the policy."""
    at_once: Annotated[int, Field(ge=0)] = 0
    """How many harnesses run at once; 0 is two for each processor of this machine."""

    @model_validator(mode="after")
    def _tools_are_its_own(self) -> Self:
        for name in ("command_seconds", "observation_chars"):
            if getattr(self, name) != AgentConfig.model_fields[name].default:
                raise ValueError(f"{name} has no effect here: a harness runs its own tools; leave it out")
        return self


class HarnessAgentConfig(HarnessConfig):
    """An unmodified agent harness, run in the sandbox; `arise harness list` shows which are usable."""

    kind: Literal["claude-code", "codex", "kilo", "mini-swe-agent", "opencode", "pi"]
    arguments: list[str] = Field(default_factory=list)
    """Further arguments of the harness's command line, such as `["--tools", "bash"]` for pi."""


class CommandAgentConfig(HarnessConfig):
    """A custom harness, started by a shell command in the sandbox.

    `{{url}}`, `{{key}}`, `{{model}}`, `{{instruction}}` (a file) and `{{home}}` (a folder) are filled in.
    """

    kind: Literal["command"] = "command"
    command: str
    """The shell command that starts the harness."""
    env: dict[str, str] = Field(default_factory=dict)
    """Environment variables of the harness, with the same placeholders."""
    files: dict[str, str] = Field(default_factory=dict)
    """Files to write before the start, by path below /tmp or the working directory."""
    read_only: list[str] = Field(default_factory=list)
    """Host paths that the sandbox mounts read-only, such as the installation folder of the harness."""
    memory_mb: Count = 1536
    """Memory limit of the sandbox in MiB."""


class ImportedAgent(AgentConfig, Imported):
    """A custom agent, which receives these limits."""


AgentChoice = Annotated[
    ShellAgentConfig | ToolAgentConfig | HarnessAgentConfig | CommandAgentConfig | ImportedAgent,
    Field(discriminator="kind"),
]
