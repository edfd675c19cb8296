"""The main facts of a run: held-out before and after, what is still wrong, worse or improved, and alarms.

Screen, summary, list of runs and Overview use the same facts in this order.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from arise.method.pass_rate import pass_rate
from arise.method.standing import STUCK_AFTER
from arise.run.facts.alarms import Alarm, training_alarms
from arise.run.facts.behaviours import Behaviour, behaviours, weakest
from arise.run.facts.held_out import HeldOut, RateChange, held_out
from arise.run.folder import held
from arise.run.queries import RunQueries
from arise.text import numbers
from arise.types import PairStatus, Tally

FAILING = 0.5
"""A task type with a lower pass rate than this is failing."""


@dataclass(frozen=True)
class Moved:
    """A behaviour or a task type whose unguided rate changed; `rubric` is empty for a task type."""

    name: str
    change: RateChange
    source: str
    rubric: str = ""


@dataclass(frozen=True)
class RunFacts:
    """The facts of one run, read from one snapshot."""

    held_out: HeldOut
    behaviours: Sequence[Behaviour]
    under_way: Mapping[str, str]
    """Rubric id to the measures being taken for the behaviour."""
    still_wrong: Sequence[Behaviour]
    failing_types: Mapping[str, Tally]
    worse: Sequence[Moved]
    """Every rate that fell, the most certain fall first: by the end of its interval that is nearer to a rise."""
    improved: Sequence[Moved]
    """Every rate that rose, the most certain rise first."""
    alarms: Sequence[Alarm]

    @property
    def stuck(self) -> list[Behaviour]:
        return [behaviour for behaviour in self.behaviours if behaviour.standing.stuck]

    @property
    def rewritten(self) -> int:
        """Return how often a skill got a new text."""
        return sum(pair.rewritten for behaviour in self.behaviours for pair in behaviour.pairs)


def run_facts(run: RunQueries) -> RunFacts:
    """Derive all facts of a run, which may still be active."""
    evaluated = held_out(run)
    found = behaviours(run, evaluated)
    moved = [*_moved_behaviours(found), *_moved_types(evaluated)]
    worse = sorted((item for item in moved if item.change.difference < 0), key=lambda item: item.change.interval[1])
    improved = sorted((item for item in moved if item.change.difference > 0), key=lambda item: -item.change.interval[0])
    mastered = float(run.config().get("pool", {}).get("retire_at", 0.9))
    draws = _adaptive_draws(run)
    return RunFacts(
        evaluated,
        found,
        {behaviour.rubric.id: what_is_done(behaviour, draws) for behaviour in found},
        weakest(found, mastered),
        _failing(evaluated),
        worse,
        improved,
        [*_outcome_alarms(evaluated, found, worse), *training_alarms(run)],
    )


def ending(run: RunQueries) -> str:
    """Return how a run ended (finished, not evaluated, stopped), or that it is running or has not begun."""
    planned = run.config().get("train", {}).get("iterations")
    committed = run.committed()
    if held(Path(run.folder)):
        return "running"
    if planned is None or committed < int(planned):
        return "stopped" if committed else "not begun"
    return "finished" if run.attempt_count("after") else "trained, not evaluated"


def what_is_done(behaviour: Behaviour, draws: Mapping[str, int]) -> str:
    """Describe the measures for a behaviour: its skill, and how often the sampler draws its capability."""
    pair, status = behaviour.pair, behaviour.standing.status
    if status is PairStatus.RETIRED:
        return f"retired after {pair.retired}: not trained any more"
    refined = [event for event in pair.events if event.kind == "refine"]
    words = f"skill {status.value}"
    if status is PairStatus.HIDDEN and behaviour.recent.all.evaluations:
        words += f", passes {numbers.counted_rate(*behaviour.recent.all)} in its last window"
    if pair.rewritten:
        words += f", rewritten {pair.rewritten} time{'' if pair.rewritten == 1 else 's'}"
    if refined and refined[-1].unchanged:
        words += ", no other wording found"
    if behaviour.standing.stuck:
        words += f", stuck: the last {STUCK_AFTER} refinements had no effect"
    capability, total = behaviour.rubric.capability.value, sum(draws.values())
    if not draws.get(capability):
        return words
    more = draws[capability] * len(draws) > total
    return f"{words}; {capability} drawn {'more often, ' if more else ''}{draws[capability]} of {total} adaptive slots"


def _adaptive_draws(run: RunQueries) -> Counter[str]:
    """Count the adaptive slots of the last window by capability."""
    last = run.committed()
    found: Counter[str] = Counter()
    for cell in run.cell_draws(max(0, last - run.update_every), last):
        found[cell.capability] += cell.draws
    return found


def _moved_behaviours(found: Sequence[Behaviour]) -> Iterator[Moved]:
    for behaviour in found:
        if behaviour.change and behaviour.change.difference:
            yield Moved(behaviour.rubric.criteria_text, behaviour.change, behaviour.source, behaviour.rubric.id)


def _moved_types(evaluated: HeldOut) -> Iterator[Moved]:
    """Yield the changes of task types that both evaluations include."""
    if not (evaluated.before and evaluated.now):
        return
    for name, first in evaluated.before.by_task_type.items():
        last = evaluated.now.by_task_type.get(name, Tally())
        if name and first.evaluations and last.evaluations and RateChange(first, last).difference:
            yield Moved(f"task type {name}", RateChange(first, last), "held out")


def _failing(evaluated: HeldOut) -> dict[str, Tally]:
    """Return task types that mostly fail in the newest evaluation, weakest first."""
    newest = evaluated.now or evaluated.before
    tried = newest.by_task_type if newest else {}
    rates = {name: rate for name, tally in tried.items() if name and (rate := pass_rate(tally)) is not None}
    return {name: tried[name] for name in sorted(rates, key=lambda name: rates[name]) if rates[name] < FAILING}


def _outcome_alarms(evaluated: HeldOut, found: Sequence[Behaviour], worse: Sequence[Moved]) -> Iterator[Alarm]:
    change = evaluated.change
    if change and change.difference < 0:
        text = f"{change.from_to}, {change.reading}."
        yield Alarm("serious" if change.clear else "note", "The held-out pass rate fell", text)
    if worse:
        clear = sum(item.change.clear for item in worse)
        rubrics = tuple(item.rubric for item in worse if item.rubric)
        rates = "1 unguided rate" if len(worse) == 1 else f"{len(worse)} unguided rates"
        if clear:
            title, text = "Something got worse", f"{rates} fell, {clear} beyond noise; see Got worse."
        else:
            title, text = "Some rates fell, none beyond noise", f"{rates} fell; see Got worse."
        yield Alarm("serious" if clear else "note", title, text, rubrics)
    stuck = [behaviour.rubric.id for behaviour in found if behaviour.standing.stuck]
    if stuck:
        skills = "1 skill" if len(stuck) == 1 else f"{len(stuck)} skills"
        text = f"The last {STUCK_AFTER} refinements of {skills} had no effect."
        yield Alarm("note", "Stuck skills", text, tuple(stuck))
    if evaluated.failed:
        names = ", ".join(evaluation.label for evaluation in evaluated.failed)
        yield Alarm("serious", "Evaluations without a result", f"No attempt counts in {names}; Health has the faults.")
