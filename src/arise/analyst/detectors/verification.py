"""Detectors of Verification: P02, P03, P12, P13, P15, P20."""

import re

from arise.analyst.acts import INSPECTIONS, Op
from arise.analyst.brief import data_like
from arise.analyst.detectors.detector import Detector, Finding, Opportunity, failed, passed
from arise.analyst.trace import Call, Event, Trace
from arise.analyst.vocabulary import vocabulary

_COMPARERS = frozenset(("diff", "cmp"))
_REMARK = re.compile(
    r"empty|truncat|partial|skipp|warning|missing|no (?:data|rows|output|records)|incomplete|not all|only \d+"
    r"|test[- ]mode"
)
_COUNTERS = vocabulary("counters")
_CLAIM = re.compile(
    r"\b(?:done|complete[d]?|success(?:ful|fully)?|finished|verified|checked|validated|tested|fixed|"
    r"written|created|saved|passes)\b"
)
_CLAIMS_CHECK = re.compile(r"\b(?:verified|checked|validated|tested|passes|all tests)\b")
_CLAIMS_SUCCESS = re.compile(r"\b(?:done|complete[d]?|success\w*|finished|verified|fixed|passes)\b")
_ADMITS = re.compile(
    r"\b(?:fail(?:ed|s)?|could not|couldn't|unable|not (?:verified|checked|finished|able)|remaining|"
    r"incomplete|unfinished|except)\b"
)
_CLAIMED_FILE = re.compile(
    r"\b(?:wrote|written|created|saved|produced|generated)\b[^.\n]{0,40}?[`'\" ]([\w./-]+\.[a-z]\w{0,5})\b"
)


def _last_write(trace: Trace) -> Event | None:
    """Return the last write of a result, if the agent still had a turn to inspect it."""
    last = max(trace.results.values(), key=lambda event: event.seq, default=None)
    return last if last and trace.had_a_turn_after(last) else None


def _looked_at_last(trace: Trace, looks: list[Event], did: str) -> Finding:
    """Judge whether each result was inspected after its last write; one look is enough, a failed check is not."""
    proof = None
    by_path: dict[str, list[Event]] = {}
    for look in looks:
        by_path.setdefault(look.path, []).append(look)
    whole = [look for look in looks if look.op is Op.CHECK and not data_like(look.path)][-1:]  # a check of all results
    for path, write in trace.results.items():
        own = sorted(by_path.get(path, []) + whole, key=lambda look: look.seq)
        after = [look for look in own if look.seq > write.seq]
        checks = [look for look in after if look.op is Op.CHECK]
        if checks and checks[-1].failed:
            return failed(
                "unfixed",
                f"{checks[-1].program} failed at turn {checks[-1].turn}, nothing changed after it",
                checks[-1].turn,
            )
        proof = next((look for look in after if not look.failed), None)
        if proof is None and own:
            return failed("stale", f"turn {own[-1].turn} {did} {path}, turn {write.turn} wrote it again", write.turn)
        if proof is None:
            return failed("never", f"turn {write.turn} wrote {path}, nothing {did} it afterwards", write.turn)
    assert proof is not None, "an opening has at least one result"
    return passed(f"turn {proof.turn} ran {proof.program} on the result after its last write")


def _spec_and_artifact(trace: Trace) -> Opportunity | None:
    last = _last_write(trace)
    read_spec = any(e.path in trace.guides and not e.failed for e in trace.of(Op.READ, Op.SEARCH))
    specified = read_spec or trace.brief.outputs or trace.brief.guides or trace.brief.constraints
    return Opportunity(last.seq, (last.path,), last.turn) if last and specified else None


def _read_back(trace: Trace, _: Opportunity) -> Finding:
    return _looked_at_last(trace, trace.of(Op.READ, Op.SEARCH, Op.CHECK), "looked at")


def _thin_answer(trace: Trace) -> Opportunity | None:
    """Return the first answer that is empty although content was requested, or that says it is partial."""
    for call in trace.calls:
        looked = bool(call.ops & {Op.READ}) and call.ops <= INSPECTIONS
        thin = (looked and call.answer.empty) or (bool(call.answer.partial) and Op.FINISH not in call.ops)
        if thin and not call.answer.failed and (trace.finished or call.at < len(trace.calls) - 1):
            return Opportunity(call.first, turn=call.turn, paths=(call.text,))
    return None


def _noticed(trace: Trace, opening: Opportunity) -> Finding:
    thin = next(call for call in trace.calls if call.turn == opening.turn and call.text == opening.paths[0])
    what = thin.answer.partial or "empty"
    touched = {event.path for event in trace.events if event.at == thin.at and event.path}
    for call in trace.calls[thin.at + 1 :]:
        if Op.FINISH in call.ops:
            break
        if _follows_up(trace, thin, call, touched):
            return passed(f"turn {call.turn} followed up the '{what}' answer of turn {thin.turn}")
        if Op.WRITE in call.ops:
            break
    if _REMARK.search(trace.said(thin.turn + 1)):
        return passed(f"the agent spoke of the '{what}' answer of turn {thin.turn}")
    return failed(
        "passed_over", f"turn {thin.turn} answered '{what}' and the agent went on without a look or a word", thin.turn
    )


def _follows_up(trace: Trace, thin: Call, call: Call, touched: set[str]) -> bool:
    if call.program == thin.program and call.text != thin.text:
        return True
    if call.ops & {Op.LIST, Op.PROBE, Op.CHECK}:
        return True
    looked = {e.path for e in trace.events[call.first : call.first + 8] if e.at == call.at and e.op in INSPECTIONS}
    return bool(looked & touched) or any(path and path in thin.answer.text for path in looked)


