import json

import numpy as np
import pytest

from arise.baselines.vade import Vade, top
from arise.config.sampler import VadeSampling
from arise.types import DrawPath, Group, Pool
from tests.builders import a_group, a_rollout, a_task, close

TASKS = [a_task(f"x{n}") for n in range(6)]


def vade(seed: int = 0, settings: VadeSampling | None = None) -> Vade:
    return Vade(TASKS, np.random.default_rng(seed), settings)


def outcomes(number: int, *rewards: float | None) -> Group:
    rollouts = tuple(a_rollout(j, reward=reward) for j, reward in enumerate(rewards))
    return Group(TASKS[number], rollouts, len(rewards))


def test_the_top_of_the_draw_is_taken_best_first() -> None:
    made, same_draw = vade(3), np.random.default_rng(3)
    estimates = same_draw.beta(np.ones(6), np.ones(6))
    gain = estimates * (1 - estimates) ** 2
    draws = made.draw(3, version=0)
    assert [draw.task_id for draw in draws] == [f"x{x}" for x in np.argsort(-gain)[:3]]
    assert [draw.weight for draw in draws] == sorted(gain, reverse=True)[:3]
    assert [draw.estimate for draw in draws] == [estimates[x] for x in np.argsort(-gain)[:3]]
    assert {(draw.path, draw.probability) for draw in draws} == {(DrawPath.VADE, 1.0)}


def test_unavailable_tasks_and_small_corpora() -> None:
    draws = vade().draw(99, version=0, unavailable=["x1", "x4"])
    assert sorted(draw.task_id for draw in draws) == ["x0", "x2", "x3", "x5"]
    assert vade().draw(1, version=0, unavailable=[task.id for task in TASKS]) == []


def test_counts_verified_outcomes_only() -> None:
    made = vade()
    made.observe([outcomes(0, 1.0, 0.5, 0.0, None), outcomes(1, None, None)], Pool(), version=2)
    alpha_X, beta_X = made.posterior(2)
    assert alpha_X.tolist() == [2, 0, 0, 0, 0, 0]
    assert beta_X.tolist() == [1, 0, 0, 0, 0, 0]


def test_decay_by_version() -> None:
    made = vade(settings=VadeSampling(observed_decay=0.5, unobserved_decay=0.1))
    made.observe([outcomes(0, 1.0, 0.0)], Pool(), version=0)
    made.observe([outcomes(0, 1.0)], Pool(), version=0)
    close(made.posterior(0)[0][0], 2)
    close(made.posterior(2)[1][0], 0.01)
    made.observe([outcomes(0, 0.0)], Pool(), version=2)
    close(made.posterior(2)[0][0], 2 * 0.5 * 0.1)
    close(made.posterior(2)[1][0], 1 * 0.5 * 0.1 + 1)


def test_vade_ignores_the_pool() -> None:
    made = vade()
    before = made.to_dict()
    made.keep_only(Pool())
    assert made.to_dict() == before


def test_state_restores_exactly() -> None:
    made = vade()
    made.observe([outcomes(0, 1.0, 0.0), outcomes(3, 0.0)], Pool(), version=1)
    made.draw(2, version=1)
    saved = json.loads(json.dumps(made.to_dict()))
    assert saved["tasks"] == [["x0", 1.0, 1.0, 1], ["x3", 0.0, 1.0, 1]]
    again = vade(seed=8)
    again.observe([outcomes(5, 1.0)], Pool(), version=7)
    again.restore(saved)
    for version in range(1, 6):
        assert again.draw(3, version) == made.draw(3, version)


def test_bad_requests() -> None:
    made = vade()
    made.observe([outcomes(0, 1.0)], Pool(), version=3)
    with pytest.raises(ValueError, match=r"^count = -2: a batch has at least one task$"):
        made.draw(-2, version=3)
    with pytest.raises(ValueError, match=r"^version = 2 is older than evidence of version 3: versions only grow$"):
        made.draw(1, version=2)
    with pytest.raises(ValueError, match=r"^version = 2 is older than evidence of version 3: versions only grow$"):
        made.observe([outcomes(0, 1.0)], Pool(), version=2)
    with pytest.raises(ValueError, match=r"^task 'zz' is not among the 6 training tasks$"):
        made.draw(1, version=3, unavailable=["zz"])
    with pytest.raises(ValueError, match=r"^task 'zz' is not among the 6 training tasks$"):
        made.observe([a_group(a_task("zz"), {"a": "1"})], Pool(), version=3)


def test_foreign_states_are_refused() -> None:
    saved = vade().to_dict()
    with pytest.raises(ValueError, match=r"^VADE sampler state has format 2, this version reads 1"):
        vade().restore(saved | {"format": 2})
    with pytest.raises(ValueError, match=r"^VADE sampler state is of kind 'uniform', this run samples with 'vade'$"):
        vade().restore(saved | {"kind": "uniform"})
    with pytest.raises(ValueError, match=r"^task 'zz' is not among the 6 training tasks$"):
        vade().restore(saved | {"tasks": [["zz", 1.0, 1.0, 0]]})


def test_top_returns_the_largest_gains_first() -> None:
    gain_X = np.array([0.1, 0.4, 0.3, 0.2])
    assert top(gain_X, 0) == []
    assert top(gain_X, 1) == [1]
    assert top(gain_X, 4) == [1, 2, 3, 0]
