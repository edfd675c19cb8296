"""What a person sees while a run goes on: one plain line an iteration, and where its time went."""

import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isfinite, nan

import numpy as np

from arise.evaluation.internalisation import by_guidance, of_the_watch
from arise.method.sampler import CapabilitySampler
from arise.observe.trust import Trust, alarm_text
from arise.rollouts.guidance import left_out_ids, left_out_text
from arise.run.record import IterationRecord
from arise.state import State
from arise.types import Group, PoolEvent, StepStats, Verdict
from arise.types.codec import to_json


class Display:
    """Times the parts of an iteration and prints it when it is committed; it never touches the run."""

    def __init__(self, write: Callable[[str], None], iterations: int) -> None:
        self._write, self._iterations = write, iterations
        self._part, self._since = "", time.perf_counter()
        self.seconds: dict[str, float] = defaultdict(float)
        self._iteration_seconds: dict[str, float] = defaultdict(float)
        self.last_seconds: dict[str, float] = {}
        self.trust: Trust | None = None
        self._left_out: list[str] = []
        self._doubted: set[str] = set()

    def tell(self, message: str) -> None:
        """A line that is not about an iteration."""
        self._write(message)

    def part(self, name: str) -> None:
        """The loop goes on to another part of its work."""
        now = time.perf_counter()
        if self._part:
            self._iteration_seconds[self._part] += now - self._since
        self._part, self._since = name, now

    def metrics(self, groups: Sequence[Group], update: StepStats, state: State, version: int) -> dict[str, float]:
        """The numbers of an iteration that its record keeps; `version` is the policy that was updated.

        A rate of nothing is left out: where no group is complete or no rubric was judged, there is no 0 %.
        """
        complete = [group for group in groups if group.complete]
        outcomes = [bool(rollout.success) for group in complete for rollout in group.rollouts]
        verdicts = [v for g in groups for r in g.rollouts if r.judgment for v in r.judgment.verdicts.values()]
        applicable = [v for v in verdicts if v is not Verdict.NOT_APPLICABLE]
        wins = [sum(bool(r.success) for r in group.rollouts) for group in complete]
        sampler = state.sampler
        found = (
            by_guidance(groups)
            | of_the_watch(groups)
            | _staleness(complete, version)
            | _set_aside(state)
            | {
                "pass_rate": _mean(outcomes),
                "rubric_reward": _mean([v is Verdict.PASS for v in applicable]),
                "all_fail": sum(win == 0 for win in wins),
                "all_pass": sum(win == group.size for win, group in zip(wins, complete, strict=True)),
                "mixed": sum(0 < win < group.size for win, group in zip(wins, complete, strict=True)),
                "incomplete": len(groups) - len(complete),
                "without_own_reward": sum(bool(r.reason) for g in groups for r in g.rollouts) or nan,
                "pool": len(state.pool),
                "skills_shown": sum(pair.skill.active for pair in state.pool.pairs),
                "skills_left_out": len(left_out_ids(rollout for g in groups for rollout in g.rollouts)) or nan,
                "coverage": sampler.coverage.coverage() if isinstance(sampler, CapabilitySampler) else nan,
                "turns": _mean([len(r.trajectory.turns) for g in complete for r in g.rollouts]),
                "loss": update.loss,
                "grad_norm": update.grad_norm,
                "kept_share": update.kept_tokens / max(update.generated_tokens, 1),
                "generated_tokens": update.generated_tokens,
                "skipped": float(bool(update.skipped)),
                "bad_update": float(not (isfinite(update.loss) and isfinite(update.grad_norm))),
            }
            | (self.trust.numbers(state.iteration, groups) if self.trust else {})
        )
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
        if alarm := alarm_text(record.k + 1, record.metrics):
            self.warn(alarm)

    def warn(self, alarm: str) -> None:
        """Something a person should look at."""
        self._write(alarm)

    def show(self, record: IterationRecord, spent: float) -> None:
        """One line for an iteration."""
        m = record.metrics
        change = f" ({pool_change(record.update.evolution.events)})" if record.update else ""
        money = self.trust.money(record.k + 1) if self.trust else ""
        self._write(
            f"{record.k + 1:4d}/{self._iterations}  pass {percent(m.get('pass_rate')):>5} %  "
            f"rubrics {share(m.get('rubric_reward')):>4}{unguided(m)}  "
            f"groups {m['all_fail']:.0f} fail {m['mixed']:.0f} mixed {m['all_pass']:.0f} pass  "
            f"pool {m['pool']:.0f}{change}  skills {m['skills_shown']:.0f}  "
            f"coverage {share(m.get('coverage'))}  {spent:.1f} s" + (f"  {money}" if money else "") + no_update(m)
        )


