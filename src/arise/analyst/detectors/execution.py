"""Detectors of Execution: P07, P14, P16, P17."""

import re

from arise.analyst.acts import INSPECTIONS, Op, backup_like
from arise.analyst.answers import missing_line
from arise.analyst.brief import data_like, ending
from arise.analyst.detectors.detector import Detector, Finding, Opportunity, failed, passed
from arise.analyst.trace import Call, Event, Trace
from arise.analyst.vocabulary import vocabulary

_SKIP_WORDS = re.compile(r"skip|exclud|ignor|omit|left out|not process", re.IGNORECASE)
_EXPLICIT_UNIT = re.compile(
    r"--?(?:units?|from|to|tz|time-?zone|currency|rate|factor|scale|in-unit|out-unit)\b|[*/]\s*\d|\d\s*\*|\bconvert\w*\b.{1,60}\bto\b"
    r"|astype|to_numeric|to_datetime|utc|tz_",
    re.IGNORECASE,
)
_UNIT_NAMES = vocabulary("unit_names")
_DRY_RUN = re.compile(r"--dry-?run|--simulate|--no-act|--preview")
_LIMIT_WORDS = re.compile(
    r"missing|not (?:found|installed|available)|unavailable|instead|without|substitut|fall ?back|cannot"
)


def input_set(trace: Trace) -> tuple[str, ...]:
    """Return the files of one kind that the task spans: several named inputs, or listed ones if all are requested."""
    named = [path for path in trace.brief.inputs if "*" not in path]
    groups: dict[str, list[str]] = {}
    for path in named:
        groups.setdefault(ending(path), []).append(path)
    if trace.brief.all_files:
        made = {event.path for event in trace.of(Op.WRITE)}
        for path in trace.listed:
            if data_like(path) and path not in made and path not in trace.brief.outputs and not backup_like(path):
                group = groups.setdefault(ending(path), [])
                if path not in group:
                    group.append(path)
    largest = max(groups.values(), key=len, default=[])
    return tuple(largest[:64]) if len(largest) > 1 else ()


def _several_inputs(trace: Trace) -> Opportunity | None:
    paths = input_set(trace)
    worked = trace.finished and any(call.ops - INSPECTIONS - {Op.FINISH} for call in trace.calls)
    return Opportunity(paths=paths) if worked and (paths or trace.brief.all_files) else None


def _all_covered(trace: Trace, opening: Opportunity) -> Finding:
    if not opening.paths:
        return _enumerated(trace)
    used = {event.path for event in trace.of(Op.USE, Op.WRITE) if not event.failed}
    if used.isdisjoint(opening.paths):  # the agent worked by reading, without a program
        used |= {event.path for event in trace.of(Op.READ) if not event.failed}
    folders = tuple(path + "/" for path in used if path and "." not in path)
    said = trace.said()
    named_exclusions = _SKIP_WORDS.search(said) is not None
    left = [
        path
        for path in opening.paths
        if path not in used and not path.startswith(folders) and not (named_exclusions and path.lower() in said)
    ]
    if left:
        return failed("partial", f"{len(left)} of {len(opening.paths)} inputs never processed, first {left[0]}")
    return passed(f"all {len(opening.paths)} inputs were processed or named as excluded")


def _enumerated(trace: Trace) -> Finding:
    """Judge whether the agent went beyond one input if all were requested and no listing shows several."""
    for event in trace.events:
        if event.op is Op.LIST or (event.op in (Op.USE, Op.READ) and "*" in event.text):
            return passed(f"turn {event.turn} took the inputs from a listing or a pattern")
    made: set[str] = set()
    used: dict[str, set[str]] = {}
    for event in trace.of(Op.USE, Op.WRITE):
        if event.op is Op.WRITE:
            made.add(event.path)
        elif not event.failed and data_like(event.path) and event.path not in made:
            used.setdefault(ending(event.path), set()).add(event.path)
    several = max(map(len, used.values()), default=0)
    if several > 1:
        return passed(f"{several} inputs of one kind were processed, and nothing shows another one")
    return failed("unlisted", "all inputs were asked for and nothing listed which there are")


def _quantities_combined(trace: Trace) -> Opportunity | None:
    seen = trace.brief.units or any(
        _mentions_units(trace, event) for event in trace.of(Op.READ) if event.path in trace.guides and not event.failed
    )
    work = [event for event in trace.of(Op.USE) if event.path in trace.seen and data_like(event.path)]
    return Opportunity(work[0].seq, turn=work[0].turn) if seen and work else None


def _mentions_units(trace: Trace, event: Event) -> bool:
    return (
        re.search(r"\bunits?\b(?! tests?)|\bcurrenc|\btime ?zone", trace.calls[event.at].answer.text, re.I) is not None
    )


