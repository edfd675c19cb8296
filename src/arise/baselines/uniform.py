"""Uniform task sampling: every task once per epoch, in shuffled order."""

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from arise.method.arrays import unique
from arise.method.ledger import require_format
from arise.types import Draw, DrawPath, Group, Pool, Task

FORMAT = 1


class Uniform:
    """Iterate over a shuffled corpus and reshuffle at its end; a batch never contains a task twice."""

    def __init__(self, tasks: Sequence[Task], random: np.random.Generator) -> None:
        self.task_ids = unique("tasks", (task.id for task in tasks))
        self.random = random
        self._queue: deque[int] = deque()

    def draw(self, count: int, version: int, unavailable: Collection[str] = ()) -> list[Draw]:  # noqa: ARG002
        """Return the next `count` available tasks of the epoch, fewer if the corpus has fewer."""
        if count < 1:
            raise ValueError(f"count = {count}: a batch has at least one task")
        blocked = set(unavailable)
        if unknown := sorted(blocked.difference(self.task_ids)):
            raise ValueError(f"task {unknown[0]!r} is not among the {len(self.task_ids)} training tasks")
        slots = min(count, len(self.task_ids) - len(blocked))
        draws: list[Draw] = []
        passed_over: list[int] = []
        while len(draws) < slots:
            if not self._queue:
                self._queue.extend(self.random.permutation(len(self.task_ids)).tolist())
            x = self._queue.popleft()
            if self.task_ids[x] in blocked:
                passed_over.append(x)
                continue
            blocked.add(self.task_ids[x])
            draws.append(Draw(self.task_ids[x], DrawPath.UNIFORM, 1.0 / len(self.task_ids)))
        # A task excluded for several epochs is due once, not once per epoch.
        owed = [x for x in dict.fromkeys(passed_over) if x not in self._queue]
        self._queue.extendleft(reversed(owed))
        return draws

    def observe(self, groups: Sequence[Group], pool: Pool, version: int) -> None:
        """Do nothing: uniform sampling does not learn."""

    def keep_only(self, pool: Pool) -> None:
        """Do nothing: uniform sampling ignores the pool."""

    def to_dict(self) -> dict[str, Any]:
        """Return the rest of the epoch and the generator state."""
        return {
            "format": FORMAT,
            "kind": "uniform",
            "generator": self.random.bit_generator.state,
            "queue": [self.task_ids[x] for x in self._queue],
        }

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Continue from the state that `to_dict` saved."""
        require_format("uniform sampler", saved, FORMAT, "uniform")
        position = {task_id: x for x, task_id in enumerate(self.task_ids)}
        unknown = [task_id for task_id in saved["queue"] if task_id not in position]
        if unknown:
            raise ValueError(f"uniform sampler state names task {unknown[0]!r}, which is not among the training tasks")
        self._queue = deque(position[task_id] for task_id in saved["queue"])
        self.random.bit_generator.state = saved["generator"]
