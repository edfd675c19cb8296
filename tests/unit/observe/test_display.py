"""Missing is not fail: what an iteration could not tell is left out of its record and shown as dashes."""

from dataclasses import replace

import numpy as np
import pytest

from arise.baselines.uniform import Uniform
from arise.observe.terminal import Display, pool_change
from arise.run.record import IterationRecord
from arise.state import State
from arise.types import Group, Pool, PoolEvent, ShownSkill, StepStats
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
    assert "   3/5  pass      –  rubrics      –  groups 0 fail 0 mixed 0 pass" in line_of(lost)
    assert "coverage –  1.5 s" in line_of(lost)


def crowded(*left_out: str) -> Group:
    rollout = a_rollout(0, {"r1": PASS}, reward=1.0)
    trajectory = replace(rollout.trajectory, left_out=tuple(ShownSkill(name, 0) for name in left_out))
    return Group(a_task(), (replace(rollout, trajectory=trajectory),), 1)


def test_skills_that_did_not_fit_are_counted_and_reported_once_per_change() -> None:
    assert metrics_of(crowded("r2", "r1"))["skills_left_out"] == 2
    assert "skills_left_out" not in metrics_of(crowded())
    lines: list[str] = []
    display = Display(lines.append, 5)
    for left_out in ((), ("r2", "r1"), ("r1", "r2"), ("r1",), ()):
        group = crowded(*left_out)
        display.finished(IterationRecord(2, [], [group], [], [], Pool(), None, metrics_of(group), {}, ""))
    told = [line for line in lines if not line.lstrip().startswith("3/5")]
    assert [line.partition(";")[0] for line in told] == [
        "warning: 2 active skills left out of prompts that cannot hold all: r1, r2",
        "warning: 1 active skill left out of prompts that cannot hold all: r1",
        "all active skills fit into the prompt again",
    ]


def test_tests_that_never_give_a_reward_are_named_once() -> None:
    zero = replace(a_rollout(0, reward=0.0), reason="test.sh was ended by signal 9")
    doubtful = Group(a_task(), (zero, zero), 2)
    assert metrics_of(doubtful)["without_own_reward"] == 2
    honest = Group(a_task(), (zero, a_rollout(1, reward=0.0)), 2)
    assert "without_own_reward" not in metrics_of(Group(a_task(), (a_rollout(1, reward=0.0),), 1))
    lines: list[str] = []
    display = Display(lines.append, 5)
    for group in (honest, doubtful, doubtful):
        display.finished(IterationRecord(2, [], [group], [], [], Pool(), None, metrics_of(group), {}, ""))
    (told,) = [line for line in lines if "is the task sound?" in line]
    assert "its test.sh gave none of 2 attempts a reward" in told
    assert "test.sh was ended by signal 9" in told


def test_the_unguided_rate_is_shown_if_some_rollouts_were_guided() -> None:
    guided = a_rollout(0, {"r1": PASS}, shown=[ShownSkill("r1", 0)])
    found = metrics_of(Group(a_task(), (guided, a_rollout(1, {"r1": FAIL})), 2))
    assert "rubrics 50.0 % (0.0 % unguided)  groups" in line_of(found)
    every = metrics_of(Group(a_task(), (guided, guided), 2))
    assert "rubrics 100.0 % (– unguided)  groups" in line_of(every)


def test_reopened_pairs_count_as_added() -> None:
    kinds = ("born", "reopen", "reopen", "retire", "hide")
    assert pool_change([PoolEvent(4, f"r{n}", kind) for n, kind in enumerate(kinds)]) == "+3 -1"


def test_a_rate_of_zero_is_not_shown_as_missing() -> None:
    failed = metrics_of(Group(a_task(), (a_rollout(0, {"r1": FAIL}), a_rollout(1, {"r1": FAIL})), 2))
    assert (failed["pass_rate"], failed["rubric_reward"]) == (0.0, 0.0)
    assert "pass  0.0 %  rubrics  0.0 %" in line_of(failed)
    half = metrics_of(Group(a_task(), (a_rollout(0, {"r1": PASS}, reward=1.0), a_rollout(1, {"r1": FAIL})), 2))
    assert half["pass_rate"] == pytest.approx(0.5)
    assert "pass 50.0 %  rubrics 50.0 %" in line_of(half)
