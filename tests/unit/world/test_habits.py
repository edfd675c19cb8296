"""Scripted workers: habits show now and then unasked, clearly more often when asked, and phrases vary."""

import numpy as np
import pytest

from arise.world.habits import ASKED, UNASKED, WorkerHabit, habits_shown
from arise.world.wording import phrase


@pytest.mark.parametrize("habit", list(WorkerHabit))
def test_asking_raises_a_habit_clearly_and_it_also_occurs_unasked(habit: WorkerHabit) -> None:
    random = np.random.default_rng(0)
    unasked = np.mean([habit in habits_shown(frozenset(), random) for _ in range(2000)])
    asked = np.mean([habit in habits_shown(frozenset([habit]), random) for _ in range(2000)])
    assert abs(unasked - UNASKED[habit]) < 0.04
    assert abs(asked - ASKED) < 0.03
    assert 0.1 < unasked < asked - 0.3


@pytest.mark.parametrize("habit", list(WorkerHabit))
def test_a_habit_is_described_to_the_judge_in_full(habit: WorkerHabit) -> None:
    random = np.random.default_rng(0)
    assert len({phrase(habit, random) for _ in range(300)}) > 40
