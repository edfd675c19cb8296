"""Convert messages of any chat format to turns: the agent's text and calls, then the observations."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from arise.types import Observation, StopReason, Task, ToolCall, Trajectory, Turn

USER = "user"
"""`call_id` of an observation that is a later user message, not a tool result."""
_PLACEHOLDER = {"image": "[image]", "image_url": "[image]", "input_image": "[image]", "audio": "[audio]",
                "input_audio": "[audio]", "video": "[video]", "document": "[document]", "file": "[file]"}  # fmt: skip


@dataclass
class _Draft:
    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    seen: list[Observation] = field(default_factory=list)


@dataclass
class Conversation:
    """Build one attempt message by message; `notes` counts remarks of the reader, e.g. images."""

    system: list[str] = field(default_factory=list)
    instruction: str = ""
    drafts: list[_Draft] = field(default_factory=list)
    notes: dict[str, int] = field(default_factory=dict)
    _open: dict[str, int] = field(default_factory=dict)
    """The draft that contains each unanswered call, by call id."""

    def note(self, what: str, count: int = 1) -> None:
        self.notes[what] = self.notes.get(what, 0) + count

    def add_system(self, content: object) -> None:
        self.system.append(self.text(content))

    def add_user(self, content: object) -> None:
        """Add a user message: the first is the instruction, later ones are observations of the previous turn.

        After an agent that greets first, the first message is both.
        """
        text = self.text(content)
        if not text:
            return
        if not self.drafts:
            self.instruction = f"{self.instruction}\n\n{text}" if self.instruction else text
        else:
            self.instruction = self.instruction or text
            self.drafts[-1].seen.append(Observation(text, call_id=USER))

    def add_agent(self, content: object, reasoning: object = "", *, merge: bool = False) -> None:
        """Add an agent message; `merge` continues the previous turn, for formats that split one over lines."""
        if not merge or not self.drafts:
            self.drafts.append(_Draft())
        for parts, value in ((self.drafts[-1].text, content), (self.drafts[-1].reasoning, reasoning)):
            if text := self.text(value):
                parts.append(text)

    def add_call(self, name: object, arguments: object, call_id: object = "") -> None:
        """Add a tool call to the agent's last message; parse JSON strings, keep anything else as text."""
        if not self.drafts:
            self.drafts.append(_Draft())
        at, draft = len(self.drafts) - 1, self.drafts[-1]
        given = str(call_id or f"call-{at}-{len(draft.calls)}")
        draft.calls.append(ToolCall(str(name or "tool"), arguments_of(arguments), given))
        self._open[given] = at

    def add_result(self, content: object, call_id: object = "", *, error: bool = False) -> None:
        """Add a tool result; without a usable id it answers the first open call of the last turn."""
        text, name = self.text(content), str(call_id or "")
        at = self._open.pop(name, None) if name else None
        if at is None:
            at = len(self.drafts) - 1
            waiting = [call.id for call in self.drafts[at].calls if call.id in self._open] if at >= 0 else []
            if name and waiting:
                self.note("results without a matching call")
            name = waiting[0] if waiting and not name else name
            self._open.pop(name, None)
        if at < 0:
            self.note("results before any call")
            return
        truncated = "[truncated]" in text[-400:] or "<truncated>" in text[-400:]
        self.drafts[at].seen.append(Observation(text, error, truncated, name))

    def text(self, content: object) -> str:
        """Return the plain text of a message from strings, parts or nested text; mark and count images."""
        if content is None:
            return ""
        if isinstance(content, str):
            return content
        if isinstance(content, list | tuple):
            return "\n".join(part for part in map(self.text, content) if part)
        if isinstance(content, Mapping):
            return self._part(content)
        return str(content)

    def _part(self, part: Mapping[str, Any]) -> str:
        kind = str(part.get("type", ""))
        if kind in _PLACEHOLDER:
            self.note("images" if "image" in kind else "media")
            return _PLACEHOLDER[kind]
        for key in ("text", "content", "output", "thinking", "reasoning", "value"):
            if key in part and part[key] is not None:
                return self.text(part[key])
        return "" if kind in ("text", "thinking", "reasoning") else json.dumps(dict(part), sort_keys=True, default=str)

    def trajectory(self, name: str, task_id: str, stop: StopReason = StopReason.FINISHED) -> Trajectory:
        """Return the attempt so far."""
        turns = tuple(
            Turn("\n".join(d.text), tuple(d.calls), tuple(d.seen), "\n".join(d.reasoning)) for d in self.drafts
        )
        return Trajectory(name, task_id, turns, stop, "\n\n".join(filter(None, self.system)))

    def task(self, task_id: str, instructions: Mapping[str, str], domain: str = "") -> Task:
        """Return the task; an instruction from `--tasks` replaces the recorded one."""
        return Task(task_id, instructions.get(task_id, self.instruction), domain=domain)


def arguments_of(value: object) -> dict[str, object]:
    """Return the arguments of a call as a mapping: parse JSON strings, put other values under `input`."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {"input": value}
    if isinstance(value, Mapping):
        return {str(key): item for key, item in value.items()}
    return {} if value is None else {"input": value}
