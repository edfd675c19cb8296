"""Record conversations with any OpenAI-compatible model as JSON files that `arise analyze` reads."""

import json
import os
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from arise.endpoint.canonical import Key, key_of, matching, text_key, tools_digest
from arise.endpoint.canonical import Path as Keys
from arise.endpoint.dialects.chat import message_of
from arise.endpoint.exchange import Refused

KNOWN = 4096
"""Maximum number of conversations that can be continued; files of older ones are final."""


@dataclass
class Recorder:
    """Write each conversation to its own file in `folder`; rewrite the whole file after every answer."""

    folder: Path
    written: int = 0
    _known: OrderedDict[str, tuple[bytes, Keys, str]] = field(default_factory=OrderedDict)

    def add(self, body: Mapping[str, Any], reply: Mapping[str, Any]) -> Path:
        """Record one request and its answer in a known conversation or a new one."""
        messages = list(body.get("messages") or [])
        keys, root = tuple(map(_key, messages)), tools_digest(body.get("tools") or [])
        name, started = self._continued(keys, root)
        self._known[name] = (root, (*keys, _key(reply)), started)
        self._known.move_to_end(name)
        while len(self._known) > KNOWN:
            self._known.popitem(last=False)
        path = self.folder / f"{name}.json"
        record = {
            "id": name,
            "model": body.get("model"),
            "started": started,
            "tools": body.get("tools") or [],
            "messages": [*messages, dict(reply)],
            "outcome": None,
        }
        _write(path, record)
        return path

    def _continued(self, keys: Keys, root: bytes) -> tuple[str, str]:
        for name in reversed(self._known):
            tools, path, started = self._known[name]
            if tools == root and matching(path, keys) == len(path):
                return name, started
        self.written += 1
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        return f"{now.replace(':', '')}-{os.getpid()}-{self.written:05d}", now


def _key(message: Any) -> Key:
    """Return the key of a message; for content other than text, the key of its JSON."""
    try:
        return key_of(message_of(message, "message"))
    except Refused:
        return Key(text_key(json.dumps(message, sort_keys=True)))


def _write(path: Path, record: Mapping[str, Any]) -> None:
    draft = path.with_suffix(".draft")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
        json.dump(record, file, ensure_ascii=False, indent=1)
    draft.replace(path)


def reply_of(answer: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the message of a non-streamed answer."""
    choices = answer.get("choices") or []
    message = choices[0].get("message") if choices else None
    return dict(message) if message else None


@dataclass
class StreamedReply:
    """Assemble a message from the chunks of a stream."""

    text: str = ""
    reasoning: str = ""
    calls: dict[int, dict[str, str]] = field(default_factory=dict)
    _rest: bytes = b""

    def feed(self, data: bytes) -> bool:
        """Read bytes of the stream; return whether they include its end."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        ended = False
        for line in lines:
            value = line.strip().removeprefix(b"data:").strip()
            if not line.startswith(b"data:"):
                continue
            if value == b"[DONE]":
                ended = True
            else:
                self._chunk(json.loads(value))
        return ended

    def _chunk(self, chunk: Mapping[str, Any]) -> None:
        for choice in chunk.get("choices") or []:
            delta = choice.get("delta") or {}
            self.text += delta.get("content") or ""
            self.reasoning += delta.get("reasoning_content") or delta.get("reasoning") or ""
            self._calls(delta.get("tool_calls") or [])

    def _calls(self, parts: Iterable[Mapping[str, Any]]) -> None:
        for part in parts:
            call = self.calls.setdefault(part.get("index", 0), {"id": "", "name": "", "arguments": ""})
            made = part.get("function") or {}
            call["id"] = part.get("id") or call["id"]
            call["name"] += made.get("name") or ""
            call["arguments"] += made.get("arguments") or ""

    def message(self) -> dict[str, Any]:
        """Return the message so far."""
        found: dict[str, Any] = {"role": "assistant", "content": self.text or None}
        if self.reasoning:
            found["reasoning_content"] = self.reasoning
        if self.calls:
            found["tool_calls"] = [
                {
                    "id": call["id"],
                    "type": "function",
                    "function": {"name": call["name"], "arguments": call["arguments"]},
                }
                for _, call in sorted(self.calls.items())
            ]
        return found
