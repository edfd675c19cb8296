"""The summary of a run as lines of text, for the end of a run, the live screen and `arise runs`."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from arise.method.pass_rate import pass_rate
from arise.run.facts.behaviours import Behaviour, as_json
from arise.run.facts.held_out import RateChange
from arise.run.facts.score import Evaluation, rate_text
from arise.run.facts.story import Moved, RunFacts
from arise.text import numbers

WEAKEST, FAILING, IMPROVED = 5, 4, 3


@dataclass(frozen=True)
class Summary:
    """The facts of a finished run; `before` and `after` may have no attempt that counts."""

    run: str
    facts: RunFacts
    before: Evaluation
    after: Evaluation
    events: Mapping[str, int]
    pool: int
    set_aside: Mapping[str, int]
    all_fail: Sequence[float]
    """All-fail groups per iteration, in the first and in the last tenth of the run."""
    trust: Sequence[str]
    seconds: float
    parts: Mapping[str, float] = field(default_factory=dict)
    """Seconds by part of an iteration, the longest first."""

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        facts = self.facts
        return {
            "run": self.run,
            "before": self.before.facts(),
            "after": self.after.facts(),
            **story_json(facts),
            "events": dict(self.events),
            "rewritten": facts.rewritten,
            "pool": self.pool,
            "stuck": {behaviour.rubric.id: behaviour.rubric.criteria_text for behaviour in facts.stuck},
            "set_aside": dict(self.set_aside),
            "behaviours": [as_json(behaviour) for behaviour in facts.behaviours],
            "all_fail": list(self.all_fail),
            "trust": list(self.trust),
            "seconds": self.seconds,
            "parts": dict(self.parts),
        }

    def as_text(self) -> str:
        """Return the summary to print at the end, with suggested next commands."""
        kinds, total = Counter(self.events), sum(self.parts.values()) or 1.0
        parts = ", ".join(f"{name} {numbers.percent(spent / total)}" for name, spent in self.parts.items())
        first, last = (numbers.decimal(value, 1) for value in self.all_fail)
        scores = [("before", self.before), ("after", self.after)]
        lines = [
            "",
            *story_lines(self.facts),
            *(f"  {name}: infrastructure ended every attempt" for name, found in scores if not found.attempts),
            f"rubrics: {kinds['born']} born, {kinds['retire']} retired, {kinds['reopen']} reopened, {self.pool} in the "
            f"pool; skills: {kinds['activate']} shown, {kinds['hide']} hidden, {self.facts.rewritten} rewritten, "
            f"{len(self.facts.stuck)} stuck",
            f"all-fail groups per iteration: {first} first, {last} last",
            *(f"set aside: {task}, {lost} groups lost in a row" for task, lost in self.set_aside.items()),
            *self.trust,
            f"time: {numbers.duration(self.seconds)}" + (f"; of an iteration: {parts}" if parts else ""),
            f"next: arise view {self.run}   arise pool ls {self.run}   arise sampler why {self.run} 1",
        ]
        return "\n".join(lines)


def story_lines(facts: RunFacts) -> list[str]:
    """Return held-out before and after, what is still wrong, what got worse, what improved, and the alarms."""
    return [
        *headline(facts),
        *still_wrong_lines(facts),
        *_moved("got worse, unguided", facts.worse, len(facts.worse)),
        *_moved("improved, unguided", facts.improved, IMPROVED),
        *(f"alarm: {alarm.title}. {alarm.text}" for alarm in facts.alarms),
        *([] if facts.alarms else ["no alarms"]),
    ]


def headline(facts: RunFacts) -> list[str]:
    """Return the held-out pass rate before and after with its interval."""
    before, now, change = facts.held_out.before, facts.held_out.now, facts.held_out.change
    lines = [f"  {found.label:7}{rate_text(found.tally)}" for found in (before, now) if found]
    if change is None:
        return ["held-out pass rate, no skills shown", *lines] if lines else []
    return [
        f"held-out pass rate, no skills shown: {change.from_to}, {change.reading}",
        *lines,
    ]


def still_wrong_lines(facts: RunFacts, most: int = WEAKEST) -> list[str]:
    """Return the weakest unguided behaviours, what is being done about them, and the failing task types."""
    lines = [f"  {weak_line(behaviour, facts)}" for behaviour in facts.still_wrong[:most]]
    if lines:
        lines = ["still wrong, unguided: passes among the attempts each behaviour applies to", *lines]
        lines += _more(len(facts.still_wrong) - most)
    failing = [f"{name} {tally.passes} of {tally.evaluations}" for name, tally in facts.failing_types.items()]
    if failing:
        more = f", and {len(failing) - FAILING} more" if len(failing) > FAILING else ""
        lines.append(f"failing task types, passes of attempts: {', '.join(failing[:FAILING])}{more}")
    return lines


def weak_line(behaviour: Behaviour, facts: RunFacts) -> str:
    """Write a behaviour with its unguided rate and what is being done about it."""
    rubric = behaviour.rubric
    rate = f"{numbers.counted_rate(*behaviour.unguided):>20}"
    return f"{rate}  {rubric.id} {rubric.criteria_text} [{facts.under_way[rubric.id]}]"


def _moved(title: str, moved: Sequence[Moved], most: int) -> list[str]:
    lines = [
        f"  {item.change.from_to:>17}  {item.change.reading}{_sizes(item.change)}  "
        + f"{item.rubric} {item.name}".lstrip()
        for item in moved[:most]
    ]
    return [f"{title}: {len(moved)}", *lines, *_more(len(moved) - most)] if moved else []


def _sizes(change: RateChange) -> str:
    return "" if change.few else f", n = {change.first.evaluations} and {change.last.evaluations}"


def _more(number: int) -> list[str]:
    return [f"  and {number} more"] if number > 0 else []


def story_json(facts: RunFacts) -> dict[str, Any]:
    """Return the story as JSON values, in the order of `story_lines`."""
    change = facts.held_out.change
    return {
        "held_out": None if change is None else _change_json(change.difference, change.interval, change.clear),
        "still_wrong": [_weak_json(behaviour, facts) for behaviour in facts.still_wrong],
        "failing_types": {name: [pass_rate(tally), tally.evaluations] for name, tally in facts.failing_types.items()},
        "worse": [_moved_json(item) for item in facts.worse],
        "improved": [_moved_json(item) for item in facts.improved],
        "alarms": [{"level": alarm.level, "title": alarm.title, "text": alarm.text} for alarm in facts.alarms],
    }


def _weak_json(behaviour: Behaviour, facts: RunFacts) -> dict[str, Any]:
    tally = behaviour.unguided
    return {
        "rubric": behaviour.rubric.id,
        "criterion": behaviour.rubric.criteria_text,
        "unguided": [pass_rate(tally), tally.evaluations],
        "measured": behaviour.source,
        "under_way": facts.under_way[behaviour.rubric.id],
    }


def _moved_json(item: Moved) -> dict[str, Any]:
    first, last = ([pass_rate(tally), tally.evaluations] for tally in item.change)
    named = {"rubric": item.rubric, "name": item.name, "measured": item.source, "first": first, "last": last}
    return named | _change_json(item.change.difference, item.change.interval, item.change.clear)


def _change_json(difference: float, interval: tuple[float, float], clear: bool) -> dict[str, Any]:
    return {"difference": difference, "interval": list(interval), "beyond_noise": clear}
