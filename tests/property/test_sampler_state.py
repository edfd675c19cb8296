"""Every sampler saved as JSON in the middle of a run and restored elsewhere continues with the very same draws."""

import json
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arise.baselines.uniform import Uniform
from arise.baselines.vade import Vade
from arise.method.ledger import CAPABILITIES
from arise.method.sampler import CapabilitySampler
from arise.types import Capability, Group, Pool, Task
from tests.builders import a_group, a_pool, a_task
from tests.property.test_bookkeeping import next_pool

Made = CapabilitySampler | Uniform | Vade
Maker = Callable[[Sequence[Task], np.random.Generator], Made]
TASKS = [a_task(f"x{n}", *(f"d{d}" for d in range(4) if (n >> d) & 1)) for n in range(14)]


def judged(random: np.random.Generator, task: Task, pool: Pool) -> Group:
    letters = {rubric.id: "".join(random.choice(list("10n-"), 3, p=[0.4, 0.3, 0.2, 0.1])) for rubric in pool.rubrics}
    return a_group(task, letters, rewards=random.choice([0.0, 1.0], 3).tolist())


def live(sampler: Made, random: np.random.Generator, iterations: int, version: int, pool: Pool) -> tuple[int, Pool]:
    """Draw, learn and change the pool for a while."""
    for _ in range(iterations):
        drawn = sampler.draw(4, version)
        groups = [judged(random, TASKS[int(draw.task_id[1:])], pool) for draw in drawn]
        sampler.observe(groups, pool, version)
        version += int(random.integers(0, 3))
        if random.random() < 0.4:
            active: dict[str, Capability] = {rubric.id: rubric.capability for rubric in pool.rubrics}
            pool = a_pool(next_pool(random, active, int(random.integers(10, 10_000)))[0])
            sampler.keep_only(pool)
    return version, pool


@pytest.mark.parametrize("make", [CapabilitySampler, Uniform, Vade])
@given(seed=st.integers(0, 2**32 - 1))
def test_a_restored_sampler_draws_the_same(make: Maker, seed: int) -> None:
    sampler = make(TASKS, np.random.default_rng(seed))
    pool = a_pool({f"r{n}": CAPABILITIES[n % 5] for n in range(7)})
    sampler.keep_only(pool)
    version, pool = live(sampler, np.random.default_rng(seed + 1), 5, 0, pool)
    saved = json.loads(json.dumps(sampler.to_dict()))
    restored = make(TASKS, np.random.default_rng())
    restored.restore(saved)
    assert restored.to_dict() == sampler.to_dict()
    for each in (sampler, restored):
        live(each, np.random.default_rng(seed + 2), 4, version, pool)
    assert restored.to_dict() == sampler.to_dict()
    assert restored.draw(9, version + 99) == sampler.draw(9, version + 99)


@given(seed=st.integers(0, 2**32 - 1))
def test_to_dict_does_not_disturb_the_draws(seed: int) -> None:
    watched, left_alone = (CapabilitySampler(TASKS, np.random.default_rng(seed)) for _ in range(2))
    watched.to_dict()
    assert watched.draw(5, 0) == left_alone.draw(5, 0)
