"""Select the answer lines of a reply: neither reasoning nor quotations in prose."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from arise.llm.wire.envelope import answer_lines
from arise.llm.wire.marks import marks
from arise.llm.wire.strict_json import Unreadable, read_object

REASONING = "inside reasoning text"
QUOTED = "quoted in prose"

_JSON_PIECE = re.compile(r"""[\[\]{},]|"[^"]*"\s*:|```""")


@dataclass(frozen=True)
class Line:
    """A non-blank line of a reply, its parsed object, and the reason if it is not part of the answer."""

    number: int
    text: str
    value: dict[str, Any] | Unreadable
    aside: str = ""


def read_lines(text: str, wanted: Collection[str], id_key: str) -> list[Line]:
    """Return the lines of a reply, with the reason for those outside its answer.

    `wanted` are the ids that the answer is about, each in the field `id_key` of a line. Lines with prose before and
    after them are a quotation, unless the reply has a line about every one of several ids.
    """
    lines = [
        Line(number, line, read_object(line))
        for number, raw in enumerate(answer_lines(text).split("\n"), start=1)
        if (line := raw.strip(" \t\r"))
    ]
    first, last = _answer(lines)
    prose = [at for at in range(first, last) if _is_prose(lines[at])]
    objects = [line.value for line in lines[first:last] if isinstance(line.value, dict)]
    complete = len(wanted) > 1 and all(any(value.get(id_key) == each for value in objects) for each in wanted)
    quoted = range(prose[0], prose[-1]) if prose and not complete else range(0)
    return [Line(line.number, line.text, line.value, _aside(at, first, last, quoted)) for at, line in enumerate(lines)]


def _aside(at: int, first: int, last: int, quoted: range) -> str:
    if not first <= at < last:
        return REASONING
    return QUOTED if at in quoted else ""


def _answer(lines: Sequence[Line]) -> tuple[int, int]:
    """Return the range of the answer: after the last end of reasoning, before unterminated reasoning."""
    first, last = 0, len(lines)
    for at, line in enumerate(lines):
        if not isinstance(line.value, Unreadable):
            continue
        for ends in marks(line.text):
            if ends:
                first, last = at + 1, len(lines)
            elif last == len(lines):
                last = at
    return first, max(first, last)


def _is_prose(line: Line) -> bool:
    return isinstance(line.value, Unreadable) and not _JSON_PIECE.match(line.text)