def percent(rate: float | None) -> str:
    """A rate of an iteration; dashes where there was nothing to take it of."""
    return "--" if rate is None else f"{100 * rate:.1f}"


def share(rate: float | None) -> str:
    """The same between 0 and 1."""
    return "--" if rate is None else f"{rate:.2f}"


def unguided(metrics: Mapping[str, float]) -> str:
    """The rubrics' rate of rollouts without their skill, where others saw it."""
    return f" ({share(metrics.get('unguided_rate'))} unguided)" if "guided_rate" in metrics else ""


def pool_change(events: Sequence[PoolEvent]) -> str:
    """How many pairs an update brought into the pool, or back into it, and how many it retired."""
    kinds = Counter(event.kind for event in events)
    return f"+{kinds['born'] + kinds['reopen']} -{kinds['retire']}"


def newly_set_aside(record: IterationRecord) -> list[str]:
    """What a person is told about tasks that this iteration set aside."""
    return [
        f"task {task} was set aside: infrastructure left {in_a_row} of its groups in a row incomplete; "
        f"it is tried again from iteration {until + 1} on"
        for task, (in_a_row, since, until) in record.state.get("set_aside", {}).items()
        if since == record.k
    ]


def without_own_reward(record: IterationRecord, told: set[str]) -> Iterator[str]:
    """What a person is told, once per task, about tests that gave no attempt of a group a reward of their own."""
    for group in record.groups:
        reasons = Counter(rollout.reason for rollout in group.rollouts if rollout.reason)
        if len(group.rollouts) == reasons.total() > 0 and group.task.id not in told:
            told.add(group.task.id)
            yield (
                f"task {group.task.id}: its test.sh gave none of {reasons.total()} attempts a reward, all count as 0 "
                f"({reasons.most_common(1)[0][0]}); is the task sound? arise tasks check {group.task.directory}"
            )


def no_update(metrics: Mapping[str, float]) -> str:
    """Why an iteration left the weights as they were."""
    if metrics.get("bad_update"):
        return "  UPDATE SKIPPED: the loss or its gradient is not finite"
    return "  no update: nothing to learn from" if metrics.get("skipped") else ""


class JsonDisplay(Display):
    """One JSON object a line, for programs."""

    def tell(self, message: str) -> None:
        """A line that is not about an iteration."""
        self._write(json.dumps({"message": message}))

    def warn(self, alarm: str) -> None:
        """Something a person should look at."""
        self._write(json.dumps({"alarm": alarm}))

    def show(self, record: IterationRecord, spent: float) -> None:
        """An iteration with its numbers and the pool's events."""
        events = record.update.evolution.events if record.update else ()
        facts = {"iteration": record.k + 1, "seconds": spent, "metrics": dict(record.metrics)}
        self._write(json.dumps(facts | {"events": [to_json(event) for event in events]}))


def _set_aside(state: State) -> dict[str, float]:
    """How many tasks the next iteration does without; nothing where it has them all."""
    away = len(state.set_aside.away(state.iteration))
    return {"set_aside": float(away)} if away else {}


def _staleness(groups: Sequence[Group], version: int) -> dict[str, float]:
    """How many versions before `version` the tokens that were learned from had been sampled."""
    rows = [row for group in groups for rollout in group.rollouts for row in rollout.trajectory.rows]
    ages = np.concatenate([np.zeros(0), *(version - row.version_U[row.generated_U] for row in rows)])
    return {"staleness": float(ages.mean()) if len(ages) else 0.0, "max_staleness": float(ages.max(initial=0.0))}


def _mean(values: Sequence[float]) -> float:
    return float(sum(values)) / len(values) if values else nan
