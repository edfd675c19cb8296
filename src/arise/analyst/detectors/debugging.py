"""Detectors of Debugging: P04, P09, P10, P11."""

import re

from arise.analyst.acts import INSPECTIONS, Op, backup_like
from arise.analyst.brief import data_like, runnable_check
from arise.analyst.detectors.detector import Detector, Finding, Opportunity, failed, passed
from arise.analyst.tool_kinds import RECORD, kind_of
from arise.analyst.trace import READERS, Call, Event, Trace
from arise.analyst.vocabulary import vocabulary

_WEAKENS = re.compile(
    r"\|\| ?(?:true|:)(?:\s|$)|--no-verify|--no-check|--skip\b|--ignore-errors|\bset \+e\b|-k ['\"]?not |xfail"
)
_HARMLESS = READERS | vocabulary("listers") | vocabulary("neutral") | {"rm", "pkill", "kill", "which", "git", "command"}
"""Programs whose failure often means nothing: a search without a match, a file that is already gone."""
_REPRODUCES = re.compile(r"repro|scratch|demo[_.]|minimal_example", re.IGNORECASE)
_CHANGES = frozenset((Op.WRITE, Op.DELETE, Op.INSTALL))
_WORKS = frozenset((Op.RUN, Op.CHECK, Op.USE))


def _refused_calls(trace: Trace) -> list[Call]:
    return [c for c in trace.calls if c.answer.refused and (trace.finished or c.at < len(trace.calls) - 1)]


def _call_refused(trace: Trace) -> Opportunity | None:
    refused = _refused_calls(trace)
    return Opportunity(refused[0].first, turn=refused[0].turn) if refused else None


def _arguments_changed(trace: Trace, opening: Opportunity) -> Finding:
    rejected: dict[str, Call] = {}
    for call in trace.calls:
        before = rejected.pop(call.program, None)
        if before and before.text == call.text:
            return failed(
                "repeated", f"turn {call.turn} repeated the call that turn {before.turn} saw rejected", call.turn
            )
        if call.ops & _CHANGES:
            rejected.clear()  # something was changed: the same call may now succeed
        if call.answer.refused:
            rejected[call.program] = call
    hint = " as the message said" if any(call.answer.hinted for call in _refused_calls(trace)) else ""
    return passed(f"after the rejection at turn {opening.turn} the arguments were changed{hint} or the call was left")


def _edits(trace: Trace) -> list[Event]:
    """Return changes to sources and settings, without data files and scripts that only reproduce a failure.

    In a source repository, scripts that the agent adds next to the sources are left out. A record of a structured
    interface is not a source.
    """
    own = trace.is_own_tool if trace.repository else _REPRODUCES.search
    files = [e for e in trace.of(Op.WRITE) if not e.failed and kind_of(e.program) != RECORD]
    written = [e for e in files if not own(e.path) and not _REPRODUCES.search(e.path)]
    return [event for event in written if not backup_like(event.path) and not data_like(event.path)]


def _reported_broken(trace: Trace) -> Opportunity | None:
    edits = _edits(trace) if trace.brief.broken else []
    return Opportunity(edits[0].seq, turn=edits[0].turn) if edits and trace.had_a_turn_after(edits[-1]) else None


def _reproduced_and_rerun(trace: Trace, opening: Opportunity) -> Finding:
    edits = _edits(trace)
    runs = trace.of(Op.RUN, Op.CHECK)
    before = {run.program for run in runs if run.seq < edits[0].seq and run.text != edits[0].text}
    if not before:
        return failed(
            "unreproduced",
            f"turn {opening.turn} edited {edits[0].path} before anything had been run to see the failure",
            opening.turn,
        )
    after = [run for run in runs if run.seq > edits[-1].seq and run.program in before]
    if not after:
        return failed(
            "not_rerun", f"nothing run before was run again after the edit at turn {edits[-1].turn}", edits[-1].turn
        )
    return passed(f"{after[0].program} ran before the edit and again at turn {after[0].turn}")


