"""Canonical keys of messages and tools, used to recognise a resent message.

Keys ignore JSON spacing and key order, the difference between null and empty text, and ids or reasoning that a client
omits.
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
    """The comparison key of a message: a required digest, and fields compared only if both sides have them."""

    digest: bytes
    call_id: str = ""
    reasoning: str = ""

    def matches(self, other: "Key") -> bool:
        """Return whether both keys identify the same message."""
        return (
            self.digest == other.digest
            and _agree(self.call_id, other.call_id)
            and _agree(self.reasoning, other.reasoning)
        )


def _agree(one: str, other: str) -> bool:
    return not one or not other or one == other


def key_of(message: Message) -> Key:
    """Return the key of one message.

    Ignore outer whitespace of assistant messages, which clients trim; inputs must match exactly.
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
    """Count the leading messages that two conversations have in common."""
    count = 0
    for mine, theirs in zip(one, other, strict=False):
        if not mine.matches(theirs):
            break
        count += 1
    return count


def tools_key(tools: Sequence[ToolSpec]) -> bytes:
    """Return the key of a tool list; order matters because templates render tools in order."""
    return _digest(_json([[tool.name, tool.description, _plain(dict(tool.parameters))] for tool in tools]))


def tools_digest(tools: object) -> bytes:
    """Return the key of a tool list given as JSON values."""
    return text_key(_json(_plain(tools)))


def text_key(text: str) -> bytes:
    """Return the digest of a text."""
    return _digest(text)


def _plain(value: object) -> object:
    """Convert integral floats to int, because JavaScript clients write 1.0 as 1."""
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
