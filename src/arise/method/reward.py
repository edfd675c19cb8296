"""Task reward: the objective it estimates, and its length regularisation (App. "Length Regularization")."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from arise.method.arrays import Floats, finite, fraction, same_length

EPSILON = 1e-9
"""epsilon of Eqs. 15 and 17."""


def mean_task_reward(groups: Sequence[ArrayLike]) -> float:
    """Eq. 1 — Monte-Carlo estimate of J: the mean over tasks drawn from D of their rollouts' mean verifier reward."""
    if not groups:
        raise ValueError("groups is empty: the objective is a mean over at least one task")
    means = []
    for x, raw_J in enumerate(groups):
        rewards_J = finite(f"groups[{x}]", raw_J)
        if not len(rewards_J):
            raise ValueError(f"groups[{x}] is empty: a task has at least one rollout")
        means.append(float(rewards_J.mean()))
    return sum(means) / len(means)


def length_regularized(
    raw_J: ArrayLike, lengths_J: ArrayLike, strength: float = 0.5, threshold: float = 16_384
) -> Floats:
    """Eq. 17 — scale positive rewards by relative length if the group has both outcomes and a long trajectory."""
    raw_J, lengths_J = finite("raw_J", raw_J), finite("lengths_J", lengths_J)
    same_length(raw_J=raw_J, lengths_J=lengths_J)
    fraction("strength", strength)
    if not threshold >= 0:
        raise ValueError(f"threshold = {threshold} must not be negative")
    if (lengths_J < 0).any():
        place = int(np.flatnonzero(lengths_J < 0)[0])
        raise ValueError(f"lengths_J[{place}] = {lengths_J[place]} must not be negative")
    positive_J = raw_J > 0
    if not positive_J.any() or positive_J.all():
        return raw_J.copy()
    shortest, longest = lengths_J.min(), lengths_J.max()
    if longest <= threshold or shortest == longest:
        return raw_J.copy()
    relative_J = (lengths_J - shortest) / (longest - shortest + EPSILON)
    return np.where(positive_J, raw_J * (1.0 + strength * (1.0 - 2.0 * relative_J)), raw_J)
