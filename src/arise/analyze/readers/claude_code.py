"""Claude Code: session files (`~/.claude/projects/...`) and the output of `--output-format stream-json`."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from arise.analyze.conversation import Conversation
from arise.analyze.files import Unreadable, as_mapping, lines, load, mentions, opening_values
from arise.analyze.found import Found, Item, Options, Outcome, Skipped, Triage
from arise.types import StopReason

_KINDS = {"user", "assistant", "system", "summary", "result", "file-history-snapshot", "queue-operation", "progress"}
_CLEAR = "<command-name>/clear</command-name>"
_NO_PROMPT = ("<command-name>", "<local-command-stdout>", "Caveat: The messages below", "<command-message>")


class ClaudeCodeReader:
    """Read one attempt per session, split where the user cleared the context; sessions have no outcome."""

    name = "claude-code"

    def detect(self, path: Path) -> bool:
        if not path.is_file() or path.suffix not in (".jsonl", ".txt", ".log", ".json"):
            return False
        if path.suffix == ".json" and mentions(path, '"loglines"', '"message"'):
            return True
        rows = [row for row in opening_values(path) if isinstance(row, Mapping)]
        return any(
            row.get("type") in _KINDS
            and (("sessionId" in row and "message" in row) or "leafUuid" in row or "session_id" in row)
            for row in rows
        )

    def read(self, path: Path, options: Options) -> Iterator[Item]:
        session = _Session(path.stem)
        for number, row in _rows(path):
            if isinstance(row, Unreadable):
                if path.suffix == ".jsonl":
                    yield Skipped(f"{path}:{number}", str(row))
            elif isinstance(row, Mapping):
                if _clears(row) and session.into.drafts:
                    yield session.found(path, options, self.name)
                    session = _Session(f"{path.stem}/{number}", model=session.model)
                else:
                    session.add(row)
        if session.into.drafts:
            yield session.found(path, options, self.name)
        elif session.side:
            yield Skipped(str(path), "sub-agent session, part of its parent")
        else:
            yield Skipped(str(path), "a session without a message of the agent")


def _rows(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield the lines of a session; the web export holds them in one document under `loglines`."""
    if path.suffix == ".json" and mentions(path, '"loglines"'):
        with suppress(Unreadable):
            yield from enumerate(as_mapping(load(path)).get("loglines") or (), start=1)
            return
    yield from lines(path)


@dataclass
class _Session:
    name: str
    model: str = ""
    into: Conversation = field(default_factory=Conversation)
    side: int = 0
    """Number of sub-agent lines."""
    last: str = ""
    """Id of the agent's last message; one turn may span several lines."""
    outcome: Outcome = field(default_factory=lambda: Outcome(Triage.MISSING, reason="a session has no verdict"))
    stop: StopReason = StopReason.FINISHED

    def add(self, row: Mapping[str, Any]) -> None:
        if row.get("isSidechain") or row.get("parent_tool_use_id"):
            self.side += 1
            self.into.note("lines of sub-agents")
            return
        kind, message = row.get("type"), row.get("message")
        if row.get("subtype") == "compact_boundary":
            self.into.note("context compactions")
        elif kind == "system" and row.get("subtype") == "init":
            self.model = str(row.get("model") or self.model)
        elif kind == "result":
            self._end(row)
        elif isinstance(message, Mapping) and kind == "assistant":
            self._agent(message)
        elif isinstance(message, Mapping) and kind == "user" and not row.get("isCompactSummary"):
            self._person(message.get("content"), meta=bool(row.get("isMeta")))

    def _agent(self, message: Mapping[str, Any]) -> None:
        self.model = self.model or str(message.get("model") or "")
        content = message.get("content")
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        name = str(message.get("id") or "")
        self.into.add_agent("", merge=bool(name) and name == self.last)
        self.last = name
        for block in blocks:
            if not isinstance(block, Mapping):
                continue
            if block.get("type") == "tool_use":
                self.into.add_call(block.get("name"), block.get("input"), block.get("id"))
            elif block.get("type") == "thinking":
                self.into.add_agent("", block.get("thinking"), merge=True)
            else:
                self.into.add_agent([block], merge=True)

    def _person(self, content: object, *, meta: bool) -> None:
        blocks = content if isinstance(content, list) else [content]
        for block in blocks:
            if isinstance(block, Mapping) and block.get("type") == "tool_result":
                self.into.add_result(block.get("content"), block.get("tool_use_id"), error=bool(block.get("is_error")))
            elif not meta and not (isinstance(block, str) and block.startswith(_NO_PROMPT)):
                self.into.add_user(block)
        self.last = ""

    def _end(self, row: Mapping[str, Any]) -> None:
        """Read the last line of a stream, which says how the agent ended but not whether it succeeded."""
        said = str(row.get("subtype") or "")
        self.stop = StopReason.TURN_LIMIT if "max_turns" in said else self.stop
        if row.get("is_error") or "error_during" in said:
            self.outcome = Outcome(Triage.MISSING, reason=f"the agent ended with {said or 'an error'}")

    def found(self, path: Path, options: Options, form: str) -> Found:
        task_id = self.name
        return Found(
            self.into.trajectory(self.name, task_id, self.stop), self.into.task(task_id, options.instructions),
            self.outcome, str(path), form, model=self.model, agent="claude-code", notes=self.into.notes,
        )  # fmt: skip


def _clears(row: Mapping[str, Any]) -> bool:
    message = row.get("message")
    content = message.get("content") if isinstance(message, Mapping) else None
    return row.get("type") == "user" and isinstance(content, str) and _CLEAR in content
