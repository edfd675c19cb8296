"""How much of the pool has been evaluated on which task, and the discovery probability that follows (Eqs. 11-12)."""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from arise.method.arrays import Floats, finite, fraction, unique
from arise.method.columns import Columns
from arise.method.ledger import CAPABILITIES, require_format
from arise.types import Capability, Pool

FORMAT = 1


def coverage(evaluated_tasks: Mapping[str, int], capability_of: Mapping[str, Capability], task_count: int) -> float:
    """Eq. 11 — C_k from |{x : r_i in E_k(x)}| of each active rubric; every capability in the pool weighs the same."""
    if task_count < 1:
        raise ValueError(f"task_count = {task_count}: coverage needs at least one training task")
    unknown = sorted(set(evaluated_tasks) - set(capability_of))
    if unknown:
        known = ", ".join(capability_of) or "none"
        raise ValueError(f"evaluated_tasks names rubric {unknown[0]!r}, which is not active (active: {known})")
    shares: dict[Capability, list[float]] = {}
    for rubric_id, capability in capability_of.items():
        tasks = evaluated_tasks.get(rubric_id, 0)
        if not 0 <= tasks <= task_count:
            raise ValueError(
                f"evaluated_tasks[{rubric_id!r}] = {tasks} must be between 0 and task_count = {task_count}"
            )
        shares.setdefault(capability, []).append(tasks / task_count)
    if not shares:
        return 0.0
    return sum(sum(share) / len(share) for share in shares.values()) / len(shares)


def discovery_probability(coverage: float, min_discovery: float = 0.1) -> float:
    """Eq. 12 — rho_k = max(rho_min, 1 - C_k)."""
    return max(fraction("min_discovery", min_discovery), 1.0 - fraction("coverage", coverage))


def inverse_attempt_weights(attempts_X: ArrayLike) -> Floats:
    """App. "Coverage and Discovery" — weights 1 / (1 + a_x)."""
    attempts_X = finite("attempts_X", attempts_X)
    if (attempts_X < 0).any():
        place = int(np.flatnonzero(attempts_X < 0)[0])
        raise ValueError(f"attempts_X[{place}] = {attempts_X[place]} must not be negative")
    return 1.0 / (1.0 + attempts_X)


