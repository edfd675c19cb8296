"""VADE's sampler (arXiv 2511.18902): Thompson draws of each task's success probability, top B by information gain."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from arise.config.sampler import VadeSampling
from arise.method.arrays import Floats, unique
from arise.method.ledger import require_format
from arise.method.sampler import cell_weight, pass_estimates
from arise.types import Draw, DrawPath, Group, Pool, Task

FORMAT = 1


class Vade:
    """Keep alpha and beta per task from verified outcomes; select the top B of one posterior draw."""

    def __init__(
        self, tasks: Sequence[Task], random: np.random.Generator, settings: VadeSampling | None = None
    ) -> None:
        self.settings = settings or VadeSampling()
        self.random = random
        self.task_ids = unique("tasks", (task.id for task in tasks))
        self._index_of = {task_id: x for x, task_id in enumerate(self.task_ids)}
        self._successes_X = np.zeros(len(self.task_ids))
        self._failures_X = np.zeros(len(self.task_ids))
        self._version_X = np.zeros(len(self.task_ids), dtype=np.int64)

    def posterior(self, version: int) -> tuple[Floats, Floats]:
        """Return alpha and beta of every task at `version`; each version without a draw decays them once."""
        decay_X = self.settings.unobserved_decay ** self._elapsed(self._version_X, version)
        return self._successes_X * decay_X, self._failures_X * decay_X

    def draw(self, count: int, version: int, unavailable: Collection[str] = ()) -> list[Draw]:
        """Return the `count` available tasks whose drawn p has the largest gain p (1 - p)^2, best first."""
        if count < 1:
            raise ValueError(f"count = {count}: a batch has at least one task")
        estimates_X = pass_estimates(*self.posterior(version), self.random)
        gain_X = cell_weight(estimates_X)
        gain_X[[self._index(task_id) for task_id in unavailable]] = -1.0
        slots = min(count, int((gain_X >= 0.0).sum()))
        best = top(gain_X, slots)
        return [
            Draw(self.task_ids[x], DrawPath.VADE, 1.0, estimate=float(estimates_X[x]), weight=float(gain_X[x]))
            for x in best
        ]

    def observe(self, groups: Sequence[Group], pool: Pool, version: int) -> None:  # noqa: ARG002
        """Count verified successes and failures; rollouts without a reward count as neither."""
        for group in groups:
            outcomes = [rollout.success for rollout in group.rollouts if rollout.success is not None]
            if not outcomes:
                continue
            x = self._index(group.task.id)
            elapsed = int(self._elapsed(self._version_X[x], version))
            factor = self.settings.observed_decay * self.settings.unobserved_decay ** (elapsed - 1) if elapsed else 1.0
            self._successes_X[x] = factor * self._successes_X[x] + sum(outcomes)
            self._failures_X[x] = factor * self._failures_X[x] + len(outcomes) - sum(outcomes)
            self._version_X[x] = version

    def keep_only(self, pool: Pool) -> None:
        """Do nothing: VADE ignores the pool."""

    def to_dict(self) -> dict[str, Any]:
        """Return the tasks with evidence, and the generator state."""
        seen = np.flatnonzero(self._successes_X + self._failures_X)
        arrays = (self._successes_X, self._failures_X, self._version_X)
        return {
            "format": FORMAT,
            "kind": self.settings.kind,
            "generator": self.random.bit_generator.state,
            "tasks": [[self.task_ids[x], *(array[x].item() for array in arrays)] for x in seen],
        }

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Continue from the state that `to_dict` saved."""
        require_format("VADE sampler", saved, FORMAT, self.settings.kind)
        for array in (self._successes_X, self._failures_X, self._version_X):
            array[:] = 0
        for task_id, successes, failures, version in saved["tasks"]:
            x = self._index(task_id)
            self._successes_X[x], self._failures_X[x], self._version_X[x] = successes, failures, version
        self.random.bit_generator.state = saved["generator"]

    def _index(self, task_id: str) -> int:
        try:
            return self._index_of[task_id]
        except KeyError:
            raise ValueError(f"task {task_id!r} is not among the {len(self.task_ids)} training tasks") from None

    def _elapsed(self, last: Any, version: int) -> Any:
        elapsed = version - last
        if np.any(elapsed < 0):
            raise ValueError(
                f"version = {version} is older than evidence of version {int(np.max(last))}: versions only grow"
            )
        return elapsed


def top(gain_X: Floats, count: int) -> list[int]:
    """Return the positions of the `count` largest gains, largest first."""
    if count < 1:
        return []
    best = np.argpartition(gain_X, len(gain_X) - count)[len(gain_X) - count :]
    return [int(x) for x in best[np.argsort(-gain_X[best], kind="stable")]]
