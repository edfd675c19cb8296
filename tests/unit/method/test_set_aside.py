import json

import numpy as np
import pytest

from arise.baselines.uniform import Uniform
from arise.baselines.vade import Vade
from arise.method.sampler import CapabilitySampler
from arise.method.set_aside import Faulty, SetAside
from arise.ports import Sampler
from arise.types import Capability, Group, Pool
from tests.builders import a_group, a_pool, a_rollout, a_task

TASKS = [a_task(f"x{n}", "d") for n in range(20)]
BROKEN = {"x0"}


def lost(task_id: str = "x0") -> Group:
    return Group(a_task(task_id), (a_rollout(0, reward=None), a_rollout(1, reward=1.0)), 2)


def whole(task_id: str = "x0") -> Group:
    return a_group(a_task(task_id), {"a": "10"})


def after(groups: list[Group], limit: int = 3, retry_every: int = 5) -> SetAside:
    aside = SetAside(20, limit, retry_every)
    for k, group in enumerate(groups):
        aside.observe(k, [group])
    return aside


def test_three_incomplete_groups_in_a_row_set_a_task_aside_for_a_while() -> None:
    assert after([lost()] * 2).away(2) == []
    aside = after([lost()] * 3)
    assert aside.faulty == {"x0": Faulty(3, since=2, until=8)}
    assert [aside.away(k) for k in (2, 3, 7, 8)] == [["x0"], ["x0"], ["x0"], []]


def test_a_complete_group_clears_its_task_and_no_other() -> None:
    assert after([lost(), lost(), whole(), lost()]).faulty == {"x0": Faulty(1)}
    assert after([lost(), lost(), whole("x1"), lost()]).away(4) == ["x0"]


def test_a_failed_retry_sets_a_task_aside_again_and_a_complete_one_clears_it() -> None:
    aside = after([lost()] * 3)
    aside.observe(8, [lost("x0"), whole("x1")])
    assert aside.faulty["x0"] == Faulty(4, since=8, until=14)
    aside.observe(14, [whole("x0")])
    assert aside.faulty == {}


def test_zero_never_sets_aside() -> None:
    assert after([lost()] * 9, limit=0).away(9) == []
    assert SetAside().away(0) == []
    assert after([lost()], limit=1).away(1) == ["x0"]


def test_tasks_set_aside_return_early_when_a_batch_needs_them() -> None:
    aside = SetAside(4, 1, 5)
    for k, task in enumerate(("x2", "x0", "x1")):
        aside.observe(k, [lost(task)])
    aside.observe(2, [lost("x3")])
    assert aside.away(3) == ["x1", "x3", "x0", "x2"], "those that come back last first, then by name"
    assert [aside.unavailable(3, count) for count in (1, 3, 4, 9)] == [["x1", "x3", "x0"], ["x1"], [], []]


def test_state_restores_exactly() -> None:
    aside = after([lost("x1"), lost("x0"), lost("x0"), lost("x0")])
    again = SetAside(20, 3, 5)
    again.restore(json.loads(json.dumps(aside.to_dict())))
    assert again.faulty == aside.faulty == {"x1": Faulty(1), "x0": Faulty(3, 3, 9)}
    again.restore({})
    assert again.faulty == {}


def samplers() -> dict[str, Sampler]:
    made = {kind: np.random.default_rng(1) for kind in ("capability", "uniform", "vade")}
    return {
        "capability": CapabilitySampler(TASKS, made["capability"]),
        "uniform": Uniform(TASKS, made["uniform"]),
        "vade": Vade(TASKS, made["vade"]),
    }


def draws_of_the_broken_task(sampler: Sampler, aside: SetAside, iterations: int = 100) -> list[int]:
    """The iterations that drew the one task whose groups are never complete."""
    pool, found = a_pool({"a": Capability.EXECUTION}), []
    sampler.keep_only(pool)
    for k in range(iterations):
        drawn = [draw.task_id for draw in sampler.draw(4, k, aside.unavailable(k, 4))]
        assert len(set(drawn)) == 4
        groups = [lost(task) if task in BROKEN else whole(task) for task in drawn]
        sampler.observe(groups, pool, k + 1)
        aside.observe(k, groups)
        found += [k] * ("x0" in drawn)
    return found


@pytest.mark.parametrize("kind", ["capability", "uniform", "vade"])
def test_every_sampler_draws_a_broken_task_three_times_and_then_now_and_then(kind: str) -> None:
    ever = draws_of_the_broken_task(samplers()[kind], SetAside(20, 0))
    found = draws_of_the_broken_task(samplers()[kind], SetAside(20, 3, 20))
    assert 4 <= len(found) <= 7 < len(ever)
    pauses = np.diff(found[2:])
    assert (pauses > 20).all()


def test_a_task_that_was_unavailable_for_epochs_is_drawn_once_by_uniform_sampling() -> None:
    sampler = Uniform(TASKS, np.random.default_rng(0))
    for k in range(20):
        sampler.draw(4, k, ["x0"])
    after_it = [draw.task_id for k in range(5) for draw in sampler.draw(4, k)]
    assert after_it.count("x0") <= 2
    assert sum(name == "x0" for name in sampler.to_dict()["queue"]) <= 1


def test_nothing_set_aside_draws_as_ever() -> None:
    for kind in samplers():
        plain, with_it = samplers()[kind], samplers()[kind]
        aside = SetAside(20, 3)
        for k in range(10):
            assert with_it.draw(4, k, aside.unavailable(k, 4)) == plain.draw(4, k)
        assert with_it.to_dict() == plain.to_dict()
        plain.observe([whole()], Pool(), 11)
