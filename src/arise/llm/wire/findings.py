"""Finding lines of an analysis judge: a verdict per behaviour, and for each miss the turn and a quote from it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import ValidationError

from arise.llm.wire.answer import Line, read_lines
from arise.llm.wire.strict_json import Strict, Unreadable, problem_of
from arise.types import Verdict

KEY = "behaviour_id"


class _Line(Strict):
    behaviour_id: str
    applicable: bool
    verdict: Literal["pass", "fail"] | None
    turn: int | None = None
    quote: str | None = None


@dataclass(frozen=True)
class FindingLine:
    """`FindingLine(Verdict.FAIL, 4, "sort in.csv > out.csv")`; turn and quote matter for a miss only."""

    verdict: Verdict
    turn: int = 0
    quote: str = ""


@dataclass(frozen=True)
class FindingReply:
    """Verdicts by behaviour id, and a reason for each that is absent."""

    lines: dict[str, FindingLine]
    absent: dict[str, str]


def parse_findings(text: str, wanted: Sequence[str]) -> FindingReply:
    """Exactly one valid line per behaviour counts; none or several leave no verdict."""
    about: dict[str, list[FindingLine | str]] = {}
    for line in read_lines(text, wanted, KEY):
        found = _read(line)
        if found is not None and found[0] in wanted:
            about.setdefault(found[0], []).append(found[1])
    lines, absent = {}, {}
    for name in wanted:
        given = about.get(name, [])
        if len(given) == 1 and isinstance(given[0], FindingLine):
            lines[name] = given[0]
        else:
            absent[name] = str(given[0]) if len(given) == 1 else "no line" if not given else "several lines"
    return FindingReply(lines, absent)


def _read(line: Line) -> tuple[str, FindingLine | str] | None:
    if isinstance(line.value, Unreadable) or KEY not in line.value:
        return None
    name = str(line.value[KEY])
    if line.aside:
        return name, line.aside
    try:
        row = _Line.model_validate(line.value)
    except ValidationError as error:
        return name, problem_of(error)
    if not row.applicable:
        return name, FindingLine(Verdict.NOT_APPLICABLE)
    if row.verdict is None:
        return name, "applicable without a verdict"
    return name, FindingLine(Verdict(row.verdict), row.turn or 0, row.quote or "")
