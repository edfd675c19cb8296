"""Detectors of Understanding: P01, P06, P08, P18."""

from arise.analyst.acts import INSPECTIONS, Op
from arise.analyst.brief import data_like, ending
from arise.analyst.detectors.detector import Detector, Finding, Opportunity, failed, passed
from arise.analyst.trace import Event, Trace

_SEVERAL = 3


def _constraints_stated(trace: Trace) -> Opportunity | None:
    constraints = trace.brief.constraints
    decidable = [literals for _, literals in constraints if literals]
    worked = trace.finished and any(call.ops - INSPECTIONS - {Op.FINISH} for call in trace.calls)
    return Opportunity() if len(constraints) >= _SEVERAL and len(decidable) > 1 and worked else None


def _constraints_addressed(trace: Trace, _: Opportunity) -> Finding:
    own = trace.said() + "\n" + "\n".join(call.text for call in trace.calls).lower()
    decidable = [literals for _, literals in trace.brief.constraints if literals]
    open_ones = [literals for literals in decidable if not any(literal.lower() in own for literal in literals)]
    if open_ones:
        return failed("dropped", f"nothing the agent said or ran mentions {', '.join(open_ones[0][:3])}")
    return passed(f"all {len(decidable)} constraints with a name or number show in its words or commands")


def _first_processing(trace: Trace) -> Event | None:
    """Return the first time a program processes data that existed before."""
    made = set(trace.brief.outputs)
    for event in trace.of(Op.USE, Op.WRITE):
        if event.op is Op.WRITE:
            made.add(event.path)
        elif event.path not in made and data_like(event.path) and (event.path in trace.seen or trace.brief.all_files):
            return event
    return None


def _input_processed(trace: Trace) -> Opportunity | None:
    event = _first_processing(trace)
    return Opportunity(event.seq, (event.path,), event.turn) if event else None


def _input_probed(trace: Trace, opening: Opportunity) -> Finding:
    path = opening.paths[0]
    for event in trace.of(Op.READ, Op.SEARCH):
        alike = event.path == path or (ending(event.path) == ending(path) and data_like(event.path))
        if event.seq < opening.seq and not event.failed and alike:
            return passed(f"turn {event.turn} looked at {event.path} before turn {opening.turn} processed {path}")
    return failed("unseen", f"turn {opening.turn} processed {path} although nothing had looked into it", opening.turn)


def _before_first_write(trace: Trace) -> int:
    return trace.artifacts[0].seq if trace.artifacts else len(trace.events)


def _guidance_offered(trace: Trace) -> Opportunity | None:
    """Return guidance seen before work began; exclude agents cut off before their first write."""
    limit = _before_first_write(trace)
    listed = tuple(path for path, seq in trace.guides.items() if seq <= limit)
    visible = trace.brief.guides or listed
    skills = trace.provided_skills
    came_to_it = bool(trace.artifacts) or (trace.finished and bool(trace.calls))
    return Opportunity(limit, visible + skills) if (visible or skills) and came_to_it else None


def _first_write(trace: Trace) -> int:
    """Return the turn of the first write; 0 if nothing was written."""
    return trace.artifacts[0].turn if trace.artifacts else 0


def _opened(trace: Trace, limit: int) -> dict[str, int]:
    """Return guidance files and provided skills opened before an event, with the turn."""
    found: dict[str, int] = {}
    for event in trace.of(Op.READ, Op.SEARCH, Op.USE):
        if event.seq < limit and not event.failed:
            if event.path in trace.guides:
                found.setdefault(event.path, event.turn)
            for skill in trace.provided_skills:
                if skill in event.path or skill in event.text:
                    found.setdefault(skill, event.turn)
    return found


def _guidance_opened(trace: Trace, opening: Opportunity) -> Finding:
    opened = _opened(trace, opening.seq)
    for path in opening.paths:
        if path in opened:
            return passed(f"turn {opened[path]} opened {path} before the first write")
    late = _opened(trace, len(trace.events) + 1)
    if any(path in late for path in opening.paths):
        return failed("late", f"{opening.paths[0]} was opened only after the first write", _first_write(trace))
    return failed("ignored", f"{opening.paths[0]} was visible and never opened", _first_write(trace))


def _two_sources(trace: Trace) -> Opportunity | None:
    limit = _before_first_write(trace)
    visible = tuple(path for path, seq in trace.guides.items() if seq <= limit)
    return Opportunity(limit, visible) if len(visible) > 1 and trace.artifacts else None


def _sources_compared(trace: Trace, opening: Opportunity) -> Finding:
    opened = _opened(trace, opening.seq)
    named = [path for path in opening.paths if path in trace.brief.guides]
    unread = [path for path in (named if len(named) > 1 else opening.paths) if path not in opened]
    if sum(path in opened for path in opening.paths) > 1 and not (len(named) > 1 and unread):
        return passed(f"{' and '.join(list(opened)[:2])} were both read before the first write")
    return failed("one_sided", f"the first write came before {unread[0]} was read", _first_write(trace))


DETECTORS = (
    Detector(
        "P01",
        "three sentences of the instruction oblige, two with a name, number or option; work was done and finished",
        "each of those names, numbers or options shows in the agent's words or commands",
        "constraints in plain words only; whether the work really meets a constraint",
        _constraints_stated,
        _constraints_addressed,
    ),
    Detector(
        "P06",
        "a program is given a data file that is named or listed, or any data file where all files are asked for",
        "that file, or another with the same extension, was read or searched before",
        "whether what was seen was understood; data read inside the program",
        _input_processed,
        _input_probed,
    ),
    Detector(
        "P08",
        "before the first write or the end, a guidance file (by its name) is named or listed, or skills are provided",
        "one of the named ones (of the listed ones, if none is named) was opened before the first write",
        "guidance with an unusual name; whether it was followed",
        _guidance_offered,
        _guidance_opened,
    ),
    Detector(
        "P18",
        "two or more guidance files are visible before the first write",
        "two of them, and all that the instruction names, were read before the first write",
        "whether they truly disagree, and which one was believed",
        _two_sources,
        _sources_compared,
    ),
)
