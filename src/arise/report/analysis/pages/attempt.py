"""One attempt of an analysis, turn by turn, with every finding at the turn that shows it and its quote marked.

The turns are read again from the analysed file. If it is gone or has changed, the turns around the quotes remain.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from arise.analyze.quotes import is_verified, rendered
from arise.report.analysis.folder import AttemptLine, StoredAnalysis, quotes_in, read_again
from arise.report.analysis.pages.parts import LINKS, OUTCOMES, WORDS
from arise.report.dashboard.charts import Link
from arise.report.dashboard.pages.page import Fact, NotFound, Page
from arise.report.dashboard.pages.turns import CHARS_OF_TEXT, TURNS_ON_PAGE, Pin, Shown, piece_of, turns_from
from arise.rollouts.discretion import redacted_turn
from arise.text.numbers import amount
from arise.text.secrets import redact
from arise.types import Observation, ToolCall, Turn

SIBLINGS = 30
"""Links to other attempts at the task."""


@dataclass(frozen=True)
class Finding:
    """A behaviour in this attempt."""

    id: str
    habit: str
    href: str
    why: str
    turn: Link | None


@dataclass(frozen=True)
class Turns:
    """The available turns of an attempt: all of them, or stretches of them around the quotes."""

    instruction: str
    count: int
    runs: Sequence[tuple[int, Sequence[Turn]]]
    lost: str = ""

    def at(self, number: int) -> Turn | None:
        found = (run[number - first] for first, run in self.runs if first <= number < first + len(run))
        return next(found, None)


def build(analysis: StoredAnalysis, attempt: str, turn: int = 1, part: int | None = None) -> Page:
    """Build the page from `turn` on; `part` selects a piece of one long turn."""
    line = analysis.line(attempt)
    if line is None:
        raise NotFound(f"no attempt {attempt!r} in this analysis")
    turns = _turns(analysis, line)
    turn = max(1, min(turn, max(1, turns.count)))
    shown = _shown(analysis, line, turns, turn, part)
    last = shown[-1].number if shown else 0
    siblings = [other for other in analysis.attempts if other.task == line.task][:SIBLINGS]
    seen, absent = _findings(analysis, line)
    content = {
        "line": line,
        "outcome": OUTCOMES[line.passed],
        "instruction": turns.instruction[:CHARS_OF_TEXT],
        "lost": turns.lost,
        "turns": shown,
        "turn_count": turns.count,
        "first": turn,
        "part": part,
        "earlier": LINKS.trajectory(line.id, max(1, turn - TURNS_ON_PAGE)) if turn > 1 and not turns.lost else "",
        "later": LINKS.trajectory(line.id, last + 1) if last < turns.count and not turns.lost else "",
        "seen": seen,
        "absent": absent,
        "siblings": [(other, WORDS[other.passed], LINKS.trajectory(other.id)) for other in siblings],
    }
    return Page("analysis_attempt.html", f"Attempt at {line.task}", "attempts", _facts(line), (), content)


def _facts(line: AttemptLine) -> list[Fact]:
    reward = "" if line.reward is None else f"reward {line.reward:g}"
    return [
        Fact(WORDS[line.passed], "by the verifier", line.reason or reward),
        Fact(line.triage, "verdict"),
        Fact(amount(line.turns), "turns"),
        Fact(line.form, "format", line.model),
    ]


def _turns(analysis: StoredAnalysis, line: AttemptLine) -> Turns:
    """Return the turns of the file, or those kept with the quotes if the quotes are no longer in it."""
    quotes = [quote for _, quote in analysis.quotes_of(line.source)]
    told = next((quote["instruction"] for quote in quotes), "")
    if not line.turns:
        return Turns(told, 0, (), "")
    found = read_again(analysis, line.source)
    if found is None:
        paths = ", ".join(analysis.facts["paths"])
        lost = f"{line.source} is no longer below {paths}, seen from where arise view was started"
        return _kept(line, quotes, told, lost)
    turns = found.trajectory.turns
    whole = len(turns) == line.turns and all(is_verified(quote["quote"], turns[quote["turn"] - 1]) for quote in quotes)
    if not whole:
        return _kept(line, quotes, told, f"{line.source} has changed since the analysis")
    return Turns(redact(found.task.instruction) or told, len(turns), [(1, turns)])


def _kept(line: AttemptLine, quotes: Sequence[Mapping[str, Any]], instruction: str, lost: str) -> Turns:
    """Return the turns that the quotes of an attempt were kept with, as runs without gaps."""
    kept = {turn["number"]: _turn(turn) for quote in quotes for turn in quote["turns"]}
    numbered = enumerate(sorted(kept))
    runs = [[number for _, number in run] for _, run in groupby(numbered, lambda pair: pair[1] - pair[0])]
    return Turns(instruction, line.turns, [(run[0], [kept[number] for number in run]) for run in runs], lost)


def _turn(kept: Mapping[str, Any]) -> Turn:
    calls = tuple(ToolCall(call["tool"], {"command": call["call"]}) for call in kept["calls"])
    seen = tuple(Observation(result["text"], result["error"]) for result in kept["results"])
    return Turn(kept["text"], calls, seen, kept["reasoning"])


def _shown(analysis: StoredAnalysis, line: AttemptLine, turns: Turns, first: int, part: int | None) -> list[Shown]:
    pins = _pins(analysis, line)
    quotes = {quote["turn"]: str(quote["quote"]) for _, quote in analysis.quotes_of(line.source)}
    if part is not None:
        turn = turns.at(first)
        found = [piece_of(redacted_turn(turn), first, part, rendered)] if turn else []
    elif turns.lost:
        found = [shown for start, run in turns.runs for shown in _piece(run, start, quotes)]
    else:
        found = [
            shown
            for _, run in turns.runs
            for shown in _piece(run[first - 1 : first - 1 + TURNS_ON_PAGE], first, quotes)
        ]
    return [replace(shown, pins=pins.get(shown.number, ())) for shown in found]


def _piece(turns: Sequence[Turn], first: int, quotes: Mapping[int, str]) -> list[Shown]:
    return turns_from([redacted_turn(turn) for turn in turns], first, lambda number: quotes.get(number, ""), rendered)


def _pins(analysis: StoredAnalysis, line: AttemptLine) -> dict[int, list[Pin]]:
    """Return the findings by the turn that shows them, with what the detector or judge said where it was kept."""
    why = {gap["id"]: quote["why"] for gap, quote in analysis.quotes_of(line.source)}
    pins: dict[int, list[Pin]] = {}
    for gap in analysis.facts["gaps"]:
        turn = line.turn_of.get(gap["id"], 0) if line.behaviours.get(gap["id"]) else 0
        if turn:
            pins.setdefault(turn, []).append(Pin("fail", gap["id"], why.get(gap["id"], ""), gap["habit"]))
    return pins


def _findings(analysis: StoredAnalysis, line: AttemptLine) -> tuple[list[Finding], list[Finding]]:
    """Return the behaviours that this attempt shows, in the order of the gaps, and those it could have shown."""
    gaps = analysis.facts["gaps"]
    names = {gap["id"]: str(gap["habit"]) for gap in gaps}
    why = {gap["id"]: quote["why"] for gap in gaps for quote in quotes_in(gap) if quote["source"] == line.source}
    seen: list[Finding] = []
    absent: list[Finding] = []
    for name in filter(line.behaviours.__contains__, names):
        turn = line.turn_of.get(name, 0)
        link = Link(f"turn {turn}", LINKS.trajectory(line.id, turn)) if turn and line.behaviours[name] else None
        found = Finding(name, names[name], LINKS.rubric(name), why.get(name, ""), link)
        (seen if line.behaviours[name] else absent).append(found)
    return seen, absent
