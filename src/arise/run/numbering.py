"""Iteration numbers: people count from 1, the tables store k from 0, and 0 stands for "before training"."""

import re


def iteration_of(k: int) -> int:
    """Return the number of a stored iteration as people see it.

    Rows written before the first iteration have k = -1, which gives 0.
    """
    return k + 1


def k_of(iteration: int) -> int:
    """Return the stored k of an iteration as people number it."""
    return iteration - 1


def rollout_name(rollout_id: str) -> str:
    """Return the id of a rollout with its iteration as people number it: `k11/task/3` is shown as `12/task/3`."""
    return re.sub(r"^k(\d+)(?=/)", lambda found: str(iteration_of(int(found[1]))), rollout_id)