def _failure_then_change(trace: Trace) -> Opportunity | None:
    """Return the opportunity of a failing check or program followed by an act that changes something."""
    for call in trace.calls:
        if call.answer.failed and call.ops & _WORKS:
            later = trace.calls[call.at + 1 :]
            if any(c.ops & _CHANGES or c.ops & _WORKS for c in later):
                return Opportunity(call.first, (call.program,), call.turn)
            return None
    return None


def _cause_addressed(trace: Trace, opening: Opportunity) -> Finding:
    own = {event.path for event in trace.of(Op.WRITE) if event.seq < opening.seq}
    for event in trace.of(Op.WRITE, Op.DELETE):
        if event.seq > opening.seq and not event.failed and event.path not in own and runnable_check(event.path):
            return failed(
                "weakened",
                f"turn {event.turn} changed {event.path}, which checks the work, after a failure",
                event.turn,
            )
    for call in trace.calls:
        if call.first > opening.seq and _hides(call.text):
            return failed("skipped", f"turn {call.turn} made the failure pass unseen instead of curing it", call.turn)
    return passed(f"after the failure at turn {opening.turn} the check itself was left as it was")


def _hides(text: str) -> bool:
    """Return whether a command hides a failure; `|| true` after a mere look hides none."""
    for match in _WEAKENS.finditer(text):
        pipeline = re.split(r"&&|\|\||;|\n", text[: match.start()])[-1].split()
        if not match.group().startswith("||") or not pipeline or pipeline[0] not in _HARMLESS:
            return True
    return False


def _failed_twice(trace: Trace) -> Opportunity | None:
    """Return the second failure of the same program on the same files."""
    count: dict[tuple[str, frozenset[str]], int] = {}
    for call in trace.calls:
        if not call.answer.failed or call.ops <= INSPECTIONS:
            continue
        key = (call.program, frozenset(e.path for e in trace.events[call.first : call.first + 16] if e.at == call.at))
        count[key] = count.get(key, 0) + 1
        if count[key] == 2 and (trace.finished or call.at < len(trace.calls) - 1):
            return Opportunity(call.first, (call.program,), call.turn)
    return None


def _approach_changed(trace: Trace, opening: Opportunity) -> Finding:
    second = next(call for call in trace.calls if call.turn == opening.turn and call.first == opening.seq)
    tried = {
        call.text for call in trace.calls[: second.at + 1] if call.answer.failed and call.program == second.program
    }
    for later in trace.calls[second.at + 1 :]:
        if later.ops & _CHANGES and later.text not in tried:
            break
        if later.text in tried:
            return failed(
                "third",
                f"turn {later.turn} tried again what had failed, after two failures by turn {opening.turn}",
                later.turn,
            )
    return passed(f"after the second failure at turn {opening.turn} no earlier attempt was repeated")


DETECTORS = (
    Detector(
        "P04",
        "a call failed with words of usage, unknown, invalid, expected or required, and the agent could still act",
        "the next call of that program differs, or something was changed first, or it was not called again",
        "whether the change was the right one",
        _call_refused,
        _arguments_changed,
    ),
    Detector(
        "P09",
        "the instruction reports something broken, the agent edits a source or setting, a turn was left",
        "a program ran before the first edit, and the same program ran again after the last",
        "whether the run showed the reported failure",
        _reported_broken,
        _reproduced_and_rerun,
    ),
    Detector(
        "P10",
        "a check or program failed and the agent acted afterwards",
        "no check that was there before is edited or removed, and no option or `|| true` hides the failure",
        "special cases written into the work itself",
        _failure_then_change,
        _cause_addressed,
    ),
    Detector(
        "P11",
        "the same program failed twice on the same files and the agent could still act",
        "no attempt that had failed is repeated before something was changed",
        "attempts that differ in wording only",
        _failed_twice,
        _approach_changed,
    ),
)
