"""Habits of work with tools: H01 to H09, H15."""

import re
from collections import defaultdict

from arise.analyst.acts import Op, check_like
from arise.analyst.habits.scene import LONGEST, Habit, HabitFinding, Scene, absent
from arise.analyst.tool_kinds import kind_of
from arise.analyst.trace import READERS, Call
from arise.types import StopReason

LOOP = 3
"""Number of equal calls with equal answers that make a loop."""
LEAST_CALLS, SHARE_FAILED, LEAST_FAILED = 4, 1 / 3, 3
_NUMBERS = re.compile(r"0x[0-9a-f]+|\d+(?:\.\d+)?")
_REJECTED = re.compile(
    r"(?:error|mistake|failure) (?:in|while|when) (?:code )?pars|(?:could not|cannot|failed to|unable to) (?:be )?parse"
    r"|(?:invalid|malformed|not valid) (?:json|tool call|function call|action|format|response)"
    r"|(?:was|is) not (?:properly )?formatted|^format error\b|wrong format|exactly (?:one|ONE) (?:action|command"
    r"|tool call)"
    r"|no (?:tool|function) calls? (?:was |were )?(?:found|made|provided)|(?:unknown|no such"
    r"|unrecognized) (?:tool|function)"
    r"|(?:tool|function) [\w.'\"-]+ (?:not found|does not exist|is not available)"
    r"|regex pattern .{0,80}was not found in it"
    r"|missing required (?:argument|parameter|field|property)|input validation error|unexpected keyword argument",
    re.IGNORECASE | re.MULTILINE,
)
_MAY_REJECT = re.compile(r"pars|ormat|tool|unction|JSON|json|alid|equired|egex|keyword|xactly")
"""Every rejection contains one of these words: a cheap first test."""
_NOT_APPLIED = re.compile(
    r"did not appear verbatim|no replacement was (?:made|performed)|not (?:found|unique) in (?:the )?file"
    r"|string (?:to replace )?not found"
    r"|multiple (?:occurrences|matches)|no (?:match|changes?) (?:was |were )?(?:found|made|applied)"
    r"|patch (?:failed|does not apply)"
    r"|hunk #?\d+ failed|your (?:proposed )?edit (?:was not|has introduced)|edit (?:failed|was not applied)"
    r"|has not been read yet"
    r"|old_string and new_string",
    re.IGNORECASE,
)
_TIMED_OUT = re.compile(
    r"timed? ?out\b(?! ?=)|timeout (?:expired|exceeded|reached|of)|deadline exceeded|killed after", re.IGNORECASE
)
_TEST_FILE = re.compile(r"(?:^|/)(?:tests?|specs?|__tests__)/|(?:^|/)test_[^/]*$|_test\.\w+$|\.(?:test|spec)\.\w+$")
_SOURCE = re.compile(
    r"\.(?:py|js|ts|tsx|jsx|c|h|cc|cpp|hpp|go|rs|java|rb|php|sh|pl|cs|kt|swift|scala|sql|lua|r|jl)$", re.IGNORECASE
)
_MAY_WRITE = frozenset(("patch", "git", "ed", "ex", "vim", "vi", "nano", "emacs"))
"""Programs that change files in ways that their command line does not show."""
_WRITES = re.compile(r"""\bopen\([^)\n]{1,200}['"][wa]|\.write(?:lines|_text|_bytes)?\(""")
"""Code in a script of the agent's own that changes other files."""
_EXECUTES = frozenset((Op.RUN, Op.CHECK))
_LIMITS = {
    StopReason.TURN_LIMIT: "the limit of turns",
    StopReason.TOKEN_LIMIT: "the limit of tokens or cost",
    StopReason.CONTEXT_LIMIT: "the end of the context",
}


def _line_with(pattern: re.Pattern[str], text: str) -> str:
    """Return the line in which a pattern is found, cut around it; empty if it is not found."""
    match = pattern.search(text[:LONGEST])
    if match is None:
        return ""
    start = text.rfind("\n", 0, match.start()) + 1
    end = text.find("\n", match.end())
    line = text[max(start, match.start() - 100) : end if end >= 0 else len(text)]
    return line.strip()[:200]


def _loop(scene: Scene) -> HabitFinding | None:
    """Count equal calls with equal answers between changes: a third one can show nothing new."""
    if len(scene.trace.calls) < LEAST_CALLS:
        return None
    seen: dict[tuple[str, str], list[int]] = defaultdict(list)
    for call in scene.trace.calls:
        if call.ops & {Op.WRITE, Op.DELETE, Op.INSTALL} and not call.answer.failed:
            seen.clear()
        key = call.text, _NUMBERS.sub("0", call.answer.text[:2000])
        seen[key].append(call.turn)
        if call.text.strip() and len(seen[key]) >= LOOP:
            turns = tuple(dict.fromkeys(seen[key]))
            said = f"turn {call.turn} made the same call as turns {turns[0]} and {seen[key][1]}, with the same answer"
            return HabitFinding(True, "calls", said, turns[::-1])
    return absent()


def _ended_on_failure(scene: Scene) -> HabitFinding | None:
    """Look at the last call before the submission: it failed, and the agent stopped there without mentioning it."""
    working = [call for call in scene.trace.calls if Op.FINISH not in call.ops]
    if not working or scene.trajectory.stop is not StopReason.FINISHED:
        return None
    last = working[-1]
    if not last.answer.failed or _owned_up(scene, last):
        return absent()
    return HabitFinding(True, "failed", f"the last call, turn {last.turn}, failed and nothing came of it", (last.turn,))


def _owned_up(scene: Scene, last: Call) -> bool:
    spoken = "\n".join(text for turn, text in scene.said if turn > last.turn)
    return bool(re.search(r"fail|error|could not|couldn't|unable|not able|cannot|can't|however|issue", spoken, re.I))


