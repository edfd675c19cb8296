"""Alg. 1, line 14: from a judged group to the advantage of each of its trajectories, with the parts it is made of."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from arise.config import SeparateCredit
from arise.method.advantage import advantage_parts, combined_advantages
from arise.method.arrays import Floats
from arise.method.pass_rate import verdict_arrays
from arise.method.reward import length_regularized
from arise.types import Group, Pool, ShownSkill


class Advantages(NamedTuple):
    """A_j of every trajectory of a group, and the task and rubric terms before weighting."""

    combined_J: Floats
    task_J: Floats
    rubric_J: Floats


class CreditRule(Protocol):
    """Turns a judged group into advantages; returns None for a group that must not be learned from."""

    def __call__(self, group: Group, pool: Pool, /) -> Advantages | None: ...


def separate_credit(credit: SeparateCredit) -> CreditRule:
    """Follow the paper: normalise the outcome and each rubric separately, then combine."""

    def rule(group: Group, pool: Pool) -> Advantages | None:
        return group_advantages(group, [rubric.id for rubric in pool.rubrics], credit)

    return rule


def group_advantages(group: Group, rubric_ids: Sequence[str], credit: SeparateCredit) -> Advantages | None:
    """Eqs. 15-17 applied to one group; None for an incomplete group, which is dropped and never filled with zeros."""
    if not group.complete:
        return None
    raw_J = np.array([rollout.reward for rollout in group.rollouts], dtype=np.float64)
    lengths_J = np.array([rollout.trajectory.generated_tokens for rollout in group.rollouts], dtype=np.float64)
    reward_J = length_regularized(raw_J, lengths_J, credit.length_strength, credit.length_threshold)
    verdict_IJ, _ = verdict_arrays(group, rubric_ids)
    combined_J, task_J, rubric_J = (np.zeros_like(reward_J) for _ in range(3))
    for part_J in _compared(group, credit):
        part_IJ = trusted(verdict_IJ[:, part_J], credit.min_minority)
        task_J[part_J], rubric_J[part_J], _ = advantage_parts(reward_J[part_J], part_IJ)
        combined_J[part_J] = combined_advantages(reward_J[part_J], part_IJ, credit.rubric_weight)
    return Advantages(combined_J, task_J, rubric_J)


def trusted(verdict_IJ: Floats, min_minority: int) -> Floats:
    """Return the verdicts without those of rubrics whose rarer verdict occurs less often than `min_minority`."""
    rarer_I = np.minimum((verdict_IJ == 1.0).sum(axis=1), (verdict_IJ == 0.0).sum(axis=1))
    return np.where((rarer_I >= min_minority)[:, None], verdict_IJ, np.nan)


def _compared(group: Group, credit: SeparateCredit) -> list[list[int]]:
    """Return the members of each part of the group whose rewards and verdicts are compared with each other."""
    if credit.compared == "group":
        return [list(range(len(group.rollouts)))]
    parts = dict[tuple[ShownSkill, ...], list[int]]()
    for j, rollout in enumerate(group.rollouts):
        parts.setdefault(rollout.trajectory.shown_skills, []).append(j)
    return list(parts.values())
