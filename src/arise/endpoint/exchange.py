"""What every dialect is translated to and from: a request, its answer, and why a request is refused."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from arise.types.chat import Message, ToolSpec

Body = Mapping[str, Any]
Kind = Literal["invalid", "context", "key", "ended", "limit", "unavailable"]
"""Why a request is refused; a dialect gives each its own status and shape."""
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
    """A request of any dialect — `Ask((Message("user", "hi"),), (), stream=True)`."""

    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    stream: bool = False
    max_tokens: int | None = None
    usage_in_stream: bool = False
    token_ids: bool = False
    logprobs: bool = False


@dataclass(frozen=True)
class Answer:
    """What the policy answered, with all that any dialect says of it; the same answer always renders the same bytes."""

    number: int
    created: int
    model: str
    reply: Message
    finish: Literal["stop", "length"]
    prompt_ids: tuple[int, ...]
    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    pieces: tuple[str, ...] = ()
    """The text of each token, where log-probs were asked for."""

    @property
    def name(self) -> str:
        """An id that is unique within a rollout."""
        return f"{self.created:x}{self.number:06x}"


class Refused(Exception):  # noqa: N818 - what happened, not which class of error it is
    """A request that is not answered; `param` names the field that is at fault."""

    def __init__(self, kind: Kind, message: str, param: str | None = None) -> None:
        self.kind, self.message, self.param = kind, message, param
        super().__init__(message)

    @property
    def status(self) -> int:
        return STATUS[self.kind]
