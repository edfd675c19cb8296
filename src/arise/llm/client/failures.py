"""The kinds of failure of one request, and how a server's error body is read."""

import json
import re

from arise.run.calls import Usage

_FULL_WINDOW = re.compile(
    r"context[ _-]?(?:length|window|size)|prompt is too long|input token count.{0,40}exceed|max_new_tokens. must be <=",
    re.IGNORECASE,
)
"""How OpenAI, Anthropic and Gemini, vLLM, SGLang, llama.cpp and text-generation-inference report a full window."""


class CallFailed(Exception):  # noqa: N818 - data for the ladder, not an error of the program
    """A request that gave no reply: `kind` says what to do, `alive` whether the server responded at all.

    `billed` is the usage the provider may have charged, None if it cannot have charged anything.
    """

    kind = "failed"
    alive = True
    billed: Usage | None = None


class Transient(CallFailed):
    """Refused connection, 5xx, time-out, a broken body: trying again may help."""

    kind = "unavailable"
    alive = False

    def __init__(self, detail: str, billed: Usage | None = None) -> None:
        super().__init__(detail)
        self.billed = billed


class Silent(Transient):
    """A server that accepted a request and has not answered in time: it may be busy."""


class RateLimited(CallFailed):
    """429, with the seconds the provider asks to wait."""

    kind = "rate_limited"

    def __init__(self, detail: str, retry_after: float | None) -> None:
        super().__init__(detail)
        self.retry_after = retry_after


class Refused(CallFailed):
    """The server rejects this request; a retry would get the same answer."""

    kind = "refused"


class TooLong(Refused):
    """The request does not fit into the model's context window."""

    kind = "too_long"


class Denied(CallFailed):
    """The server rejects all our requests: wrong key, model or address."""

    kind = "denied"
    alive = False


def fills_window(body: str) -> bool:
    """Return whether an error body says that the request does not fit into the context window."""
    return _FULL_WINDOW.search(body) is not None


def message_of(body: str) -> str:
    """Return the message inside an error body, or the body itself."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return body
    error = value.get("error", value) if isinstance(value, dict) else None
    message = error.get("message") if isinstance(error, dict) else None
    return message if isinstance(message, str) and message else body
