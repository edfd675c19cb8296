"""Progress of a run as plain lines, one per iteration, with the time of its parts."""

import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isfinite

from arise.observe.forecast import TimeForecast
from arise.observe.judge_monitor import JudgeMonitor
from arise.observe.waits import Wait, Waits
from arise.rollouts.guidance import left_out_ids, left_out_text
from arise.run.facts.alarms import alarm_text
from arise.run.facts.judging import judge_note
from arise.run.facts.metrics import iteration_metrics
from arise.run.numbering import iteration_of
from arise.run.record import IterationRecord
from arise.state import State
from arise.text import numbers
from arise.text.progress import Reached
from arise.types import Group, PoolEvent, StepStats
from arise.types.codec import to_json


class Display:
    """Time the parts of an iteration and print it after its commit; never changes the run."""

    def __init__(self, write: Callable[[str], None], iterations: int) -> None:
        self._write, self._iterations = write, iterations
        self._part, self._since = "", time.perf_counter()
        self.seconds: dict[str, float] = defaultdict(float)
        self._iteration_seconds: dict[str, float] = defaultdict(float)
        self.last_seconds: dict[str, float] = {}
        self.judge_monitor: JudgeMonitor | None = None
        self.forecast: TimeForecast | None = None
        self._foretold = False
        self._left_out: list[str] = []
        self._doubted: set[str] = set()
        self._waits = Waits()

    def tell(self, message: str) -> None:
        """Write a message that is not about an iteration."""
        self._write(message)

    def reached(self, reached: Reached) -> None:
        """Write now and then how far a long wait is, and once how long the whole run will take."""
        self._foresee(reached)
        if wait := self._waits.due(reached):
            self.wait(wait)

    def _foresee(self, reached: Reached) -> None:
        """Follow the run; say once, as soon as the pace is known, how long all of it will take."""
        if self.forecast is None:
            return
        self.forecast.take(reached)
        if not self._foretold and (left := self.forecast.left) is not None:
            self._foretold = True
            self.tell(f"about {numbers.duration(left)} to the end of the run, at this pace")

    @property
    def seconds_left(self) -> float | None:
        """Return the remaining seconds of the run; None while they are not known."""
        return self.forecast.left if self.forecast else None

    def wait(self, wait: Wait) -> None:
        """Write a line about a wait."""
        self._write(str(wait))

    def part(self, name: str) -> None:
        """Start timing the next part of the iteration."""
        now = time.perf_counter()
        if self._part:
            self._iteration_seconds[self._part] += now - self._since
        self._part, self._since = name, now

    def metrics(self, groups: Sequence[Group], update: StepStats, state: State, version: int) -> dict[str, float]:
        """Return the metrics to record for an iteration; `version` is the policy version that was updated."""
        judged = self.judge_monitor.numbers(state.iteration, groups) if self.judge_monitor else {}
        found = iteration_metrics(groups, update, state, version) | judged
        return {name: value for name, value in found.items() if isfinite(value)}

    def finished(self, record: IterationRecord) -> None:
        """Print the committed iteration."""
        self.part("")
        for name, seconds in self._iteration_seconds.items():
            self.seconds[name] += seconds
        self.last_seconds = dict(self._iteration_seconds)
        self._iteration_seconds.clear()
        self.show(record, sum(self.last_seconds.values()))
        left_out = left_out_ids(rollout for group in record.groups for rollout in group.rollouts)
        if left_out != self._left_out:
            self.tell(left_out_text(left_out) if left_out else "all active skills fit into the prompt again")
            self._left_out = left_out
        for message in (*newly_set_aside(record), *without_own_reward(record, self._doubted)):
            self.tell(message)
        if alarm := alarm_text(record.iteration, record.metrics):
            self.warn(alarm)

    def warn(self, alarm: str) -> None:
        """Write an alarm."""
        self._write(alarm)

    def show(self, record: IterationRecord, spent: float) -> None:
        """Write one line for an iteration."""
        m = record.metrics
        change = f" ({pool_change(record.update.evolution.events)})" if record.update else ""
        money = self.judge_monitor.money(record.iteration) if self.judge_monitor else ""
        left = self.seconds_left if record.iteration < self._iterations else None
        self._write(
            f"{record.iteration:4d}/{self._iterations}  pass {numbers.percent(m.get('pass_rate')):>6}  "
            f"rubrics {numbers.percent(m.get('rubric_reward')):>6}{unguided(m)}  "
            f"groups {m['all_fail']:.0f} fail {m['mixed']:.0f} mixed {m['all_pass']:.0f} pass  "
            f"pool {m['pool']:.0f}{change}  skills {m['skills_shown']:.0f}  "
            f"coverage {numbers.percent(m.get('coverage'))}  {numbers.seconds(spent)}"
            + (f", about {numbers.duration(left)} left" if left is not None else "")
            + (f"  {money}" if money else "")
            + judge_note(m)
            + no_update(m)
        )


