"""Missing is not fail: what an iteration could not tell is left out of its record and shown as dashes."""

import numpy as np
import pytest

from arise.baselines.uniform import Uniform
from arise.display import Display
from arise.state import State
from arise.store import IterationRecord
from arise.types import Group, Pool, StepStats
from tests.builders import FAIL, PASS, a_rollout, a_task

NOTHING_LEARNED = StepStats(0.0, 0.0, 0.0, 0, 0, 0, 0.0, "no complete group")


def metrics_of(*groups: Group) -> dict[str, float]:
    state = State(Uniform([a_task()], np.random.default_rng(0)))
    return Display(print, 5).metrics(groups, NOTHING_LEARNED, state, 0)


def line_of(metrics: dict[str, float]) -> str:
    lines: list[str] = []
    Display(lines.append, 5).show(IterationRecord(2, [], [], [], [], Pool(), None, metrics, {}, ""), 1.5)
    return lines[0]


def test_groups_that_infrastructure_ended_have_no_pass_rate() -> None:
    lost = metrics_of(Group(a_task(), (a_rollout(0, reward=None), a_rollout(1, reward=1.0)), 2))
    assert lost["incomplete"] == 1
    assert not {"pass_rate", "rubric_reward", "coverage", "turns"} & set(lost)
    assert "   3/5  pass    -- %  rubrics   --  groups 0 fail 0 mixed 0 pass" in line_of(lost)
    assert "coverage --  1.5 s" in line_of(lost)


def test_a_rate_of_zero_is_a_zero() -> None:
    failed = metrics_of(Group(a_task(), (a_rollout(0, {"r1": FAIL}), a_rollout(1, {"r1": FAIL})), 2))
    assert (failed["pass_rate"], failed["rubric_reward"]) == (0.0, 0.0)
    assert "pass   0.0 %  rubrics 0.00" in line_of(failed)
    half = metrics_of(Group(a_task(), (a_rollout(0, {"r1": PASS}, reward=1.0), a_rollout(1, {"r1": FAIL})), 2))
    assert half["pass_rate"] == pytest.approx(0.5)
    assert "pass  50.0 %  rubrics 0.50" in line_of(half)