class CoverageMap:
    """E_k(x), which rubrics ever applied to x, and a_x, for every training task."""

    def __init__(self, task_ids: Sequence[str]) -> None:
        self.task_ids = unique("task_ids", task_ids)
        if not self.task_ids:
            raise ValueError("task_ids is empty: training needs at least one task")
        tasks = len(self.task_ids)
        self._index_of = {task_id: x for x, task_id in enumerate(self.task_ids)}
        self._columns = Columns()
        self._capability_of: dict[str, Capability] = {}
        self._evaluated_IX = np.zeros((0, tasks), dtype=np.bool_)
        self._applicable_IX = np.zeros((0, tasks), dtype=np.bool_)
        self._evaluated_tasks_I = np.zeros(0, dtype=np.int64)
        self._evaluated_rubrics_X = np.zeros(tasks, dtype=np.int32)
        self._applicable_rubrics_CX = np.zeros((len(CAPABILITIES), tasks), dtype=np.int32)
        self.attempts_X = np.zeros(tasks, dtype=np.int64)

    def index(self, task_id: str) -> int:
        """Return the position of a training task; an id that is not one is an error."""
        try:
            return self._index_of[task_id]
        except KeyError:
            raise ValueError(f"task {task_id!r} is not among the {len(self.task_ids)} training tasks") from None

    def coverage(self) -> float:
        """C_k of the current pool."""
        counts = self._evaluated_tasks_I[self._columns.of(self._capability_of)]
        evaluated_tasks = dict(zip(self._capability_of, counts.tolist(), strict=True))
        return coverage(evaluated_tasks, self._capability_of, len(self.task_ids))

    def outstanding(self) -> NDArray[np.bool_]:
        """Discovery candidates: tasks with an active rubric not in E_k(x); with an empty pool, every task."""
        if not self._capability_of:
            return np.ones(len(self.task_ids), dtype=np.bool_)
        return self._evaluated_rubrics_X < len(self._capability_of)

    def applicable(self, capability: Capability) -> NDArray[np.bool_]:
        """Tasks with prior applicable evidence from an active rubric of `capability`."""
        rubrics_X: NDArray[np.int32] = self._applicable_rubrics_CX[CAPABILITIES.index(capability)]
        return rubrics_X > 0

    def capabilities_with_evidence(self, x: int) -> list[Capability]:
        """Return the capabilities for which the task at position `x` has applicable evidence from an active rubric."""
        return [CAPABILITIES[c] for c in np.flatnonzero(self._applicable_rubrics_CX[:, x]).tolist()]

    def observe(
        self, task_id: str, rubric_ids: Sequence[str], valid_I: ArrayLike, applicable_I: ArrayLike
    ) -> list[Capability]:
        """Record one complete group: a_x + 1, rubrics evaluated by all its rollouts, rubrics that applied to any.

        Returns the capabilities for which the task now has its first applicable evidence.
        """
        x = self.index(task_id)
        columns = np.array(self._columns.of(unique("rubric_ids", rubric_ids)), dtype=np.intp)
        valid_I, applicable_I = np.asarray(valid_I, dtype=np.bool_), np.asarray(applicable_I, dtype=np.bool_)
        if not columns.shape == valid_I.shape == applicable_I.shape:
            raise ValueError(
                f"valid_I {valid_I.shape} and applicable_I {applicable_I.shape} must fit {len(columns)} rubrics"
            )
        self.attempts_X[x] += 1
        newly_valid = columns[valid_I & ~self._evaluated_IX[columns, x]]
        self._evaluated_IX[newly_valid, x] = True
        self._evaluated_tasks_I[newly_valid] += 1
        self._evaluated_rubrics_X[x] += len(newly_valid)
        newly_applicable = np.flatnonzero(applicable_I & ~self._applicable_IX[columns, x])
        self._applicable_IX[columns[newly_applicable], x] = True
        before = self.capabilities_with_evidence(x)
        for i in newly_applicable.tolist():
            self._applicable_rubrics_CX[CAPABILITIES.index(self._capability_of[rubric_ids[i]]), x] += 1
        return [capability for capability in self.capabilities_with_evidence(x) if capability not in before]

    def keep_only(self, pool: Pool) -> None:
        """Drop the records of retired rubrics; no task has been evaluated by the new ones yet."""
        self._set_rubrics({rubric.id: rubric.capability for rubric in pool.rubrics})

    def to_dict(self) -> dict[str, Any]:
        """Return the whole state as JSON values; tasks by position, with a digest of the corpus."""
        columns = self._columns.of(self._capability_of)
        seen = np.flatnonzero(self.attempts_X)
        return {
            "format": FORMAT,
            "tasks": self._digest(),
            "rubrics": [[i, capability.value] for i, capability in self._capability_of.items()],
            "attempts": [seen.tolist(), self.attempts_X[seen].tolist()],
            "evaluated": [np.flatnonzero(self._evaluated_IX[n]).tolist() for n in columns],
            "applicable": [np.flatnonzero(self._applicable_IX[n]).tolist() for n in columns],
        }

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Restore from `to_dict`; raise if the format or the corpus differs."""
        require_format("coverage", saved, FORMAT)
        if saved["tasks"] != self._digest():
            raise ValueError(
                "coverage state belongs to another set of training tasks: resume with the tasks it began with"
            )
        self._set_rubrics({})
        self._set_rubrics({i: Capability(capability) for i, capability in saved["rubrics"]})
        self.attempts_X[:] = 0
        seen, attempts = saved["attempts"]
        self.attempts_X[seen] = attempts
        columns = self._columns.of(self._capability_of)
        for n, evaluated, applicable in zip(columns, saved["evaluated"], saved["applicable"], strict=True):
            self._evaluated_IX[n, evaluated] = True
            self._applicable_IX[n, applicable] = True
            self._evaluated_tasks_I[n] = len(evaluated)
            self._evaluated_rubrics_X[evaluated] += 1
        for capability, n in zip(self._capability_of.values(), columns, strict=True):
            self._applicable_rubrics_CX[CAPABILITIES.index(capability)] += self._applicable_IX[n]

    def _set_rubrics(self, capability_of: Mapping[str, Capability]) -> None:
        leaving = {self._columns.of([i])[0]: c for i, c in self._capability_of.items() if i not in capability_of}
        for n, capability in leaving.items():
            self._evaluated_rubrics_X -= self._evaluated_IX[n]
            self._applicable_rubrics_CX[CAPABILITIES.index(capability)] -= self._applicable_IX[n]
        freed = self._columns.keep_only(tuple(capability_of))
        self._evaluated_IX[freed], self._applicable_IX[freed], self._evaluated_tasks_I[freed] = False, False, 0
        self._capability_of = dict(capability_of)
        more = self._columns.width - len(self._evaluated_IX)
        if more > 0:
            self._evaluated_IX = np.pad(self._evaluated_IX, ((0, more), (0, 0)))
            self._applicable_IX = np.pad(self._applicable_IX, ((0, more), (0, 0)))
            self._evaluated_tasks_I = np.pad(self._evaluated_tasks_I, (0, more))

    def _digest(self) -> str:
        return blake2b("\n".join(self.task_ids).encode(), digest_size=16).hexdigest()
