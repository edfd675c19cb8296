"""Separately normalised advantages of task rewards and rubric verdicts (Sec. "Advantage Estimation")."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from arise.method.arrays import Floats, finite, fraction, verdicts
from arise.method.reward import EPSILON


def normalized(values: ArrayLike) -> Floats:
    """Eq. 15 — (value - mean) / (population std + epsilon) within a group; a constant group gives exact zeros."""
    values = finite("values", values)
    if values.size == 0:
        raise ValueError("values is empty: a group has at least one member")
    # Rounding can leave a constant group a residue as large as its own deviation, which epsilon would not hide.
    if values.min() == values.max():
        return np.zeros_like(values)
    centred: Floats = values - values.mean()
    deviation = float(np.sqrt(np.mean(centred * centred)))
    return centred / (deviation + EPSILON)


def rubric_advantages(verdict_IJ: ArrayLike) -> tuple[Floats, Floats]:
    """Compute the rubric half of Eq. 15: A_ij over applicable members, 0 elsewhere; and 1 per rubric in I, else 0."""
    verdict_IJ = verdicts("verdict_IJ", verdict_IJ)
    applicable_IJ = verdict_IJ == verdict_IJ  # false exactly at nan
    pass_IJ = verdict_IJ == 1.0
    evaluations_I = applicable_IJ.sum(axis=1)
    passes_I = pass_IJ.sum(axis=1)
    informative_I = (passes_I > 0) & (passes_I < evaluations_I)
    mean_I = passes_I / np.maximum(evaluations_I, 1)
    deviation_I = np.sqrt(mean_I * (1.0 - mean_I)) + EPSILON
    advantage_IJ = (pass_IJ - mean_I[:, None]) / deviation_I[:, None]
    advantage_IJ *= applicable_IJ & informative_I[:, None]
    return advantage_IJ, informative_I.astype(np.float64)


def combined_advantages(reward_J: ArrayLike, verdict_IJ: ArrayLike, rubric_weight: float = 0.3) -> Floats:
    """Eq. 16 — A_j from task rewards and rubric verdicts of a group; without an applicable rubric, the task part.

    Verdicts are 1 (pass), 0 (fail) or nan (not applicable, or missing). If every attempt fails, rubrics still tell them
    apart:

    ```python
    combined_advantages([0.0, 0.0, 0.0], [[1.0, 0.0, nan]], 0.3)  # 0.3, -0.3, 0.0
    ```
    """
    task_J, rubric_J, usable_J = advantage_parts(reward_J, verdict_IJ)
    fraction("rubric_weight", rubric_weight)
    return np.where(usable_J, (1.0 - rubric_weight) * task_J + rubric_weight * rubric_J, task_J)


def advantage_parts(reward_J: ArrayLike, verdict_IJ: ArrayLike) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Return both terms of Eq. 16, A_task and the mean of A_rub over I, and which trajectories have usable feedback."""
    task_J = normalized(reward_J)
    advantage_IJ, informative_I = rubric_advantages(verdict_IJ)
    if advantage_IJ.shape[1] != task_J.shape[0]:
        raise ValueError(f"verdict_IJ has shape {advantage_IJ.shape}, but reward_J has {task_J.shape[0]} members")
    # Within I no verdict equals its rubric's mean, so a usable advantage is never 0.
    usable_J: NDArray[np.bool_] = np.any(advantage_IJ, axis=0)
    return task_J, advantage_IJ.sum(axis=0) / max(informative_I.sum(), 1.0), usable_J
