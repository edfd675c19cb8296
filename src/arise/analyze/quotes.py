"""Quotations that can be trusted: an exact substring of the turn they name, or none at all."""

import json
from collections.abc import Iterator, Mapping

from arise.text.secrets import redact
from arise.types import ToolCall, Trajectory, Turn

COMMANDS = ("command", "cmd", "code", "keystrokes", "script", "action")
LONGEST = 240
SHORTEST = 3


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


def quote_from(turn: Turn) -> str:
    """What a turn did, in its own words: the most telling line of its first call, else of its text; may be empty."""
    for text in texts_of(turn):
        line = next((line for line in text.split("\n") if len(line.strip()) >= SHORTEST), "")
        if line:
            return line.strip()[:LONGEST]
    return ""
