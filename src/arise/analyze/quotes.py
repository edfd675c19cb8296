"""Quotations that can be trusted: an exact substring of the turn they name, or none at all."""

import json
import re
from collections.abc import Iterator, Mapping

from arise.text.secrets import redact
from arise.types import ToolCall, Trajectory, Turn

COMMANDS = ("command", "cmd", "code", "keystrokes", "script", "action")
LONGEST = 240
SHORTEST = 3
MOST_SEARCHED = 200_000
_NAME = re.compile(r"[\w-]*[./_][\w./-]*\w")
"""Names of files, programs and the like in the words of a finding."""
_CLAIM = re.compile(r"\b(?:done|complete|verif|check|test|success|finish|fixed|written|saved|created)", re.IGNORECASE)
_DULL = re.compile(r"\s*(?:#|//|import |from \w+ import )")


def texts_of(turn: Turn) -> Iterator[str]:
    """Everything that a turn says: calls first, then words, then what came back. Keys are redacted."""
    for call in turn.calls:
        yield redact(rendered(call))
        yield from map(redact, _strings(call.arguments))
    if turn.text:
        yield redact(turn.text)
    if turn.reasoning:
        yield redact(turn.reasoning)
    for seen in turn.observations:
        yield redact(seen.text)


def rendered(call: ToolCall) -> str:
    """A call as text: its command where it has one, else its name with its arguments as JSON."""
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


def stands(quote: str, turn: Turn) -> bool:
    """Whether a quote is an exact substring of a turn; a few characters prove nothing."""
    return len(quote.strip()) >= SHORTEST and any(quote in text for text in texts_of(turn))


def place_of(trajectory: Trajectory, turn: int) -> int:
    """The turn to quote, from 1: the one that a finding names, the last one where it names none; 0 without turns."""
    count = len(trajectory.turns)
    return turn if 1 <= turn <= count else count


def quote_from(turn: Turn, detail: str = "") -> str:
    """What a turn did, in its own words; may be empty.

    A line of a call or of the agent's words that names what the finding is about, else the first line that says more
    than an import or a comment.
    """
    named = [word for word in _NAME.findall(detail) if len(word) > SHORTEST]
    claimed = "claimed" in detail
    first = ""
    for text in texts_of(turn):
        lines = [line for line in text[:MOST_SEARCHED].split("\n") if len(line.strip()) >= SHORTEST]
        for line in lines:
            if any(word in line for word in named) or (claimed and _CLAIM.search(line)):
                return _around(line.strip(), named)
        telling = [line for line in lines if not _DULL.match(line)] or lines
        first = first or (telling[0].strip()[:LONGEST] if telling else "")
    return first


def _around(line: str, named: list[str]) -> str:
    """A long line cut so that what it names stays in it."""
    at = next((line.find(word) for word in named if word in line), 0)
    start = max(0, at - LONGEST // 2) if len(line) > LONGEST else 0
    return line[start : start + LONGEST]
