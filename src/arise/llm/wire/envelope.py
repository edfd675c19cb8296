"""Remove the packaging of a reply: reasoning before it, a Markdown fence around it, one JSON object instead of lines.

Only complete packaging is removed, and nothing inside it changes: the parsers read the characters that the model wrote.
"""

import json
import re

from arise.llm.wire.marks import after_reasoning
from arise.llm.wire.strict_json import Unreadable, read_object, too_long

LINES = "lines"
"""The field that holds JSON Lines where a server can only send one object."""
_FENCED = re.compile(r"\s*(`{3,}|~{3,})[ \t]*(?:json|jsonl|ndjson)?[ \t]*\r?\n(.*?)\r?\n[ \t]*\1\s*", re.DOTALL)
_FENCE = re.compile(r"^[ \t]*(?:`{3}|~{3})", re.MULTILINE)
_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\r\n]*")


def answer_object(text: str) -> str:
    """Return the text that should be one object, without reasoning before it and without a fence around it.

    A sentence may introduce a fence that holds all the rest. With text after it the fence may be a quotation.
    """
    if too_long(text):
        return text
    rest = after_reasoning(text) if not text.lstrip().startswith("{") else text
    return _unfenced(rest)


def answer_lines(text: str) -> str:
    """Return the text that should be JSON Lines; an object that holds them in `lines` becomes its lines.

    Fences and reasoning around single lines stay: `read_lines` handles them.
    """
    if too_long(text):
        return text
    body = answer_object(text)
    return _spread(body) or text


def _unfenced(text: str) -> str:
    start = _FENCE.search(text)
    if start is None or "{" in text[: start.start()]:
        return text
    found = _FENCED.fullmatch(text, start.start())
    return found[2] if found and "```" not in found[2] else text


def _spread(text: str) -> str:
    """Return the lines of an object `{"lines": [...], "diagnostics": {...}}` character by character; else nothing."""
    value = read_object(text)
    if isinstance(value, Unreadable) or LINES not in value or not set(value) <= {LINES, "diagnostics"}:
        return ""
    if not isinstance(value[LINES], list):
        return ""
    lines: list[str] = []
    last: list[str] = []
    at = _skip(text, text.index("{") + 1)
    for _ in value:
        name, at = _DECODER.raw_decode(text, at)
        at = _skip(text, _skip(text, at) + 1)
        if name == LINES:
            lines, at = _elements(text, at)
        else:
            _, end = _DECODER.raw_decode(text, at)
            last, at = [f'{{"diagnostics":{_one_line(text[at:end])}}}'], end
        at = _skip(text, _skip(text, at) + 1)
    return "\n".join([*lines, *last])


def _elements(text: str, at: int) -> tuple[list[str], int]:
    """Return the elements of the array at a position as they are written, and the position after it."""
    found = []
    at = _skip(text, at + 1)
    while text[at] != "]":
        _, end = _DECODER.raw_decode(text, at)
        found.append(_one_line(text[at:end]))
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return found, at + 1


def _one_line(text: str) -> str:
    """Return JSON on one line: a line break in valid JSON is only ever space between tokens."""
    return text.replace("\r", " ").replace("\n", " ")


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at
