"""Dialect-independent types: a request, its answer, and the reason for a refusal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from arise.types.chat import Message, ToolSpec

Body = Mapping[str, Any]
Kind = Literal["invalid", "context", "key", "ended", "limit", "unavailable"]
"""Reasons for a refusal; each dialect maps them to its own status and format."""
STATUS: Mapping[Kind, int] = {
    "invalid": 400,
    "context": 400,
    "key": 401,
    "ended": 409,
    "limit": 400,
    "unavailable": 503,
}


@dataclass(frozen=True)
class Ask:
    """A request in any dialect — `Ask((Message("user", "hi"),), (), stream=True)`."""

    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    stream: bool = False
    max_tokens: int | None = None
    usage_in_stream: bool = False
    token_ids: bool = False
    logprobs: bool = False


@dataclass(frozen=True)
class Answer:
    """The policy's answer with the fields of all dialects; the same answer always renders to the same bytes."""

    number: int
    created: int
    model: str
    reply: Message
    finish: Literal["stop", "length"]
    prompt_tokens: int
    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    prompt_ids: tuple[int, ...] = ()
    """The ids of the prompt, if they were requested; storing them for every call would take quadratic memory."""
    pieces: tuple[str, ...] = ()
    """The text of each token, if log-probabilities were requested."""

    @property
    def name(self) -> str:
        """Return an id that is unique within a rollout."""
        return f"{self.created:x}{self.number:06x}"


def guided(messages: Sequence[Message], guidance: str) -> tuple[Message, ...]:
    """Append guidance to the last leading system message; without one, begin with it."""
    if not guidance:
        return tuple(messages)
    leading = next((n for n, message in enumerate(messages) if message.role != "system"), len(messages))
    if not leading:
        return (Message("system", guidance), *messages)
    last = messages[leading - 1]
    return (*messages[: leading - 1], replace(last, text=f"{last.text}\n\n{guidance}"), *messages[leading:])


class Refused(Exception):  # noqa: N818 - what happened, not which class of error it is
    """A refused request; `param` names the invalid field."""

    def __init__(self, kind: Kind, message: str, param: str | None = None) -> None:
        self.kind, self.message, self.param = kind, message, param
        super().__init__(message)

    @property
    def status(self) -> int:
        return STATUS[self.kind]