def _check_and_artifact(trace: Trace) -> Opportunity | None:
    last = _last_write(trace)
    return Opportunity(last.seq, tuple(trace.checks), last.turn) if last and trace.checks else None


def _check_run_last(trace: Trace, _: Opportunity) -> Finding:
    checks = [event for event in trace.of(Op.CHECK) if event.program not in _COMPARERS]
    return _looked_at_last(trace, checks, "checked")


def _figure_computed(trace: Trace) -> Opportunity | None:
    computing = [e for e in trace.of(Op.USE) if not e.failed and e.path in trace.seen and data_like(e.path)]
    asked = trace.brief.figure and trace.finished
    return Opportunity(computing[0].seq, turn=computing[0].turn) if asked and computing else None


def _cross_checked(trace: Trace, opening: Opportunity) -> Finding:
    routes: dict[str, int] = {}
    for event in trace.of(Op.USE, Op.READ, Op.SEARCH, Op.CHECK):
        worked = event.op is Op.USE or event.program in _COUNTERS
        over_data = worked and event.path in trace.seen and data_like(event.path)
        if not event.failed and (event.op is Op.CHECK or over_data):
            routes.setdefault(event.text, event.turn)
    if len(routes) > 1:
        first, second, *_ = routes.values()
        return passed(f"the figure was looked at by two routes, turns {first} and {second}")
    return failed(
        "single", f"the figure comes from one computation at turn {opening.turn}, nothing confirmed it", opening.turn
    )


def _closing_words(trace: Trace) -> str:
    """Return the text of the last turn that has any, and of the finishing call."""
    last = trace.words[-1][1].lower() if trace.words and trace.words[-1][0] >= trace.last_turn else ""
    return last + "\n" + "\n".join(call.text.lower() for call in trace.calls[-1:] if Op.FINISH in call.ops)


def _claim_made(trace: Trace) -> Opportunity | None:
    return Opportunity() if trace.finished and trace.calls and _CLAIM.search(_closing_words(trace)) else None


def _claim_backed(trace: Trace, _: Opportunity) -> Finding:
    words = _closing_words(trace)
    checks = trace.of(Op.CHECK)
    writes = {event.path.rsplit("/", 1)[-1].lower() for event in trace.of(Op.WRITE) if not event.failed}
    mentioned = "\n".join(call.text for call in trace.calls if Op.FINISH not in call.ops).lower()
    if checks and checks[-1].failed and _CLAIMS_SUCCESS.search(words) and not _ADMITS.search(words):
        return failed("contradicted", f"success is claimed although the check at turn {checks[-1].turn} failed")
    if _CLAIMS_CHECK.search(words) and not checks and not trace.of(Op.READ, Op.SEARCH):
        return failed("unbacked", "a check is claimed and no call looked at anything")
    for name in _CLAIMED_FILE.findall(words):
        base = name.rsplit("/", 1)[-1]
        if base not in writes and base not in mentioned:
            return failed("unbacked", f"{base} is claimed as written and no call names it")
    return passed("what is claimed at the end shows in the calls before")


def _several_outputs(trace: Trace) -> Opportunity | None:
    last = _last_write(trace)
    outputs = trace.brief.outputs
    return Opportunity(last.seq, outputs, last.turn) if last and len(outputs) > 1 else None


def _inventory_taken(trace: Trace, opening: Opportunity) -> Finding:
    made = {event.path for event in trace.of(Op.WRITE) if not event.failed}
    listings = [call for call in trace.calls if Op.LIST in call.ops and call.first > opening.seq]
    shown = {path for path in opening.paths for call in listings if path.rsplit("/", 1)[-1] in call.answer.text}
    missing = [path for path in opening.paths if path not in made and path not in shown]
    if not missing:
        return passed(f"each of the {len(opening.paths)} outputs was visibly made or listed at the end")
    if listings:
        return failed(
            "unfilled",
            f"the listing at turn {listings[-1].turn} lacks {missing[0]} and it was not made",
            listings[-1].turn,
        )
    return failed("never", f"{missing[0]} was not made and nothing took stock after turn {opening.turn}", opening.turn)


DETECTORS = (
    Detector(
        "P02",
        "a guide was read, or the instruction names outputs or constraints; a result was written; a turn was left",
        "each main result was read, searched or checked after its own last write, and the last check did not fail",
        "whether the comparison was careful; results shown while they were written",
        _spec_and_artifact,
        _read_back,
    ),
    Detector(
        "P03",
        "a read came back empty, or an answer speaks of a warning, skipped, partial, truncated or absent content",
        "before the next write or the end, a changed call, a look at what it touched, or a remark follows",
        "payloads that are wrong without saying so",
        _thin_answer,
        _noticed,
    ),
    Detector(
        "P12",
        "a runnable check (by its name) is named, listed or documented, a result was written, a turn was left",
        "a check ran on each main result after its own last write, and the last one did not fail",
        "checks that nothing made visible; what the check covers",
        _check_and_artifact,
        _check_run_last,
    ),
    Detector(
        "P13",
        "the instruction asks for a computed figure, a computation ran, and the agent finished",
        "two different commands computed over the inputs, or a check was run",
        "whether both routes agree; checks done in the head",
        _figure_computed,
        _cross_checked,
    ),
    Detector(
        "P15",
        "the agent finished and its last words claim something",
        "no claimed check, file or success is contradicted by the calls and answers before",
        "claims in words it does not know; silent finishes",
        _claim_made,
        _claim_backed,
    ),
    Detector(
        "P20",
        "the instruction names two or more outputs, something was written, a turn was left",
        "each was visibly written, or a listing after the last write shows it",
        "outputs that are not named as files; whether their content is right",
        _several_outputs,
        _inventory_taken,
    ),
)
