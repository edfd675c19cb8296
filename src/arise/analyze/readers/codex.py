"""Codex CLI rollouts: `rollout-*.jsonl`, also compressed, with and without the envelope of later versions."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from arise.analyze.conversation import Conversation
from arise.analyze.files import Unreadable, as_mapping, lines, opening_values
from arise.analyze.found import Found, Item, Options, Outcome, Skipped, Triage
from arise.analyze.items import ITEMS, RESULTS, add_item

_INJECTED = (
    "<environment_context>",
    "<user_instructions>",
    "# AGENTS.md instructions",
    "<permissions",
    "<turn_aborted>",
)
_ITEMS = ITEMS | {"message"}

_HEADER = re.compile(
    r"(?:(?:Chunk ID|Wall time|Process |Original token count|Exit code|Total output lines)[^\n]*\n)+Output:\n"
)
_EXIT = re.compile(r"(?:exited with code|Exit code:) (-?\d+)")


class CodexReader:
    """Read one attempt per file. Results come from `function_call_output`; their copies in events are ignored."""

    name = "codex"

    def detect(self, path: Path) -> bool:
        if not path.is_file() or not path.name.endswith((".jsonl", ".jsonl.zst")):
            return False
        rows = [row for row in opening_values(path) if isinstance(row, Mapping)]
        envelope = any(
            row.get("type") in ("session_meta", "response_item", "turn_context") and "payload" in row for row in rows
        )
        bare = (
            bool(rows) and {"id", "timestamp"} <= rows[0].keys() and any(row.get("type") in _ITEMS for row in rows[1:])
        )
        return envelope or bare

    def read(self, path: Path, options: Options) -> Iterator[Item]:
        mirrored = any(_asked(row) is not None for _, row in lines(path))
        into, model, name, calls = Conversation(), "", path.name.partition(".")[0], False
        for number, row in lines(path):
            if isinstance(row, Unreadable):
                yield Skipped(f"{path}:{number}", str(row))
                continue
            if not isinstance(row, Mapping):
                continue
            payload = as_mapping(row.get("payload")) or row
            kind = row.get("type")
            if kind == "turn_context":
                model = str(payload.get("model") or model)
            elif kind == "session_meta":
                name = str(payload.get("id") or name)
                if "history_base" in payload:
                    into.note("forked sessions")
            elif kind == "compacted":
                into.note("context compactions")
            elif (asked := _asked(row)) is not None:
                into.add_user(asked)
                calls = False
            elif payload.get("type") in _ITEMS:
                calls = _add(into, payload, mirrored=mirrored, after_call=calls)
        if not into.drafts:
            yield Skipped(str(path), "a session without a message of the agent")
            return
        yield Found(
            into.trajectory(name, name), into.task(name, options.instructions),
            Outcome(Triage.MISSING, reason="a session has no verdict"), str(path), self.name,
            model=model, agent="codex", notes=into.notes,
        )  # fmt: skip


def _asked(row: object) -> object:
    """Return what the user typed: an event mirrors it, in later versions as a completed item; None for other rows."""
    event = as_mapping(as_mapping(row).get("payload")) if as_mapping(row).get("type") == "event_msg" else {}
    if event.get("type") == "user_message":
        return event.get("message")
    item = as_mapping(event.get("item"))
    return item.get("content") if item.get("type") == "UserMessage" else None


def _add(into: Conversation, item: Mapping[str, Any], *, mirrored: bool, after_call: bool) -> bool:
    """Add one item; return whether the turn is still open, so that the parts of one reply stay together."""
    kind = item["type"]
    if kind == "message" and item.get("role") != "assistant":
        text = into.text(item.get("content"))
        if item.get("role") in ("system", "developer"):
            into.add_system(text)
        elif not mirrored and not text.lstrip().startswith(_INJECTED):
            into.add_user(text)
        return False
    if kind not in RESULTS:
        return add_item(into, item, merge=after_call)
    output, error = _output(item.get("output"))
    into.add_result(output, item.get("call_id"), error=error)
    return False


def _output(value: Any) -> tuple[object, bool]:
    """Return the result of a call and whether it failed.

    Some versions wrap it in JSON with the exit code, others put lines before it that differ with every call.
    """
    if isinstance(value, str) and value.startswith("{"):
        try:
            value = json.loads(value)
        except ValueError:
            return value, False
    if isinstance(value, Mapping):
        facts = value.get("metadata")
        code = facts.get("exit_code") if isinstance(facts, Mapping) else None
        return value.get("output", value.get("content", "")), bool(code) or value.get("success") is False
    if isinstance(value, str) and (header := _HEADER.match(value)):
        code = _EXIT.search(header.group(0))
        return value[header.end() :], code is not None and code.group(1) != "0"
    return value, False
