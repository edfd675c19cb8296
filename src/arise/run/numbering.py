"""Iteration numbers: users see them from 1, tables store k from 0, and 0 means "before training"."""

import re


def iteration_of(k: int) -> int:
    """Return the displayed number of a stored iteration.

    Rows written before the first iteration have k = -1, which maps to 0.
    """
    return k + 1


def k_of(iteration: int) -> int:
    """Return the stored k of a displayed iteration number."""
    return iteration - 1


def rollout_name(rollout_id: str) -> str:
    """Return the displayed id of a rollout, with its iteration counted from 1: `k11/task/3` is shown as `12/task/3`."""
    return re.sub(r"^k(\d+)(?=/)", lambda found: str(iteration_of(int(found[1]))), rollout_id)
