"""Iteration numbers: people count from 1, the tables store k from 0, and 0 stands for "before training"."""


def iteration_of(k: int) -> int:
    """Return the number of a stored iteration as people see it.

    Rows written before the first iteration have k = -1, which gives 0.
    """
    return k + 1


def k_of(iteration: int) -> int:
    """Return the stored k of an iteration as people number it."""
    return iteration - 1