def _cut_off(scene: Scene) -> HabitFinding | None:
    """Look at how the attempt ended; a time limit is part of the outcome's triage, and would be counted twice."""
    if not scene.trajectory.turns or scene.trajectory.stop in (StopReason.FAULT, StopReason.TIME_LIMIT):
        return None
    limit = _LIMITS.get(scene.trajectory.stop)
    last = len(scene.trajectory.turns)
    return HabitFinding(True, "limit", f"stopped by {limit} at turn {last}", (last,)) if limit else absent()


def _rejected(scene: Scene) -> HabitFinding | None:
    """Find actions that the harness or a tool refused for their form; long answers may be files and are skipped."""
    if not scene.trajectory.turns:
        return None
    replies = [*((n, seen.text) for n, seen in scene.results), *scene.person]
    short = [(n, text) for n, text in replies if len(text) < 3000 and _MAY_REJECT.search(text)]
    hits = [(n, line) for n, text in short if (line := _line_with(_REJECTED, text))]
    if not hits:
        return absent()
    turns = tuple(sorted({turn for turn, _ in hits}))
    first = min(hits)
    return HabitFinding(True, "form", f"the action of turn {turns[0]} was refused for its form", turns, first[1])


def _not_applied(scene: Scene) -> HabitFinding | None:
    """Find edits whose text was not in the file, or occurred more than once."""
    edits = [call for call in scene.trace.calls if call.ops & {Op.WRITE} and kind_of(call.text.split(" ")[0])]
    if not edits:
        return None
    hits = [(c.turn, line) for c in edits if (line := _line_with(_NOT_APPLIED, c.answer.text[:1500]))]
    if not hits:
        return absent()
    turns = tuple(dict.fromkeys(turn for turn, _ in hits))
    return HabitFinding(True, "mismatch", f"the edit of turn {turns[0]} did not apply", turns, hits[0][1])


def _never_run(scene: Scene) -> HabitFinding | None:
    """Look for any program run after the last change to source code, in attempts that the agent itself ended."""
    source = [e for e in scene.trace.of(Op.WRITE) if not e.failed and _SOURCE.search(e.path)]
    able = any(call.ops & _EXECUTES for call in scene.trace.calls)
    if not source or not able or not scene.trace.finished:
        return None
    last = source[-1]
    if any(e.seq > last.seq and e.program not in READERS for e in scene.trace.of(Op.RUN, Op.CHECK)):
        return absent()
    said = f"turn {last.turn} changed {last.path}, and no program was run after it"
    return HabitFinding(True, "unrun", said, (last.turn,))


def _no_change(scene: Scene) -> HabitFinding | None:
    """Look for any change to a source repository in which the instruction reports something broken."""
    trace = scene.trace
    if not trace.repository or not trace.brief.broken or not trace.calls:
        return None
    changed = [e for e in trace.of(Op.WRITE, Op.DELETE) if not e.failed and not trace.is_own_tool(e.path)]
    given = (value for turn in scene.trajectory.turns for call in turn.calls for value in call.arguments.values())
    scripts = any(isinstance(value, str) and _WRITES.search(value[:LONGEST]) for value in given)
    if changed or scripts or any(e.program in _MAY_WRITE for e in trace.of(Op.RUN)):
        return absent()
    last = trace.last_turn
    return HabitFinding(
        True, "unchanged", f"up to turn {last}, the last one, no file of the project was changed", (last,)
    )


def _mostly_failing(scene: Scene) -> HabitFinding | None:
    calls, bad = scene.trace.calls, scene.failed_calls
    if len(calls) < LEAST_CALLS:
        return None
    if len(bad) < LEAST_FAILED or len(bad) < SHARE_FAILED * len(calls):
        return absent()
    turns = tuple(dict.fromkeys(call.turn for call in bad))
    return HabitFinding(True, "share", f"{len(bad)} of {len(calls)} calls failed, the first at turn {turns[0]}", turns)


def _timed_out(scene: Scene) -> HabitFinding | None:
    """Count commands that ran into a time limit; the first may be bad luck, the second is a habit."""
    ran = [call for call in scene.trace.calls if call.ops & _EXECUTES]
    if not ran:
        return None
    hits = [(c.turn, line) for c in ran if c.answer.failed and (line := _line_with(_TIMED_OUT, c.answer.text[-1500:]))]
    turns = tuple(dict.fromkeys(turn for turn, _ in hits))
    if len(turns) < 2:
        return absent()
    return HabitFinding(True, "again", f"turns {turns[0]} and {turns[1]} ran into a time limit", turns, hits[0][1])


def _tests_changed(scene: Scene) -> HabitFinding | None:
    """Find changes to test files that the agent did not write itself."""
    writes = [e for e in scene.trace.of(Op.WRITE, Op.DELETE) if not e.failed and e.path]
    if not writes:
        return None
    own: set[str] = set()
    known = {e.path for e in scene.trace.of(Op.READ, Op.SEARCH)} | set(scene.trace.listed)
    for event in writes:
        foreign = event.path in known and event.path not in own
        if foreign and _TEST_FILE.search(event.path) and check_like(event.path):
            return HabitFinding(True, "edited", f"turn {event.turn} changed {event.path}", (event.turn,))
        own.add(event.path)
    return absent()


HABITS = (
    Habit("H01", _loop),
    Habit("H02", _ended_on_failure),
    Habit("H03", _cut_off),
    Habit("H04", _rejected),
    Habit("H05", _not_applied),
    Habit("H06", _never_run),
    Habit("H07", _mostly_failing),
    Habit("H08", _timed_out),
    Habit("H09", _tests_changed),
    Habit("H15", _no_change),
)