def unguided(metrics: Mapping[str, float]) -> str:
    """Return the rubrics' pass rate in rollouts without their skill, if other rollouts saw it."""
    return f" ({numbers.percent(metrics.get('unguided_rate'))} unguided)" if "guided_rate" in metrics else ""


def pool_change(events: Sequence[PoolEvent]) -> str:
    """Return how many pairs an update added or reopened, and how many it retired: `+2 -1`."""
    kinds = Counter(event.kind for event in events)
    return f"+{kinds['born'] + kinds['reopen']} -{kinds['retire']}"


def newly_set_aside(record: IterationRecord) -> list[str]:
    """Return a message for each task that this iteration set aside."""
    return [
        f"task {task} was set aside: infrastructure left {in_a_row} of its groups in a row incomplete; "
        f"it is tried again from iteration {iteration_of(until)} on"
        for task, (in_a_row, since, until) in record.state.get("set_aside", {}).items()
        if since == record.k
    ]


def without_own_reward(record: IterationRecord, told: set[str]) -> Iterator[str]:
    """Yield a message, once per task, if test.sh returned no reward for any attempt of a group."""
    for group in record.groups:
        reasons = Counter(rollout.reason for rollout in group.rollouts if rollout.reason)
        if len(group.rollouts) == reasons.total() > 0 and group.task.id not in told:
            told.add(group.task.id)
            yield (
                f"task {group.task.id}: its test.sh gave none of {reasons.total()} attempts a reward, all count as 0 "
                f"({reasons.most_common(1)[0][0]}); is the task sound? arise tasks check {group.task.directory}"
            )


def no_update(metrics: Mapping[str, float]) -> str:
    """Return why an iteration did not update the weights, or an empty string."""
    if metrics.get("bad_update"):
        return "  UPDATE SKIPPED: the loss or its gradient is not finite"
    return "  no update: nothing to learn from" if metrics.get("skipped") else ""


class JsonDisplay(Display):
    """Write one JSON object per line, for programs."""

    def tell(self, message: str) -> None:
        """Write a message that is not about an iteration."""
        self._write(json.dumps({"message": message}))

    def warn(self, alarm: str) -> None:
        """Write an alarm."""
        self._write(json.dumps({"alarm": alarm}))

    def wait(self, wait: Wait) -> None:
        """Write how far a wait is."""
        reached = wait.reached
        facts = {"what": reached.what, "done": reached.done, "total": reached.total, "seconds_left": wait.left}
        self._write(json.dumps({"progress": facts}))

    def show(self, record: IterationRecord, spent: float) -> None:
        """Write an iteration with its metrics and the pool's events."""
        events = record.update.evolution.events if record.update else ()
        facts = {"iteration": record.iteration, "seconds": spent, "metrics": dict(record.metrics)}
        facts["seconds_left"] = self.seconds_left
        self._write(json.dumps(facts | {"events": [to_json(event) for event in events]}))
