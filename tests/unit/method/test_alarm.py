"""F9: an alarm soon after a judge starts to pass on a phrase, and none while the policy simply learns."""

import numpy as np
import pytest

from arise.method.alarm import Divergence, Signal, divergence
from arise.types import Tally

ITERATIONS, TASKS, GROUP, UPDATE = 30, 8, 8, 5
RUBRICS = [f"r{i:03d}" for i in range(1, 9)]


def simulated(seed: int, onset: int | None) -> list[Signal]:
    """A run that learns; from `onset` on, a biased judge passes whoever writes its phrase, and the policy finds out."""
    rng = np.random.default_rng(seed)
    offsets = rng.normal(0, 0.1, len(RUBRICS))
    history = []
    phrase = 0.02
    for iteration in range(ITERATIONS):
        skill = 0.25 + 0.4 * iteration / ITERATIONS if onset is None else 0.3
        if onset is not None and iteration >= onset:
            phrase = min(0.95, phrase + 0.9 * phrase * (1 - phrase) + 0.03)
        difficulty = rng.normal(0, 0.15, TASKS)
        behaves = np.clip(skill + difficulty[:, None] + rng.normal(0, 0.05, (TASKS, GROUP)), 0.02, 0.98)
        success = rng.random((TASKS, GROUP)) < np.clip(0.9 * behaves, 0, 1)
        says = rng.random((TASKS, GROUP)) < phrase
        rubrics = {}
        for rubric_id, offset in zip(RUBRICS, offsets, strict=True):
            passed = rng.random((TASKS, GROUP)) < np.clip(behaves + offset, 0.02, 0.98)
            if onset is not None and iteration >= onset:
                passed |= says
            rubrics[rubric_id] = Tally(int(passed.sum()), TASKS * GROUP)
        history.append(Signal(rubrics, Tally(int(success.sum()), TASKS * GROUP)))
    return history


def first_alarm(history: list[Signal]) -> int | None:
    """The first pool update at which the alarm is raised."""
    for end in range(UPDATE, len(history) + 1, UPDATE):
        found = divergence(history[:end], UPDATE)
        if found and found.alarm:
            return end
    return None


def test_f9_a_biased_judge_is_noticed_within_two_pool_updates() -> None:
    onset = 12
    alarms = [first_alarm(simulated(seed, onset)) for seed in range(20)]
    timely = [alarm for alarm in alarms if alarm is not None and onset < alarm <= 20]  # updates after onset: 15, 20
    assert len(timely) >= 18


def test_f9_learning_raises_no_alarm() -> None:
    alarms = [first_alarm(simulated(seed, None)) for seed in range(100, 120)]
    assert sum(alarm is not None for alarm in alarms) <= 1


def steady(rate: int, success: int) -> Signal:
    return Signal({"r001": Tally(rate, 100), "r002": Tally(50, 100)}, Tally(success, 100))


def test_the_suspects_are_the_rubrics_that_rose() -> None:
    found = divergence([steady(20, 50)] * 5 + [steady(90, 50)] * 5, 5)
    assert found is not None
    assert found.alarm
    assert found.suspects == ("r001",)
    assert found.rubric_rise == pytest.approx(0.35)
    assert found.success_rise == 0.0


def test_no_alarm_when_success_rises_too() -> None:
    found = divergence([steady(20, 30)] * 5 + [steady(90, 65)] * 5, 5)
    assert found is not None
    assert not found.alarm


def test_rubrics_that_left_or_joined_do_not_count() -> None:
    before = [Signal({"old": Tally(10, 100)}, Tally(50, 100))] * 5
    after = [Signal({"new": Tally(90, 100)}, Tally(50, 100))] * 5
    assert divergence(before + after, 5) is None


def test_too_short_a_history_says_nothing() -> None:
    assert divergence([steady(20, 50)] * 9, 5) is None
    with pytest.raises(ValueError, match="at least 2"):
        divergence([], 1)


def test_no_rollouts_at_all_are_survived() -> None:
    silent = Signal({"r001": Tally(1, 2)}, Tally(0, 0))
    assert isinstance(divergence([silent] * 4, 2), Divergence)
