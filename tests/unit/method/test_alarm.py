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


def windows(before: list[Signal], after: list[Signal], sensitivity: float = 2.5) -> Divergence:
    found = divergence([*before, *after], len(before), sensitivity)
    assert found is not None
    return found


def one(passes: int, evaluations: int, success: Tally) -> Signal:
    return Signal({"r001": Tally(passes, evaluations)}, success)


def of_trials(passes: int, evaluations: int) -> float:
    """The variance of a rate among independent trials, with one pass and one failure added."""
    rate = (passes + 1) / (evaluations + 2)
    return rate * (1 - rate) / evaluations


def test_the_error_is_that_of_independent_trials_where_iterations_agree() -> None:
    found = windows([one(20, 100, Tally(30, 100))] * 2, [one(60, 100, Tally(31, 100))] * 2)
    variance = of_trials(40, 200) + of_trials(120, 200) + of_trials(60, 200) + of_trials(62, 200)
    assert found.rubric_rise == pytest.approx(0.4)
    assert found.success_rise == pytest.approx(0.01)
    assert found.z == pytest.approx(0.39 / variance**0.5)


def test_the_error_is_the_spread_around_the_trend_where_iterations_differ() -> None:
    rates = (10, 90, 10, 90)  # slope 0.16 per iteration, squares of the residuals 0.512: 0.512 / 2 / 4 = 0.064
    before = [one(rate, 100, Tally(50, 100)) for rate in rates]
    found = windows(before, [one(90, 100, Tally(50, 100))] * 4)
    variance = 0.064 + of_trials(360, 400) + 2 * of_trials(200, 400)
    assert found.z == pytest.approx(0.4 / variance**0.5)


def test_iterations_without_a_verdict_do_not_count() -> None:
    """0.2, 0.8 and 0.2 are left: no slope, mean 0.4, squares of the residuals 0.24: 0.24 / 1 / 3 = 0.08."""
    nothing = Signal({"r001": Tally(0, 0)}, Tally(0, 0))
    before = [one(20, 100, Tally(0, 0)), one(80, 100, Tally(0, 0)), nothing, one(20, 100, Tally(0, 0))]
    found = windows(before, [one(90, 100, Tally(0, 0)), nothing, nothing, one(90, 100, Tally(0, 0))])
    assert found.rubric_rise == pytest.approx(0.5)
    assert found.success_rise == 0.0
    assert found.z == pytest.approx(0.5 / (0.08 + of_trials(180, 200) + 1.0 + 1.0) ** 0.5)


RISING = [one(200, 1000, Tally(500, 1000))] * 2, [one(600, 1000, Tally(500, 1000))] * 2


def test_the_alarm_is_raised_at_the_sensitivity_and_not_below() -> None:
    z = windows(*RISING).z
    assert windows(*RISING, sensitivity=z).alarm
    assert not windows(*RISING, sensitivity=float(np.nextafter(z, np.inf))).alarm
    few = [one(2000, 10000, Tally(10, 20))] * 2, [one(5000, 10000, Tally(10, 20))] * 2
    assert 2.5 < windows(*few).z < 3.0
    assert divergence([*few[0], *few[1]], 2) == windows(*few)
    assert windows(*few).alarm, "the sensitivity is 2.5 where none is given"


@pytest.mark.parametrize(("success", "alarm"), [(500, True), (520, True), (535, False), (560, False)])
def test_success_that_rises_by_two_errors_is_no_reason_for_alarm(success: int, alarm: bool) -> None:
    """The error of the rise is 0.0158: 0.02 is less than two of it, 0.035 more."""
    before, _ = RISING
    assert windows(before, [one(900, 1000, Tally(success, 1000))] * 2).alarm is alarm


@pytest.mark.parametrize(("passes", "alarm"), [(280, False), (320, True)])
def test_a_small_rise_is_no_reason_for_alarm(passes: int, alarm: bool) -> None:
    before, _ = RISING
    assert windows(before, [one(passes, 1000, Tally(500, 1000))] * 2).alarm is alarm


def test_a_rise_within_three_errors_is_no_reason_for_alarm() -> None:
    """A rise of 0.2 with an error of 0.08, though success fell."""
    before, after = [one(8, 40, Tally(900, 1000))] * 2, [one(16, 40, Tally(500, 1000))] * 2
    found = windows(before, after)
    assert found.z > 2.5
    assert not found.alarm


def test_suspects_are_the_rubrics_that_rose_most_first() -> None:
    before = [Signal({name: Tally(200, 1000) for name in ("a", "b", "c")}, Tally(500, 1000))] * 2
    rates = {"a": Tally(400, 1000), "b": Tally(900, 1000), "c": Tally(290, 1000)}
    found = windows(before, [Signal(rates, Tally(500, 1000))] * 2)
    assert found.suspects == ("b", "a")
    assert windows(before, before).suspects == ()
