"""The sampler as one writes it first: dictionaries, sets, a scan of the corpus for every slot. For comparison only."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from arise.types import Capability, Group, Pool, Task, Verdict

DECAY_OBSERVED, DECAY_UNOBSERVED, MIN_DISCOVERY, QUOTA_FRACTION = 0.2, 0.999, 0.1, 0.25


class PlainSampler:
    """Eqs. 9-14 and 20 literally, with the same inputs and the same kind of result as `CapabilitySampler`."""

    def __init__(self, tasks: Sequence[Task], random: np.random.Generator, pool: Pool) -> None:
        self.tasks, self.random, self.pool = tasks, random, pool
        self.mass: dict[tuple[str, str], tuple[float, float, int]] = {}
        self.evaluated: dict[str, set[str]] = {task.id: set() for task in tasks}
        self.applied: dict[str, set[Capability]] = {task.id: set() for task in tasks}
        self.attempts = dict.fromkeys(self.evaluated, 0)
        self.by_capability: dict[Capability, set[str]] = defaultdict(set)
        for rubric in pool.rubrics:
            self.by_capability[rubric.capability].add(rubric.id)

    def coverage(self) -> float:
        """Eq. 11 over every task and capability."""
        total = 0.0
        for evaluated in self.evaluated.values():
            for rubrics in self.by_capability.values():
                total += len(evaluated & rubrics) / len(rubrics)
        return total / (len(self.tasks) * len(self.by_capability))

    def draw(self, count: int, version: int) -> list[str]:
        """One slot after the other."""
        rho = max(MIN_DISCOVERY, 1.0 - self.coverage())
        quota = dict.fromkeys(self.cells(set()), max(1, int(np.ceil(QUOTA_FRACTION * count))))
        taken: set[str] = set()
        for _ in range(count):
            open_tasks = [task for task in self.tasks if task.id not in taken]
            candidates = [task for task in open_tasks if len(self.evaluated[task.id]) < len(self.pool)]
            cells = {cell: members for cell, members in self.cells(taken).items() if quota[cell] > 0}
            if candidates and (self.random.random() < rho or not cells):
                taken.add(self.by_attempts(candidates))
            elif cells:
                weights = []
                for task_type, capability in cells:
                    passes, fails = self.cell(task_type, capability, version)
                    estimate = self.random.beta(1 + passes, 1 + fails)
                    weights.append(estimate * (1 - estimate) ** 2)
                chosen = list(cells)[self.random.choice(len(cells), p=np.array(weights) / sum(weights))]
                quota[chosen] -= 1
                taken.add(cells[chosen][self.random.integers(len(cells[chosen]))])
            else:
                taken.add(self.by_attempts(open_tasks))
        return list(taken)

    def by_attempts(self, tasks: Sequence[Task]) -> str:
        """A task with probability proportional to 1 / (1 + a_x)."""
        weights = np.array([1 / (1 + self.attempts[task.id]) for task in tasks])
        return tasks[self.random.choice(len(tasks), p=weights / weights.sum())].id

    def cells(self, taken: set[str]) -> dict[tuple[str, Capability], list[str]]:
        """The open members of every cell, from a scan of the corpus."""
        members: dict[tuple[str, Capability], list[str]] = defaultdict(list)
        for task in self.tasks:
            if task.id not in taken:
                for capability in self.applied[task.id]:
                    for task_type in task.task_types:
                        members[task_type, capability].append(task.id)
        return members

    def cell(self, task_type: str, capability: Capability, version: int) -> tuple[float, float]:
        """S and F of a cell, summed over its rubrics."""
        total_passes = total_fails = 0.0
        for rubric_id in self.by_capability[capability]:
            passes, fails, last = self.mass.get((task_type, rubric_id), (0.0, 0.0, version))
            total_passes += passes * DECAY_UNOBSERVED ** (version - last)
            total_fails += fails * DECAY_UNOBSERVED ** (version - last)
        return total_passes, total_fails

    def observe(self, groups: Sequence[Group], version: int) -> None:
        """Evidence, coverage and attempts of complete groups."""
        for group in groups:
            self.attempts[group.task.id] += 1
            new: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
            valid: dict[str, int] = defaultdict(int)
            for rollout in group.rollouts:
                verdicts = rollout.judgment.verdicts if rollout.judgment else {}
                for rubrics in self.by_capability.values():
                    speaking = [i for i in rubrics if verdicts.get(i) in (Verdict.PASS, Verdict.FAIL)]
                    for i in speaking:
                        new[i][verdicts[i] is Verdict.FAIL] += 1 / len(speaking)
                for i in verdicts:
                    valid[i] += 1
            self.evaluated[group.task.id] |= {i for i, number in valid.items() if number == group.size}
            self.applied[group.task.id] |= {r.capability for r in self.pool.rubrics if r.id in new}
            for task_type in group.task.task_types:
                for i, (passes, fails) in new.items():
                    old_passes, old_fails, last = self.mass.get((task_type, i), (0.0, 0.0, version))
                    gap = version - last
                    factor = DECAY_OBSERVED * DECAY_UNOBSERVED ** (gap - 1) if gap else 1.0
                    self.mass[task_type, i] = (factor * old_passes + passes, factor * old_fails + fails, version)
