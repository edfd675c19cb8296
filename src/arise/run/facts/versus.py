"""Two runs side by side: what is better and what is worse in the second, and whether that is noise."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from arise.run.facts.behaviours import same_words
from arise.run.facts.held_out import RateChange
from arise.run.facts.story import Moved, RunFacts
from arise.types import Tally


@dataclass(frozen=True)
class Versus:
    """The second run against the first; `change` is that of the newest held-out evaluations, None if one is missing."""

    change: RateChange | None
    better: Sequence[Moved]
    worse: Sequence[Moved]
    alike: int
    """Behaviours and task types with the same rate in both."""


def versus(first: RunFacts, second: RunFacts) -> Versus:
    """Compare unguided rates of behaviours with the same criterion, and of task types."""
    one, other = first.held_out.now, second.held_out.now
    change = RateChange(one.tally, other.tally) if one and other else None
    moved = [*_behaviours(first, second), *_types(first, second)]
    return Versus(
        change,
        sorted((item for item in moved if item.change.difference > 0), key=_clear_first),
        sorted((item for item in moved if item.change.difference < 0), key=_clear_first),
        sum(item.change.difference == 0 for item in moved),
    )


def _clear_first(item: Moved) -> tuple[bool, float]:
    return not item.change.clear, -abs(item.change.difference)


def _behaviours(first: RunFacts, second: RunFacts) -> Iterator[Moved]:
    known = {same_words(behaviour.rubric.criteria_text): behaviour for behaviour in first.behaviours}
    for behaviour in second.behaviours:
        other = known.get(same_words(behaviour.rubric.criteria_text))
        if other is None or other.source != behaviour.source:
            continue
        if other.unguided.evaluations and behaviour.unguided.evaluations:
            change = RateChange(other.unguided, behaviour.unguided)
            yield Moved(behaviour.rubric.criteria_text, change, behaviour.source, behaviour.rubric.id)


def _types(first: RunFacts, second: RunFacts) -> Iterator[Moved]:
    if not (first.held_out.now and second.held_out.now):
        return
    for name, tally in second.held_out.now.by_task_type.items():
        other = first.held_out.now.by_task_type.get(name, Tally())
        if name and other.evaluations and tally.evaluations:
            yield Moved(f"task type {name}", RateChange(other, tally), "held out")
