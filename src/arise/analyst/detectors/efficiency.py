"""Detectors of Efficiency: P05, P19."""

from arise.analyst.acts import INSPECTIONS, Op
from arise.analyst.detectors.detector import Detector, Finding, Opportunity, failed, passed
from arise.analyst.detectors.execution import input_set
from arise.analyst.trace import Trace

_MANY = 3


def _something_read(trace: Trace) -> Opportunity | None:
    """Return the opportunity of an inspection that returned content, with turns left to inspect again."""
    for call in trace.calls[:-1]:
        if call.ops and call.ops <= INSPECTIONS and not call.answer.failed:
            return Opportunity(call.first, turn=call.turn)
    return None


def _no_repeated_look(trace: Trace, opening: Opportunity) -> Finding:
    shown: dict[str, tuple[str, int]] = {}
    for call in trace.calls:
        if not call.ops or not call.ops <= INSPECTIONS:
            if call.ops:
                shown.clear()  # something was run or written: looking again can show something new
            continue
        before = shown.get(call.text)
        if before and before[0] == call.answer.text:
            return failed(
                "repeated", f"turn {call.turn} repeated the look of turn {before[1]} and learned nothing new", call.turn
            )
        shown[call.text] = (call.answer.text, call.turn)
    return passed(f"no look was repeated without news after turn {opening.turn}")


def _many_operations(trace: Trace) -> Opportunity | None:
    """Return the opportunity of several inputs of one kind that were processed, by any method."""
    inputs = set(input_set(trace))
    done = {event.path for event in trace.of(Op.USE) if event.path in inputs}
    return Opportunity(paths=tuple(sorted(done))) if len(done) >= _MANY else None


def _batched(trace: Trace, opening: Opportunity) -> Finding:
    files = set(opening.paths)
    calls = {event.at for event in trace.of(Op.USE) if event.path in files}
    if len(calls) <= (len(files) + 1) // 2:
        return passed(f"{len(files)} inputs were processed in {len(calls)} calls")
    return failed("one_by_one", f"{len(files)} inputs were processed one by one in {len(calls)} calls")


DETECTORS = (
    Detector(
        "P05",
        "something was read, searched or listed, and another call followed",
        "no look is repeated word for word with the same answer while nothing was run or written between",
        "rereading in other words; reading that is broad but new",
        _something_read,
        _no_repeated_look,
    ),
    Detector(
        "P19",
        "three or more inputs of one kind were handed to programs",
        "they were handed over in at most half as many calls (rounded up)",
        "recomputation of expensive results",
        _many_operations,
        _batched,
    ),
)
