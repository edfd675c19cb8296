"""Write a sampler of your own: draw tasks whose success rate is near one half.

A class with these methods is a sampler. In a run: sampler.kind = "import", sampler.path = "own_sampler:Frontier".
Run: python examples/own_sampler.py
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from arise import Draw, DrawPath, Group, Pool, Rollout, Sampler, StopReason, Task, Trajectory


class Frontier:
    """Draws without replacement, in proportion to p (1 - p), where p is the smoothed success rate of a task."""

    def __init__(self, tasks: Sequence[Task], random: np.random.Generator) -> None:
        self.random = random
        self.counts = {task.id: [1, 2] for task in tasks}  # successes and attempts, with a uniform prior

    def draw(self, count: int, version: int, unavailable: Collection[str] = ()) -> list[Draw]:  # noqa: ARG002
        open_ids = [task_id for task_id in self.counts if task_id not in unavailable]
        rate = np.array([passed / tried for passed, tried in (self.counts[task_id] for task_id in open_ids)])
        chance = rate * (1 - rate) / (rate * (1 - rate)).sum()
        chosen = self.random.choice(len(open_ids), min(count, len(open_ids)), replace=False, p=chance)
        return [Draw(open_ids[x], DrawPath.ADAPTIVE, float(chance[x])) for x in chosen]

    def observe(self, groups: Sequence[Group], pool: Pool, version: int) -> None:  # noqa: ARG002
        for group in groups:
            if group.complete:  # an incomplete group teaches nothing: missing is not fail
                self.counts[group.task.id][0] += sum(bool(rollout.success) for rollout in group.rollouts)
                self.counts[group.task.id][1] += group.size

    def keep_only(self, pool: Pool) -> None:
        """Accept a pool update; this sampler does not look at rubrics."""

    def to_dict(self) -> dict[str, Any]:
        return {"counts": self.counts, "generator": self.random.bit_generator.state}

    def restore(self, saved: Mapping[str, Any]) -> None:
        self.counts = {task_id: list(pair) for task_id, pair in saved["counts"].items()}
        self.random.bit_generator.state = saved["generator"]


def played(task: Task, passed: int) -> Group:
    """Return a finished group of eight with this many successes."""
    ended = [Trajectory(f"{task.id}/{j}", task.id, (), StopReason.FINISHED) for j in range(8)]
    return Group(task, tuple(Rollout(t, float(j < passed), j < passed) for j, t in enumerate(ended)), 8)


if __name__ == "__main__":
    tasks = [Task(name, f"Do {name}.") for name in ("always-fails", "half", "always-passes")]
    sampler: Sampler = Frontier(tasks, np.random.default_rng(0))
    for version in range(10):
        sampler.observe([played(task, passed) for task, passed in zip(tasks, (0, 4, 8), strict=True)], Pool(), version)
    drawn = [sampler.draw(1, version)[0].task_id for version in range(1000)]
    print({task.id: drawn.count(task.id) for task in tasks})
