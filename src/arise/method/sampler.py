"""Capability-based adaptive sampling: discovery while coverage is low, then weak cells (App. "Adaptive Sampling")."""

from bisect import insort
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from arise.config.sampler import CapabilitySampling
from arise.method.arrays import Floats, fraction
from arise.method.coverage import CoverageMap, discovery_probability, inverse_attempt_weights
from arise.method.ledger import CAPABILITIES, Ledger, require_format
from arise.method.pass_rate import verdict_arrays
from arise.method.weighted_pick import WeightedPick
from arise.types import Capability, Cell, Draw, DrawPath, Group, Pool, Task

FORMAT = 1


def pass_estimates(passes: ArrayLike, fails: ArrayLike, random: np.random.Generator) -> Floats:
    """Eq. 13 — one draw p~ ~ Beta(1 + S, 1 + F) for each cell."""
    return random.beta(1.0 + np.asarray(passes, dtype=np.float64), 1.0 + np.asarray(fails, dtype=np.float64))


def cell_weight(p: ArrayLike) -> Floats:
    """Eq. 14 — w = p (1 - p)^2, largest at p = 1/3; `cell_probabilities` divides by its sum."""
    p = np.asarray(p, dtype=np.float64)
    if not ((p >= 0.0) & (p <= 1.0)).all():
        place = np.argwhere(~((p >= 0.0) & (p <= 1.0)))[0].tolist()
        raise ValueError(f"p{place or ''} = {p[tuple(place)]} must be a probability between 0 and 1")
    return p * (1.0 - p) ** 2


def cell_probabilities(weights: Floats) -> Floats:
    """Q of Eq. 14: w / sum of w; uniform in the one numerical case where every weight is 0."""
    total = weights.sum()
    return weights / total if total > 0.0 else np.full(len(weights), 1.0 / len(weights))


def cell_quota(batch_size: int, quota_fraction: float) -> int:
    """App. "Batch Construction" — max(1, ceil(b B)), in exact arithmetic: 0.07 of 100 is 7."""
    if batch_size < 1:
        raise ValueError(f"batch_size = {batch_size}: a batch has at least one task")
    return max(1, ceil(Fraction(str(fraction("quota_fraction", quota_fraction))) * batch_size))


