"""Verified quotes: each is an exact substring of the turn it cites."""

import json
import re
from collections.abc import Iterator, Mapping

from arise.text.secrets import redact
from arise.types import ToolCall, Trajectory, Turn

COMMANDS = ("command", "cmd", "code", "keystrokes", "script", "action")
FILES = frozenset(("path", "file", "file_path", "filePath", "filename"))
LONGEST = 240
SHORTEST = 3
MOST_SEARCHED = 200_000
_NAME = re.compile(r"[\w-]*[./_][\w./-]*\w")
"""Names of files, programs and similar in the text of a finding."""
_MARKED = re.compile(r"'([^'\n]{4,60})'")
_SUBMITS = re.compile(
    r"\s*(?:submit|finish|done|exit|echo \S*(?:COMPLETE_TASK|SUBMIT)\S*)\b[\s{}\w:\"]{0,40}$", re.IGNORECASE
)
"""A call that only ends the attempt: the agent's words say more."""
_CLAIM = re.compile(r"\b(?:done|complete|verif|check|test|success|finish|fixed|written|saved|created)", re.IGNORECASE)
_DULL = re.compile(r"\s*(?:#|//|import |from \w+ import )")


def texts_of(turn: Turn) -> Iterator[str]:
    """Yield all texts of a turn: calls, then messages, then observations. Redact keys."""
    for call in turn.calls:
        yield redact(rendered(call))
        yield from map(redact, _strings(call.arguments))
    if turn.text:
        yield redact(turn.text)
    if turn.reasoning:
        yield redact(turn.reasoning)
    for seen in turn.observations:
        yield redact(seen.text)


def _said(turn: Turn) -> Iterator[str]:
    """Yield the texts that quotes are taken from: whole calls, messages and results, but no single arguments."""
    yield from (redact(rendered(call)) for call in turn.calls)
    yield from (
        redact(text) for text in (turn.text, turn.reasoning, *(seen.text for seen in turn.observations)) if text
    )


def rendered(call: ToolCall) -> str:
    """Return a call as text: its command if it has one, else its name and its arguments as JSON."""
    keys = call.arguments.keys()
    typed = keys <= {"path", "query", "action"} and " " in str(
        call.arguments.get("action")
    )  # as SWE-agent's agent typed
    if typed or not FILES & keys:  # an editor's `command` is a verb such as `insert`
        for name in COMMANDS:
            if isinstance(command := call.arguments.get(name), str) and command.strip():
                return command
    try:
        return f"{call.name} {json.dumps(dict(call.arguments), ensure_ascii=False, default=str)}"
    except (TypeError, ValueError, RecursionError):
        return call.name


def _strings(value: object, depth: int = 0) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif depth < 6 and isinstance(value, Mapping):
        for item in value.values():
            yield from _strings(item, depth + 1)
    elif depth < 6 and isinstance(value, list | tuple):
        for item in value:
            yield from _strings(item, depth + 1)
    elif isinstance(value, int | float):
        yield str(value)


def is_verified(quote: str, turn: Turn) -> bool:
    """Return whether a quote is an exact substring of a turn and long enough to be evidence."""
    return len(quote.strip()) >= SHORTEST and any(quote in text for text in texts_of(turn))


def place_of(trajectory: Trajectory, turn: int) -> int:
    """Return the turn to quote, from 1: the cited one, or the last one if none is cited; 0 without turns."""
    count = len(trajectory.turns)
    return turn if 1 <= turn <= count else count


def quote_from(turn: Turn, detail: str = "") -> str:
    """Return a quote of what a turn did; may be empty.

    Prefer a line of a call or message that names the subject of the finding, else the first line that is more than an
    import or a comment.
    """
    named = [word.lower() for word in (*_NAME.findall(detail), *_MARKED.findall(detail)) if len(word) > SHORTEST]
    whole = re.compile("|".join(rf"(?<!\w){re.escape(word)}(?!\w)" for word in named) or r"(?!)")
    claimed = "claimed" in detail
    first = last = ""
    if acted := _acted_on(turn, named):
        return acted
    for text in _said(turn):
        lines = [line for line in text[:MOST_SEARCHED].split("\n") if len(line.strip()) >= SHORTEST]
        for line in lines:
            if whole.search(line.lower()) or (claimed and _CLAIM.search(line)):
                return _around(line.strip(), named)
        telling = [line for line in lines if not _DULL.match(line)] or lines
        if telling and _SUBMITS.match(telling[0]):
            last = last or telling[0].strip()
        else:
            first = first or (telling[0].strip()[:LONGEST] if telling else "")
    return first or last


def _acted_on(turn: Turn, named: list[str]) -> str:
    """Return the first line of a call whose arguments name the subject, if the text of no call does."""
    texts = [redact(rendered(call)) for call in turn.calls]
    if any(word in text.lower() for text in texts for word in named):
        return ""
    for call, text in zip(turn.calls, texts, strict=True):
        if any(word in value.lower() for value in _strings(call.arguments) for word in named):
            return next((line.strip()[:LONGEST] for line in text.split("\n") if len(line.strip()) >= SHORTEST), "")
    return ""


def _around(line: str, named: list[str]) -> str:
    """Cut a long line around the name that it must contain."""
    low = line.lower()
    at = next((low.find(word) for word in named if word in low), 0)
    start = max(0, at - LONGEST // 2) if len(line) > LONGEST else 0
    return line[start : start + LONGEST]
