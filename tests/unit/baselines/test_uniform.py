import json
from collections import Counter

import numpy as np
import pytest

from arise.baselines.uniform import Uniform
from arise.types import DrawPath, Pool
from tests.builders import a_group, a_task

TASKS = [a_task(f"x{n}") for n in range(10)]


def uniform(seed: int = 0) -> Uniform:
    return Uniform(TASKS, np.random.default_rng(seed))


def test_every_task_once_an_epoch_in_shuffled_order() -> None:
    made = uniform()
    order = [draw.task_id for _ in range(5) for draw in made.draw(2, version=0)]
    assert sorted(order) == sorted(task.id for task in TASKS)
    assert order != [task.id for task in TASKS]
    again = [draw.task_id for _ in range(5) for draw in made.draw(2, version=0)]
    assert again != order, "the next epoch is shuffled anew"


def test_a_batch_across_epochs_has_no_task_twice_and_loses_none() -> None:
    made = uniform()
    drawn: Counter[str] = Counter()
    for _ in range(10):
        batch = [draw.task_id for draw in made.draw(7, version=0)]
        assert len(set(batch)) == 7
        drawn.update(batch)
    assert set(drawn.values()) == {7}


def test_draws_say_what_they_are() -> None:
    draw = uniform().draw(1, version=0)[0]
    assert (draw.path, draw.probability, draw.rho, draw.cell) == (DrawPath.UNIFORM, 0.1, None, None)


def test_unavailable_tasks_keep_their_turn() -> None:
    made = uniform()
    order = [draw.task_id for draw in uniform().draw(10, version=0)]
    first = [draw.task_id for draw in made.draw(3, version=0, unavailable=[order[0], order[2]])]
    assert first == [order[1], order[3], order[4]]
    assert [draw.task_id for draw in made.draw(3, version=0)] == [order[0], order[2], order[5]]


def test_no_more_than_is_available() -> None:
    assert len(uniform().draw(99, version=0)) == 10
    assert len(uniform().draw(99, version=0, unavailable=["x0"])) == 9
    assert uniform().draw(1, version=0, unavailable=[task.id for task in TASKS]) == []


def test_nothing_is_learned() -> None:
    made = uniform()
    before = made.to_dict()
    made.observe([a_group(TASKS[0], {"a": "10"})], Pool(), version=3)
    made.keep_only(Pool())
    assert made.to_dict() == before


def test_state_restores_exactly() -> None:
    made = uniform()
    made.draw(3, version=0)
    saved = json.loads(json.dumps(made.to_dict()))
    again = uniform(seed=9)
    again.restore(saved)
    for _ in range(9):
        assert again.draw(4, version=0) == made.draw(4, version=0)


def test_bad_requests() -> None:
    with pytest.raises(ValueError, match=r"^count = 0: a batch has at least one task$"):
        uniform().draw(0, version=0)
    with pytest.raises(ValueError, match=r"^task 'zz' is not among the 10 training tasks$"):
        uniform().draw(1, version=0, unavailable=["x0", "zz"])
    with pytest.raises(ValueError, match=r"^tasks holds 'x' twice$"):
        Uniform([a_task("x"), a_task("x")], np.random.default_rng(0))


def test_foreign_states_are_refused() -> None:
    saved = uniform().to_dict()
    with pytest.raises(ValueError, match=r"^uniform sampler state has format 2, this version reads 1"):
        uniform().restore(saved | {"format": 2})
    with pytest.raises(ValueError, match=r"^uniform sampler state is of kind 'vade', this run samples with 'uniform'$"):
        uniform().restore(saved | {"kind": "vade"})
    with pytest.raises(ValueError, match=r"^uniform sampler state names task 'zz', which is not among the training"):
        uniform().restore(saved | {"queue": ["x1", "zz"]})
