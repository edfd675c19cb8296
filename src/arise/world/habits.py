"""Habits of a scripted worker: how often it shows them, and which were requested.

A worker shows every habit occasionally on its own and clearly more often on request, so a model trained on its
demonstrations can follow guidance and has a starting point without it.
"""

from collections.abc import Mapping
from enum import StrEnum

import numpy as np


class WorkerHabit(StrEnum):
    """A behaviour of a careful worker; none is sufficient for any task alone."""

    LIST = "list"
    GUIDE = "guide"
    SOURCES = "sources"
    PROBE = "probe"
    BACKUP = "backup"
    CHECK = "check"
    REPAIR = "repair"
    DELIVER = "deliver"
    ECONOMY = "economy"


UNASKED = {
    WorkerHabit.LIST: 0.18,
    WorkerHabit.GUIDE: 0.25,
    WorkerHabit.SOURCES: 0.18,
    WorkerHabit.PROBE: 0.20,
    WorkerHabit.BACKUP: 0.20,
    WorkerHabit.CHECK: 0.15,
    WorkerHabit.REPAIR: 0.30,
    WorkerHabit.DELIVER: 0.25,
    WorkerHabit.ECONOMY: 0.60,
}
"""How often a habit shows without a request, in the mixed world."""

EVEN = dict.fromkeys(WorkerHabit, 0.20) | {WorkerHabit.ECONOMY: 0.60}
"""The same in a world of one depth, where no required behaviour may be easier than another."""

ASKED = 0.97
"""How often a habit shows on request."""

UNGUIDED, ASK_RATE = 0.3, 0.4
"""How often nothing is requested, and how often each habit is when something is."""


def habits_asked(random: np.random.Generator) -> frozenset[WorkerHabit]:
    """Sample the requested habits: often none, otherwise each with equal probability."""
    if random.random() < UNGUIDED:
        return frozenset()
    return frozenset(habit for habit in WorkerHabit if random.random() < ASK_RATE)


def unasked_rates(depth: int) -> Mapping[WorkerHabit, float]:
    """Return how often each habit shows without a request in the world of this depth; 0 is the mixed world."""
    return EVEN if depth else UNASKED


def habits_shown(
    asked: frozenset[WorkerHabit], random: np.random.Generator, unasked: Mapping[WorkerHabit, float] = UNASKED
) -> frozenset[WorkerHabit]:
    """Sample the habits that a worker shows in one attempt."""
    return frozenset(habit for habit in WorkerHabit if random.random() < (ASKED if habit in asked else unasked[habit]))


def asked_given_shown(
    shown: frozenset[WorkerHabit], random: np.random.Generator, unasked: Mapping[WorkerHabit, float] = UNASKED
) -> frozenset[WorkerHabit]:
    """Sample which habits were requested, from the posterior given those shown.

    One attempt, which costs a sandbox, can then be combined with any number of guidance texts.
    """
    unguided, guided = UNGUIDED, 1.0 - UNGUIDED
    asked = set()
    for habit in WorkerHabit:
        if_asked, if_not = (rate if habit in shown else 1.0 - rate for rate in (ASKED, unasked[habit]))
        either = ASK_RATE * if_asked + (1.0 - ASK_RATE) * if_not
        unguided, guided = unguided * if_not, guided * either
        if random.random() < ASK_RATE * if_asked / either:
            asked.add(habit)
    return frozenset() if random.random() < unguided / (unguided + guided) else frozenset(asked)