class CapabilitySampler:
    """ARISE's sampler: draws tasks that exercise weak capabilities, and records why each task was drawn.

    The state, random generator included, restores exactly. Call `draw` before and `observe` after every batch, and
    `keep_only` after every change of the pool:

    ```python
    sampler = CapabilitySampler(tasks, random)  # a numpy.random.Generator
    draws = sampler.draw(32, version=0)     # draws[0].task_id, draws[0].path
    sampler.observe(groups, pool, version=0)
    ```
    """

    def __init__(
        self, tasks: Sequence[Task], random: np.random.Generator, settings: CapabilitySampling | None = None
    ) -> None:
        self.settings = settings or CapabilitySampling()
        self.random = random
        self.ledger = Ledger(self.settings.observed_decay, self.settings.unobserved_decay)
        self.coverage = CoverageMap([task.id for task in tasks])
        self.types_X = [tuple(dict.fromkeys(task.task_types)) for task in tasks]
        self.members: dict[Cell, list[int]] = {}

    def draw(self, count: int, version: int, unavailable: Collection[str] = ()) -> list[Draw]:
        """Alg. 1, lines 4-5 — `count` different tasks (fewer when the corpus is smaller), each with its reason."""
        if count < 1:
            raise ValueError(f"count = {count}: a batch has at least one task")
        batch = _Batch(self, count, version)
        for task_id in unavailable:
            batch.take(self.coverage.index(task_id))
        slots = min(count, len(self.types_X) - len(batch.taken))
        return [batch.next_slot() for _ in range(slots)]

    def observe(self, groups: Sequence[Group], pool: Pool, version: int) -> None:
        """Alg. 1, line 16 — update from complete judged groups; incomplete groups are ignored."""
        place_of = {group.task.id: self.coverage.index(group.task.id) for group in groups}
        judged = [group for group in groups if group.complete and any(r.judgment is not None for r in group.rollouts)]
        if not judged:
            return
        rubric_ids = [rubric.id for rubric in pool.rubrics]
        verdict_GIJ = np.full((len(judged), len(rubric_ids), max(group.size for group in judged)), np.nan)
        valid_GI = np.zeros(verdict_GIJ.shape[:2], dtype=np.bool_)
        for g, group in enumerate(judged):
            verdict_GIJ[g, :, : group.size], valid_IJ = verdict_arrays(group, rubric_ids)
            valid_GI[g] = valid_IJ.all(axis=1)
        applicable_GI = ~np.isnan(verdict_GIJ).all(axis=2)
        types_G = [self.types_X[place_of[group.task.id]] for group in judged]
        self.ledger.observe_groups(types_G, rubric_ids, verdict_GIJ, version)
        for group, valid_I, applicable_I in zip(judged, valid_GI, applicable_GI, strict=True):
            for capability in self.coverage.observe(group.task.id, rubric_ids, valid_I, applicable_I):
                self._add_member(place_of[group.task.id], capability)

    def keep_only(self, pool: Pool) -> None:
        """Alg. 1, line 26 — drop the evidence of retired rubrics and mark new rubrics as not yet evaluated."""
        self.ledger.keep_only(pool)
        self.coverage.keep_only(pool)
        for cell, members in list(self.members.items()):
            with_evidence = self.coverage.applicable(cell.capability)
            self.members[cell] = [x for x in members if with_evidence[x]]
            if not self.members[cell]:
                del self.members[cell]

    def to_dict(self) -> dict[str, Any]:
        """Return the whole state as JSON values."""
        return {
            "format": FORMAT,
            "kind": self.settings.kind,
            "generator": self.random.bit_generator.state,
            "ledger": self.ledger.to_dict(),
            "coverage": self.coverage.to_dict(),
        }

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Continue exactly where `to_dict` was taken."""
        require_format("sampler", saved, FORMAT, self.settings.kind)
        ledger = Ledger.from_dict(saved["ledger"])
        for name in ("observed_decay", "unobserved_decay"):
            if getattr(ledger, name) != getattr(self.settings, name):
                raise ValueError(
                    f"sampler state was made with {name} = {getattr(ledger, name)}, "
                    f"this run has {getattr(self.settings, name)}"
                )
        self.coverage.restore(saved["coverage"])
        self.ledger = ledger
        self.random.bit_generator.state = saved["generator"]
        self.members = {}
        for capability in CAPABILITIES:
            for x in np.flatnonzero(self.coverage.applicable(capability)).tolist():
                self._add_member(x, capability)

    def _add_member(self, x: int, capability: Capability) -> None:
        # Sorted, so that a restored sampler picks the same member for the same random number.
        for task_type in self.types_X[x]:
            insort(self.members.setdefault(Cell(task_type, capability), []), x)


class _Batch:
    """One batch under construction: taken tasks, remaining quota, and how the next slot is filled."""

    def __init__(self, sampler: CapabilitySampler, count: int, version: int) -> None:
        self.random, self.coverage, self.members = sampler.random, sampler.coverage, sampler.members
        self.types_X = sampler.types_X
        self.rho = discovery_probability(self.coverage.coverage(), sampler.settings.min_discovery)
        self.taken: set[int] = set()
        self.discovery = self._inverse_attempts(np.flatnonzero(self.coverage.outstanding()))
        self.anything: WeightedPick | None = None

        self.cells = sorted(self.members)
        self.number_of = {cell: n for n, cell in enumerate(self.cells)}
        self.open_members = np.array([len(self.members[cell]) for cell in self.cells], dtype=np.int64)
        self.quota_left = np.full(len(self.cells), cell_quota(count, sampler.settings.quota_fraction))
        row_of = {task_type: d for d, task_type in enumerate(sampler.ledger.task_types)}
        place = (
            np.array([row_of[cell.task_type] for cell in self.cells], dtype=np.intp),
            np.array([CAPABILITIES.index(cell.capability) for cell in self.cells], dtype=np.intp),
        )
        self.passes, self.fails = (mass_DC[place] for mass_DC in sampler.ledger.cells(version))

    def take(self, x: int) -> None:
        """Exclude task `x` from the later slots of this batch."""
        if x in self.taken:
            return
        self.taken.add(x)
        self.discovery.remove(x)
        if self.anything:
            self.anything.remove(x)
        for capability in self.coverage.capabilities_with_evidence(x):
            for task_type in self.types_X[x]:
                self.open_members[self.number_of[Cell(task_type, capability)]] -= 1

    def next_slot(self) -> Draw:
        """Discovery with probability rho while it has candidates, else an eligible cell, else the fallback."""
        if self.discovery.left and self.random.random() < self.rho:
            return self._discover(DrawPath.DISCOVERY, self.discovery)
        eligible = np.flatnonzero((self.open_members > 0) & (self.quota_left > 0))
        if len(eligible):
            return self._adapt(eligible)
        if self.discovery.left:
            return self._discover(DrawPath.FALLBACK, self.discovery)
        if self.anything is None:
            everything = np.arange(len(self.types_X))
            self.anything = self._inverse_attempts(everything[~np.isin(everything, list(self.taken))])
        return self._discover(DrawPath.FALLBACK, self.anything)

    def _discover(self, path: DrawPath, candidates: WeightedPick) -> Draw:
        x, probability = candidates.draw(self.random)
        self.take(x)
        attempts = int(self.coverage.attempts_X[x])
        return Draw(self.coverage.task_ids[x], path, probability, self.rho, attempts=attempts)

    def _adapt(self, eligible: NDArray[np.intp]) -> Draw:
        estimates = pass_estimates(self.passes[eligible], self.fails[eligible], self.random)
        weights = cell_weight(estimates)
        probabilities = cell_probabilities(weights)
        chosen = int(np.searchsorted(np.cumsum(probabilities), self.random.random(), side="right"))
        chosen = min(chosen, len(eligible) - 1)
        n = int(eligible[chosen])
        open_members = int(self.open_members[n])
        x = self._open_member(self.members[self.cells[n]], open_members)
        self.quota_left[n] -= 1
        self.take(x)
        return Draw(
            self.coverage.task_ids[x],
            DrawPath.ADAPTIVE,
            float(probabilities[chosen]) / open_members,
            self.rho,
            self.cells[n],
            float(estimates[chosen]),
            float(weights[chosen]),
            int(self.quota_left[n]),
            int(self.coverage.attempts_X[x]),
        )

    def _open_member(self, members: list[int], open_members: int) -> int:
        """Draw uniformly among members not taken yet; rejection sampling while few are taken."""
        if 2 * open_members < len(members):
            members = [x for x in members if x not in self.taken]
        while True:
            x = members[int(self.random.integers(len(members)))]
            if x not in self.taken:
                return x

    def _inverse_attempts(self, items: NDArray[np.intp]) -> WeightedPick:
        return WeightedPick(items, inverse_attempt_weights(self.coverage.attempts_X[items]))
