"""Verdict lines: JSON Lines, salvaged rubric by rubric.

A verdict counts if exactly one line of the reply is about its rubric, that line is exactly a verdict, and it is part of
the answer: neither reasoning nor quoted in prose. A second line about the same rubric, valid or not, leaves
no verdict.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import ValidationError

from arise.llm.wire.answer import Line, read_lines
from arise.llm.wire.diagnostics import DiagnosticReply, diagnostic_of
from arise.llm.wire.strict_json import Strict, Unreadable, problem_of, too_long
from arise.types import Verdict

MAX_PROBLEMS = 100


class _Line(Strict):
    rubric_id: str
    applicable: bool
    verdict: Literal["pass", "fail"] | None


@dataclass(frozen=True)
class VerdictReply:
    """Verdicts by rubric id, a reason for each missing one, requested diagnostics, and problems."""

    verdicts: dict[str, Verdict]
    absent: dict[str, str]
    diagnostics: DiagnosticReply
    problems: tuple[str, ...] = ()


@dataclass
class _Found:
    """What the lines of a reply are about."""

    lines: dict[str, list[str | Verdict]] = field(default_factory=lambda: defaultdict(list))
    diagnostics: list[Any] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def add_problem(self, problem: str) -> None:
        """Record a problem, up to a limit."""
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(problem)


def parse_verdicts(
    text: str, rubric_ids: Sequence[str], diagnostics: bool = False, pool_ids: Collection[str] = ()
) -> VerdictReply:
    """Parse a reply to rubric evaluation; diagnostics may name `pool_ids` too."""
    if reason := too_long(text):
        return VerdictReply({}, dict.fromkeys(rubric_ids, reason), DiagnosticReply(None, reason), (reason,))
    found = _read_lines(text, rubric_ids)
    verdicts: dict[str, Verdict] = {}
    absent: dict[str, str] = {}
    for rubric_id in rubric_ids:
        about = found.lines[rubric_id]
        if len(about) == 1 and isinstance(about[0], Verdict):
            verdicts[rubric_id] = about[0]
        elif not about:
            absent[rubric_id] = "empty reply" if not text.strip() else "no line about this rubric"
        elif len(about) == 1:
            absent[rubric_id] = str(about[0])
        else:
            absent[rubric_id] = f"{len(about)} lines about this rubric"
    return VerdictReply(
        verdicts, absent, _diagnostics(found, {*rubric_ids, *pool_ids}, diagnostics), tuple(found.problems)
    )


def _read_lines(text: str, rubric_ids: Sequence[str]) -> _Found:
    found = _Found()
    if text.startswith("\ufeff"):
        found.add_problem("byte order mark")
        text = text[1:]
    for line in read_lines(text, rubric_ids, "rubric_id"):
        _read_line(line, rubric_ids, found)
    return found


def _read_line(line: Line, rubric_ids: Sequence[str], found: _Found) -> None:
    value, place = line.value, f"line {line.number}"
    if isinstance(value, Unreadable):
        found.add_problem(f"{place}: {value.reason}")
        _mentioned(line.text, rubric_ids, f"unreadable line: {value.reason}", found)
        return
    rubric_id = value.get("rubric_id")
    if line.aside:
        found.add_problem(f"{place}: {line.aside}")
        _mentioned(line.text, rubric_ids, line.aside, found)
    elif set(value) == {"diagnostics"}:
        found.diagnostics.append(value["diagnostics"])
    elif not isinstance(rubric_id, str) or rubric_id not in rubric_ids:
        found.add_problem(f"{place}: no rubric of this request ({str(rubric_id)[:40]!r})")
        _mentioned(line.text, rubric_ids, "named in a line that is not about it", found)
    else:
        found.lines[rubric_id].append(_verdict(line.text, value))


def _verdict(line: str, value: dict[str, Any]) -> Verdict | str:
    if "\\" in line:
        return "escapes in a verdict line"
    try:
        parsed = _Line.model_validate(value)
    except ValidationError as error:
        return problem_of(error)
    if parsed.applicable != (parsed.verdict is not None):
        return "applicable and verdict contradict each other"
    return Verdict(parsed.verdict) if parsed.verdict else Verdict.NOT_APPLICABLE


def _mentioned(line: str, rubric_ids: Sequence[str], reason: str, found: _Found) -> None:
    """Return the rubrics named by an invalid line; their verdicts are dropped."""
    for rubric_id in rubric_ids:
        if f'"{rubric_id}"' in line:
            found.lines[rubric_id].append(reason)


def _diagnostics(found: _Found, known_ids: Collection[str], wanted: bool) -> DiagnosticReply:
    if not wanted:
        if found.diagnostics:
            found.add_problem("diagnostics were not asked for")
        return DiagnosticReply(None, "not asked for")
    if not found.diagnostics:
        return DiagnosticReply(None, "no diagnostics line")
    if len(found.diagnostics) > 1:
        return DiagnosticReply(None, f"{len(found.diagnostics)} diagnostics lines")
    return diagnostic_of(found.diagnostics[0], known_ids)
