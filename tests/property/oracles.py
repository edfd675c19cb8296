"""Slow, literal versions of the paper's bookkeeping, to compare the arrays with."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from arise.types import Capability
from tests.builders import Floats


class SlowLedger:
    """Eqs. 9, 10 and 20 with one dictionary entry for each (d, i), and a loop over the versions that passed."""

    def __init__(self, observed_decay: float, unobserved_decay: float) -> None:
        self.observed_decay, self.unobserved_decay = observed_decay, unobserved_decay
        self.mass: dict[tuple[str, str], tuple[float, float, int]] = {}
        self.capability_of: dict[str, Capability] = {}

    def keep_only(self, capability_of: Mapping[str, Capability]) -> None:
        self.capability_of = dict(capability_of)
        self.mass = {key: value for key, value in self.mass.items() if key[1] in capability_of}

    def observe(self, task_types: Sequence[str], rubric_ids: Sequence[str], verdict_IJ: Floats, version: int) -> None:
        new: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        for column in verdict_IJ.T:
            applicable = {i: y for i, y in zip(rubric_ids, column, strict=True) if not np.isnan(y)}
            for i, y in applicable.items():
                peers = sum(self.capability_of[other] == self.capability_of[i] for other in applicable)
                new[i][0] += y / peers
                new[i][1] += (1 - y) / peers
        for task_type in task_types:
            for i, (passes, fails) in new.items():
                old_passes, old_fails, last = self.mass.get((task_type, i), (0.0, 0.0, version))
                for passed in range(last + 1, version + 1):
                    factor = self.observed_decay if passed == version else self.unobserved_decay
                    old_passes, old_fails = old_passes * factor, old_fails * factor
                self.mass[task_type, i] = (old_passes + passes, old_fails + fails, version)

    def cell(self, task_type: str, capability: Capability, version: int) -> tuple[float, float]:
        total = [0.0, 0.0]
        for (d, i), (passes, fails, last) in self.mass.items():
            if d == task_type and self.capability_of[i] == capability:
                for _ in range(last, version):
                    passes, fails = passes * self.unobserved_decay, fails * self.unobserved_decay
                total[0] += passes
                total[1] += fails
        return total[0], total[1]


class SlowCoverage:
    """Eq. 11 with sets: E(x), the rubrics that ever applied to x, and a_x."""

    def __init__(self, task_ids: Sequence[str]) -> None:
        self.evaluated: dict[str, set[str]] = {task_id: set() for task_id in task_ids}
        self.applied: dict[str, set[str]] = {task_id: set() for task_id in task_ids}
        self.attempts = dict.fromkeys(task_ids, 0)
        self.capability_of: dict[str, Capability] = {}

    def keep_only(self, capability_of: Mapping[str, Capability]) -> None:
        self.capability_of = dict(capability_of)
        for rubrics in (*self.evaluated.values(), *self.applied.values()):
            rubrics &= set(capability_of)

    def observe(self, task_id: str, valid: set[str], applicable: set[str]) -> None:
        self.attempts[task_id] += 1
        self.evaluated[task_id] |= valid
        self.applied[task_id] |= applicable

    def coverage(self) -> float:
        present = set(self.capability_of.values())
        if not present:
            return 0.0
        total = 0.0
        for evaluated in self.evaluated.values():
            for capability in present:
                of_capability = {i for i, c in self.capability_of.items() if c == capability}
                total += len(evaluated & of_capability) / len(of_capability)
        return total / (len(self.evaluated) * len(present))

    def outstanding(self) -> list[bool]:
        active = set(self.capability_of)
        return [not active or not active <= evaluated for evaluated in self.evaluated.values()]

    def applicable(self, capability: Capability) -> list[bool]:
        of_capability = {i for i, c in self.capability_of.items() if c == capability}
        return [bool(applied & of_capability) for applied in self.applied.values()]
