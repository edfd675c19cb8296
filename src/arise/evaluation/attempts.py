"""Held-out attempts: every task M times, never with an evolved skill, infrastructure failures beside the score."""

import asyncio
import json
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
        return pooled_pass_rate(self.successes, self.attempts)

    @property
    def interval(self) -> tuple[float, float]:
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
    keys = [(task, files, a) for task, files in tasks for a in range(attempts)]
    rollouts = await asyncio.gather(
        *(collector.attempt(task, files, (), f"eval/{label}/{task.id}/{a}") for task, files, a in keys)
    )
    passes: dict[str, list[int]] = defaultdict(list)
    rows = []
    for (task, _, a), rollout in zip(keys, rollouts, strict=True):
        verdicts: dict[str, str] = {}
        if judge and pool and pool.pairs and not rollout.fault:
            judgment = await judge.judge(task, rollout, pool)
            verdicts = {i: verdict.value for i, verdict in judgment.verdicts.items()}
            for i, verdict in judgment.verdicts.items():
                if verdict is not Verdict.NOT_APPLICABLE:
                    passes[i].append(verdict is Verdict.PASS)
        leaked = _leaked_bytes(rollout, skill_texts)
        kind = task.task_types[0] if task.task_types else ""
        success = None if rollout.success is None else int(rollout.success)
        head = (label, task.id, a, iteration, task.domain, kind, success, rollout.reward)
        rows.append((*head, rollout.trajectory.stop.value, rollout.fault, leaked, json.dumps(verdicts)))
    store.save_attempts(rows)
    valid = [
        (task.domain, bool(r.success)) for (task, _, _), r in zip(keys, rollouts, strict=True) if r.success is not None
    ]
    by_domain: dict[str, tuple[int, int]] = {}
    for domain, success in valid:
        won, all_attempts = by_domain.get(domain, (0, 0))
        by_domain[domain] = won + success, all_attempts + 1
    leaked_bytes = sum(int(row[-2]) for row in rows)
    rates = {i: sum(values) / len(values) for i, values in passes.items()}
    return Evaluation(
        label, sum(s for _, s in valid), len(valid), len(keys) - len(valid), by_domain, leaked_bytes, rates
    )


def _leaked_bytes(rollout: Rollout, skill_texts: Sequence[str]) -> int:
    """Bytes of evolved skills found in an evaluation prompt; the proof is that this is 0."""
    return sum(len(text.encode()) for text in skill_texts if text and text in rollout.trajectory.system_prompt)
