"""What is said in a conversation: messages, function calls, tools, and what was read out of generated tokens."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True)
class FunctionCall:
    """One call of an assistant turn — `FunctionCall("call_1", "bash", {"command": "ls"})`; `raw` is its source text."""

    id: str
    name: str
    arguments: Mapping[str, object] = field(default_factory=dict)
    raw: str = ""


@dataclass(frozen=True)
class Message:
    """One message — `Message("user", "List the files.")`; a tool message answers the call named by `call_id`."""

    role: Role
    text: str = ""
    reasoning: str = ""
    calls: tuple[FunctionCall, ...] = ()
    call_id: str = ""
    name: str = ""
    """Name of the tool that a tool message comes from."""


@dataclass(frozen=True)
class ToolSpec:
    """A tool that the model may call; `parameters` is the JSON schema of its arguments."""

    name: str
    description: str
    parameters: Mapping[str, object] = field(default_factory=lambda: {"type": "object", "properties": {}})


@dataclass(frozen=True)
class Reply:
    """An assistant turn read from generated tokens.

    `malformed` says why a call could not be read. `calls` is then empty and the raw text stays in `text`. A turn that
    was cut inside a call is malformed too; whoever sampled it knows from the finish reason that it was cut.
    """

    text: str = ""
    reasoning: str = ""
    calls: tuple[FunctionCall, ...] = ()
    malformed: str = ""


@dataclass(frozen=True)
class StreamEvent:
    """One piece of a streamed reply: more `text` or `reasoning`, one whole `call`, or why a call was `malformed`.

    Texts of one kind, joined, equal those of the `Reply` that `Format.read` gives for the same ids.
    """

    kind: Literal["text", "reasoning", "call", "malformed"]
    text: str = ""
    call: FunctionCall | None = None
