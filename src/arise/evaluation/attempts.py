"""Held-out attempts: every task M times, never with an evolved skill, infrastructure failures beside the score."""

import asyncio
import json
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from arise.evaluation.metrics import pooled_pass_rate, wilson_interval
from arise.ports import Judge
from arise.rollouts.collect import Collector, TaskFiles
from arise.store import RunStore
from arise.types import Pool, Rollout, Task, Verdict


@dataclass(frozen=True)
class Evaluation:
    """The score of one evaluation — `Evaluation("before", 12, 120, 0, {...})`; faults are not counted as failures."""

    label: str
    successes: int
    attempts: int
    faults: int
    by_domain: dict[str, tuple[int, int]]
    skill_bytes: int
    behaviour_rates: dict[str, float]

    @property
    def rate(self) -> float:
        """In percent; not a number when infrastructure ended every attempt."""
        return pooled_pass_rate(self.successes, self.attempts) if self.attempts else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        if not self.attempts:
            return 0.0, 100.0
        low, high = wilson_interval(self.successes, self.attempts)
        return 100.0 * low, 100.0 * high

    def line(self) -> str:
        """One line for a person."""
        low, high = self.interval
        return (
            f"{self.label}: {self.rate:.1f} % ({self.successes}/{self.attempts}, 95 % {low:.1f}-{high:.1f}), "
            f"{self.faults} infrastructure faults left out, {self.skill_bytes} evolved-skill bytes in the prompts"
        )


async def evaluate(
    label: str,
    iteration: int,
    collector: Collector,
    tasks: Sequence[tuple[Task, TaskFiles]],
    attempts: int,
    store: RunStore,
    judge: Judge | None = None,
    pool: Pool | None = None,
    skill_texts: Sequence[str] = (),
) -> Evaluation:
    """Run and record N x M attempts; `pool` may hold rubrics to judge unguided behaviour by, it is never shown."""

    async def one(task: Task, files: TaskFiles, attempt: int) -> tuple[object, ...]:
        rollout = await collector.attempt(task, files, (), f"eval/{label}/{task.id}/{attempt}")
        verdicts = {}
        if judge and pool and pool.pairs and not rollout.fault:
            judgment = await judge.judge(task, rollout, pool)
            verdicts = {rubric_id: verdict.value for rubric_id, verdict in judgment.verdicts.items()}
        kind = task.task_types[0] if task.task_types else ""
        success = None if rollout.success is None else int(rollout.success)
        reward = None if rollout.reward is None else float(rollout.reward)
        head = (label, task.id, attempt, iteration, task.domain, kind, success, reward)
        leaked = _leaked_bytes(rollout, skill_texts)
        return (*head, rollout.trajectory.stop.value, rollout.fault, leaked, json.dumps(verdicts))

    rows = await asyncio.gather(*(one(*task, attempt) for task in tasks for attempt in range(attempts)))
    store.save_attempts(rows)
    found = stored_evaluation(label, store, len(tasks) * attempts)
    assert found is not None
    return found


def stored_evaluation(label: str, store: RunStore, wanted: int) -> Evaluation | None:
    """The score of attempts that are in the store; None unless all `wanted` of them are."""
    rows = store.query("SELECT domain, success, skill_bytes, verdicts FROM attempts WHERE label=?", (label,))
    if len(rows) != wanted:
        return None
    by_domain: dict[str, tuple[int, int]] = {}
    passes: dict[str, list[bool]] = defaultdict(list)
    for domain, success, _, verdicts in rows:
        if success is not None:
            won, tried = by_domain.get(domain, (0, 0))
            by_domain[domain] = won + success, tried + 1
        for rubric_id, verdict in json.loads(verdicts).items():
            if verdict != Verdict.NOT_APPLICABLE:
                passes[rubric_id].append(verdict == Verdict.PASS)
    valid = [success for _, success, _, _ in rows if success is not None]
    rates = {rubric_id: sum(values) / len(values) for rubric_id, values in passes.items()}
    leaked = sum(skill_bytes for _, _, skill_bytes, _ in rows)
    return Evaluation(label, sum(valid), len(valid), len(rows) - len(valid), by_domain, leaked, rates)


def _leaked_bytes(rollout: Rollout, skill_texts: Sequence[str]) -> int:
    """Bytes of evolved skills found in an evaluation prompt; the proof is that this is 0."""
    return sum(len(text.encode()) for text in skill_texts if text and text in rollout.trajectory.system_prompt)