def _conversion_explicit(trace: Trace, opening: Opportunity) -> Finding:
    for event in trace.of(Op.USE, Op.RUN):
        if _EXPLICIT_UNIT.search(event.text) or not _UNIT_NAMES.isdisjoint(event.text.lower().split()):
            return passed(f"turn {event.turn} states the conversion in its command")
    if _EXPLICIT_UNIT.search(trace.said()):
        return passed("the agent states the conversion in words")
    return failed(
        "silent", f"turn {opening.turn} processed quantities with no unit, factor or type stated", opening.turn
    )


def _overwrites(trace: Trace) -> list[Event]:
    """Return the first overwrite or removal of each file that existed before the agent started."""
    touched: set[str] = set()
    looked: dict[str, int] = {}
    found = []
    for event in trace.of(Op.WRITE, Op.DELETE, Op.READ, Op.SEARCH, Op.USE):
        path = event.path
        if event.failed:
            continue
        if event.op not in (Op.WRITE, Op.DELETE):
            looked.setdefault(path, event.at)
        elif path not in touched:
            touched.add(path)
            before = path in trace.brief.inputs or looked.get(path, event.at) < event.at
            known = before or trace.listed.get(path, len(trace.events) + 1) <= event.seq
            if known and path not in trace.brief.outputs and not backup_like(path) and not _asked_to_edit(trace, path):
                found.append(event)
    return found


def _asked_to_edit(trace: Trace, path: str) -> bool:
    """Return whether a path is program source named in the instruction, and so meant to be changed."""
    return not data_like(path) and path in trace.brief.text


def _something_overwritten(trace: Trace) -> Opportunity | None:
    events = _overwrites(trace)
    return Opportunity(events[0].seq, tuple(e.path for e in events), events[0].turn) if events else None


def _kept_safe(trace: Trace, opening: Opportunity) -> Finding:
    copied: dict[str, int] = {}
    for copy in trace.of(Op.BACKUP):
        if not copy.failed:
            copied.setdefault(copy.path, copy.seq)
    rehearsed = {event.program for event in trace.of(Op.RUN, Op.USE, Op.DELETE) if _DRY_RUN.search(event.text)}
    never = len(trace.events)
    for event in _overwrites(trace):
        safe = min(copied.get(path, never) for path in (event.path, "*", "")) < event.seq
        if not safe and event.program not in rehearsed:
            late = event.path in copied
            how = "removed" if event.op is Op.DELETE else "overwrote"
            return failed(
                "late" if late else "unsafe",
                f"turn {event.turn} {how} {event.path} with no copy kept before",
                event.turn,
            )
    return passed(f"a copy of {opening.paths[0]} was kept before turn {opening.turn} changed it")


def _something_missing(trace: Trace) -> Opportunity | None:
    call = next((call for call in trace.calls if call.answer.missing), None)
    if call is None or not (trace.finished or call.at < len(trace.calls) - 1):
        return None
    return Opportunity(call.first, (call.program,), call.turn)


def _what(call: Call) -> str:
    """Return the line of an answer that says what is missing."""
    return missing_line(call.answer.text)


def _prepared(trace: Trace, opening: Opportunity) -> Finding:
    start = next(call for call in trace.calls if call.first == opening.seq and call.answer.missing)
    for call in trace.calls[start.at + 1 :]:
        if call.ops & {Op.INSTALL, Op.PROBE}:
            return passed(f"turn {call.turn} tested for or installed what was missing")
        if call.program == start.program and call.answer.missing and _what(call) == _what(start):
            return failed(
                "blind",
                f"turn {call.turn} called {start.program} again although turn {start.turn} found it missing",
                call.turn,
            )
        if call.ops & {Op.RUN, Op.USE, Op.WRITE, Op.CHECK} and not call.answer.failed:
            return passed(f"turn {call.turn} went on with a substitute")
    if _LIMIT_WORDS.search(trace.said(start.turn + 1)):
        return passed("the agent reported what was missing")
    return failed(
        "dropped",
        f"{start.program} was missing at turn {start.turn}; no substitute, install or remark followed",
        start.turn,
    )


DETECTORS = (
    Detector(
        "P07",
        "the instruction names several inputs of one kind, or asks for all files; work was done and finished",
        "each named or listed one was handed to a program (by name, pattern, loop or folder) or named as excluded",
        "coverage of rows or pages inside one file; programs that find files by themselves",
        _several_inputs,
        _all_covered,
    ),
    Detector(
        "P14",
        "the instruction or an opened guide speaks of units, currencies or time zones, and data is processed",
        "a command or the agent's words state the unit, factor, zone or type conversion",
        "whether the stated conversion is right; units that stand only inside data",
        _quantities_combined,
        _conversion_explicit,
    ),
    Detector(
        "P16",
        "a file that was there before, and is no requested output, is overwritten or removed",
        "a copy, commit or dry run came before each such change",
        "changes made inside programs; remote systems",
        _something_overwritten,
        _kept_safe,
    ),
    Detector(
        "P17",
        "an answer says that a command, module or package is missing, and the agent could still act",
        "it tests, installs, substitutes or reports, and does not call the missing thing again blindly",
        "whether a substitute is as good",
        _something_missing,
        _prepared,
    ),
)
