"""Verdict lines: JSON Lines, salvaged rubric by rubric.

A verdict counts if exactly one line of the reply is about its rubric, that line is exactly a verdict, and it is part of
the answer: neither reasoning nor quoted in prose. A second line about the same rubric, valid or not, leaves
no verdict.
"""

import re
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
REASON_CHARS = 240
"""A reason is cut to this length."""
_GROUNDS = ("turn", "reason")
"""The fields that a judge may add to a verdict line when it is asked for reasons, the reason last."""


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
    reasons: dict[str, str] = field(default_factory=dict)
    """The reason of each verdict whose line gives one: `turn 3: runs the tests after the edit`."""


@dataclass
class _Found:
    """What the lines of a reply are about; `turns` is the length of the trajectory where reasons were asked for."""

    turns: int | None = None
    reasons: dict[str, str] = field(default_factory=dict)
    lines: dict[str, list[str | Verdict]] = field(default_factory=lambda: defaultdict(list))
    diagnostics: list[Any] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def add_problem(self, problem: str) -> None:
        """Record a problem, up to a limit."""
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(problem)


def parse_verdicts(
    text: str,
    rubric_ids: Sequence[str],
    diagnostics: bool = False,
    pool_ids: Collection[str] = (),
    turns: int | None = None,
) -> VerdictReply:
    """Parse a reply to rubric evaluation; diagnostics may name `pool_ids` too.

    With `turns`, the number of turns of the trajectory, a line may also give its reason. A missing or invalid reason
    costs the reason, never the verdict.
    """
    if reason := too_long(text):
        return VerdictReply({}, dict.fromkeys(rubric_ids, reason), DiagnosticReply(None, reason), (reason,))
    found = _read_lines(text, rubric_ids, turns)
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
    parsed = _diagnostics(found, {*rubric_ids, *pool_ids}, diagnostics)
    reasons = {rubric_id: reason for rubric_id, reason in found.reasons.items() if rubric_id in verdicts}
    return VerdictReply(verdicts, absent, parsed, tuple(found.problems), reasons)


def _read_lines(text: str, rubric_ids: Sequence[str], turns: int | None) -> _Found:
    found = _Found(turns)
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
        judged, grounds = line.text, dict[str, Any]()
        if found.turns is not None:
            grounds = {name: value.pop(name) for name in _GROUNDS if name in value}
            judged = _without_reason(judged)
        found.lines[rubric_id].append(_verdict(judged, value))
        if grounds and (reason := _reason(grounds, found.turns or 0, place, found)):
            found.reasons[rubric_id] = reason


def _without_reason(line: str) -> str:
    """Return a line up to its reason, which may need escapes; the whole line if anything but the reason comes last."""
    before, _, after = line.partition('"reason"')
    return line if any(f'"{name}"' in after for name in _Line.model_fields) else before


def _reason(grounds: dict[str, Any], turns: int, place: str, found: _Found) -> str:
    """Return a reason on one line with the turn it rests on; note what is wrong with it."""
    turn, reason = grounds.get("turn"), grounds.get("reason")
    if reason is not None and not isinstance(reason, str):
        found.add_problem(f"{place}: the reason is not a string")
        reason = None
    if turn is not None and not (type(turn) is int and 1 <= turn <= turns):
        found.add_problem(f"{place}: there is no turn {str(turn)[:20]}")
        turn = None
    text = " ".join((reason or "").split())
    if len(text) > REASON_CHARS:
        text = text[:REASON_CHARS].rstrip() + " ..."
    if not text:
        return ""
    named = turn is None or re.search(rf"\bturn {turn}\b", text)
    return text if named else f"turn {turn}: {text}"


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
