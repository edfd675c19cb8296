"""Upper bounds on a request's tokens, and the tokens a reply is billed for.

A token is at least one byte, so bytes bound tokens from above for any tokenizer. A provider's report is accepted within
bounds; missing usage is estimated, impossible usage counts as the upper bound.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from arise.config.llm import EndpointConfig
from arise.run.calls import Usage

TEMPLATE_TOKENS = 1024
"""Room for the tokens that a chat template or a gateway adds to the messages."""
BYTES_PER_TOKEN = 2
"""For text without a token count: fewer bytes than any tokenizer needs for prose, JSON or code."""
MOST_BYTES_PER_TOKEN = 256
"""Text with more bytes per reported token was not counted by a tokenizer."""
SMALL = 256
"""Bytes for which zero tokens are plausible: an empty system prompt, the tokens around a message."""


@dataclass(frozen=True)
class RequestSize:
    """The size of a request before it is sent — `RequestSize(prompt_bytes=21_400, max_tokens=8192)`."""

    prompt_bytes: int
    max_tokens: int
    replies: int = 1

    @property
    def most(self) -> Usage:
        """Upper bound of tokens; slightly above `max_tokens`, for stop tokens."""
        completion = self.replies * (self.max_tokens + self.max_tokens // 16 + 16)
        return Usage(prompt_tokens=self.prompt_bytes + TEMPLATE_TOKENS, completion_tokens=completion)


def size_of(messages: Iterable[Mapping[str, Any]], endpoint: EndpointConfig) -> RequestSize:
    """Return the size of a request; `extra_body` may ask for longer or more replies than `max_tokens` says."""
    texts = (
        value if isinstance(value, str) else json.dumps(value) for message in messages for value in message.values()
    )
    prompt = sum(len(text.encode("utf-8", "replace")) for text in texts)
    extra = endpoint.extra_body
    longest = max(
        endpoint.max_tokens, *(_count(extra.get(name)) or 0 for name in ("max_tokens", "max_completion_tokens"))
    )
    replies = max(1, *(_count(extra.get(name)) or 0 for name in ("n", "best_of")))
    return RequestSize(prompt, longest, replies)


def counted(reported: object, size: RequestSize, said: int) -> tuple[Usage, str]:
    """Return the billed usage and why it differs from the provider's; `said` counts the model's output bytes."""
    fields = reported if isinstance(reported, dict) else {}
    most, problems = size.most, []
    guesses = {
        "prompt_tokens": (size.prompt_bytes, most.prompt_tokens),
        "completion_tokens": (said, most.completion_tokens),
    }
    tokens = {}
    for name, (text, limit) in guesses.items():
        value = _count(fields.get(name))
        if fields.get(name) is None:
            # An empty reply may still be billed: its reasoning may have been left out.
            tokens[name] = min(limit, text // BYTES_PER_TOKEN + 1) if text else limit
            problems.append(f"no {name} reported")
        elif value is None or value > limit or text > value * MOST_BYTES_PER_TOKEN + SMALL:
            tokens[name] = limit
            problems.append(f"impossible {name} reported, counted as {limit:,}")
        else:
            tokens[name] = value
    details = fields.get("prompt_tokens_details")
    reused = details.get("cached_tokens") if isinstance(details, dict) else fields.get("prompt_cache_hit_tokens")
    cached = _count(reused) if reused is not None else 0
    if cached is None or cached > tokens["prompt_tokens"]:
        cached = 0
        problems.append("impossible cached_tokens reported, counted as 0")
    return Usage(cached_tokens=cached, **tokens), "; ".join(problems)


def is_reported(problems: str) -> bool:
    """Return whether the provider reported any tokens, even impossible ones, given the second value of `counted`."""
    return not problems.startswith("no ") and "; no " not in problems


def _count(value: object) -> int | None:
    """Return a whole number that is not negative, else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
