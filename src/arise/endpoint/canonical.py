"""Canonical keys of messages and tools: what must be equal for a resent message to count as the one we know.

Spacing and key order of JSON, null against an empty text, and ids or reasoning that a client leaves out do not count.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

from arise.types.chat import Message, ToolSpec

Path = tuple["Key", ...]
"""The keys of a conversation from its first message on."""


@dataclass(frozen=True)
class Key:
    """A message as it is compared: a digest of what must agree, and what must agree only if both sides have it."""

    digest: bytes
    call_id: str = ""
    reasoning: str = ""

    def matches(self, other: "Key") -> bool:
        """Return whether both stand for one message."""
        return (
            self.digest == other.digest
            and _agree(self.call_id, other.call_id)
            and _agree(self.reasoning, other.reasoning)
        )


def _agree(one: str, other: str) -> bool:
    return not one or not other or one == other


def key_of(message: Message) -> Key:
    """Return the key of one message.

    Clients trim what the assistant said, so its outer whitespace does not count; inputs must agree exactly.
    """
    assistant = message.role == "assistant"
    calls = [[call.name, _plain(dict(call.arguments))] for call in message.calls]
    parts = (message.role, message.text.strip() if assistant else message.text, _json(calls))
    reasoning = message.reasoning.strip() if assistant else ""
    return Key(_digest(*parts), message.call_id, _digest(reasoning).hex() if reasoning else "")


def path_of(messages: Sequence[Message]) -> Path:
    """Return the keys of a conversation."""
    return tuple(map(key_of, messages))


def matching(one: Path, other: Path) -> int:
    """Count the leading messages that two conversations share."""
    count = 0
    for mine, theirs in zip(one, other, strict=False):
        if not mine.matches(theirs):
            break
        count += 1
    return count


def tools_key(tools: Sequence[ToolSpec]) -> bytes:
    """Return the key of a tool list; its order counts, since templates render it in that order."""
    return _digest(_json([[tool.name, tool.description, _plain(dict(tool.parameters))] for tool in tools]))


def tools_digest(tools: object) -> bytes:
    """Return the key of a tool list that is still JSON."""
    return text_key(_json(_plain(tools)))


def text_key(text: str) -> bytes:
    """Return a digest of any text."""
    return _digest(text)


def _plain(value: object) -> object:
    """Write 1.0 as 1: JavaScript clients do, and parse both alike."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def _digest(*parts: str) -> bytes:
    digest = blake2b(digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return digest.digest()
