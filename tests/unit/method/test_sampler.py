"""The sampler's paths one by one; its distributions are in tests/property/test_sampler_distribution.py."""

import json
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from arise.config.sampler import CapabilitySampling
from arise.method.sampler import CapabilitySampler, cell_probabilities, cell_quota, cell_weight, pass_estimates
from arise.types import Capability, Cell, DrawPath, Pool, Task
from tests.builders import NAN, a_group, a_pool, a_task

V, X = Capability.VERIFICATION, Capability.EXECUTION
TASKS = [a_task(f"x{n}", "d1" if n % 2 else "d2") for n in range(8)]
POOL = a_pool({"a": V, "b": X})


PAPER = CapabilitySampling()


def sampler(
    settings: CapabilitySampling = PAPER, pool: Pool = POOL, tasks: Sequence[Task] = TASKS, seed: int = 0
) -> CapabilitySampler:
    made = CapabilitySampler(tasks, np.random.default_rng(seed), settings)
    made.keep_only(pool)
    return made


def covered(settings: CapabilitySampling = PAPER) -> CapabilitySampler:
    """Every task evaluated by every rubric; `a` applied everywhere, `b` to x0 only."""
    made = sampler(settings)
    groups = [a_group(task, {"a": "10", "b": "1n" if task.id == "x0" else "nn"}) for task in TASKS]
    made.observe(groups, POOL, version=0)
    return made


def test_with_nothing_evaluated_every_slot_is_discovery() -> None:
    draws = sampler(pool=Pool()).draw(8, version=0)
    assert {draw.path for draw in draws} == {DrawPath.DISCOVERY}
    assert {draw.rho for draw in draws} == {1.0}
    assert len({draw.task_id for draw in draws}) == 8
    assert draws[0].probability == 1 / 8
    assert draws[-1].probability == 1.0
    assert {(draw.attempts, draw.cell, draw.estimate, draw.weight) for draw in draws} == {(0, None, None, None)}


def test_discovery_draws_only_tasks_with_outstanding_evaluations() -> None:
    made = sampler()
    made.observe([a_group(task, {"a": "10", "b": "01"}) for task in TASKS[:6]], POOL, version=0)
    draws = made.draw(8, version=0)
    assert {draw.task_id for draw in draws if draw.path is DrawPath.DISCOVERY} <= {"x6", "x7"}


def test_an_adaptive_draw_says_why() -> None:
    made = covered(CapabilitySampling(min_discovery=0.0, quota_fraction=1.0))
    draws = made.draw(8, version=0)
    assert {draw.path for draw in draws} == {DrawPath.ADAPTIVE}
    first = draws[0]
    assert first.cell is not None
    assert first.estimate is not None
    assert first.weight == first.estimate * (1 - first.estimate) ** 2
    assert first.rho == 0.0
    assert first.quota_left == 7
    assert first.attempts == 1
    assert 0 < first.probability < 1
    for draw in draws:
        assert draw.cell in made.members
        assert made.coverage.index(draw.task_id) in made.members[draw.cell]
    left = Counter(draw.cell for draw in draws)
    assert [draw.quota_left for draw in draws if draw.cell == first.cell] == [7 - n for n in range(left[first.cell])]


def test_every_eligible_cell_can_be_chosen() -> None:
    made = covered(CapabilitySampling(min_discovery=0.0))
    assert {made.draw(1, version=0)[0].cell for _ in range(200)} == set(made.members)


def test_settings_reach_ledger_and_draws() -> None:
    made = sampler(CapabilitySampling(observed_decay=0.5, unobserved_decay=0.25))
    made.observe([a_group(TASKS[1], {"a": "10", "b": "nn"})], POOL, version=0)
    assert made.ledger.cell("d1", V, 2) == (0.0625, 0.0625)
    made.observe([a_group(TASKS[1], {"a": "11", "b": "nn"})], POOL, version=1)
    assert made.ledger.cell("d1", V, 1) == (2.5, 0.5)


def test_members_have_prior_applicable_evidence_for_the_capability() -> None:
    made = covered()
    assert made.members == {
        Cell("d2", V): [0, 2, 4, 6],
        Cell("d1", V): [1, 3, 5, 7],
        Cell("d2", X): [0],
    }


def test_quota_binds_adaptive_draws_only_and_then_the_fallback_fills_up() -> None:
    draws = covered(CapabilitySampling(min_discovery=0.0, quota_fraction=0.25)).draw(8, version=0)
    adaptive = Counter(draw.cell for draw in draws if draw.path is DrawPath.ADAPTIVE)
    assert max(adaptive.values()) <= 2
    assert adaptive[Cell("d2", X)] <= 1, "one member only"
    fallback = [draw for draw in draws if draw.path is DrawPath.FALLBACK]
    assert len(draws) == 8
    assert len(fallback) >= 3
    assert len({draw.task_id for draw in draws}) == 8


def test_fallback_prefers_discovery_candidates() -> None:
    made = sampler(CapabilitySampling(min_discovery=0.0, quota_fraction=0.0))
    made.observe([a_group(task, {"a": "10", "b": "nn"}) for task in TASKS[:7]], POOL, version=0)
    made.coverage.attempts_X[7] = 1000  # even the least likely candidate comes before tasks without outstanding ones
    for _ in range(20):
        draws = made.draw(8, version=0)
        fallback = [draw.task_id for draw in draws if draw.path is DrawPath.FALLBACK]
        if any(draw.task_id == "x7" and draw.path is DrawPath.DISCOVERY for draw in draws):
            continue
        assert fallback[0] == "x7"


def test_fallback_over_everything_uses_inverse_attempts() -> None:
    made = sampler(CapabilitySampling(min_discovery=0.0))
    made.observe([a_group(task, {"a": "nn", "b": "nn"}) for task in TASKS], POOL, version=0)
    assert made.members == {}
    draws = made.draw(3, version=0)
    assert {draw.path for draw in draws} == {DrawPath.FALLBACK}
    assert draws[0].probability == 1 / 8
    assert draws[1].probability == pytest.approx(1 / 7)


def test_unavailable_tasks_are_not_drawn() -> None:
    made = covered(CapabilitySampling(quota_fraction=1.0))
    for _ in range(10):
        draws = made.draw(8, version=0, unavailable=["x0", "x1", "x1", "x2"])
        assert sorted(draw.task_id for draw in draws) == ["x3", "x4", "x5", "x6", "x7"]
        assert Cell("d2", X) not in {draw.cell for draw in draws}
    assert made.draw(2, version=0, unavailable=[task.id for task in TASKS]) == []


def test_batches_larger_than_the_corpus_stop_at_the_corpus() -> None:
    assert len(sampler().draw(99, version=0)) == 8


def test_untagged_tasks_come_by_discovery_only() -> None:
    tasks = [a_task("x0"), a_task("x1", "d", "d")]
    made = sampler(tasks=tasks)
    made.observe([a_group(task, {"a": "10", "b": "10"}) for task in tasks], POOL, version=0)
    assert made.members == {Cell("d", V): [1], Cell("d", X): [1]}, "a tag given twice counts once"
    assert made.ledger.cell("d", V, 0) == (1.0, 1.0)


def test_incomplete_or_unjudged_groups_teach_nothing() -> None:
    made = sampler()
    before = made.to_dict()
    lost = a_group(TASKS[0], {"a": "10", "b": "10"}, rewards=[1.0, None])
    unjudged = a_group(TASKS[1], {"a": "--", "b": "--"})
    made.observe([lost], POOL, version=0)
    assert made.to_dict() == before
    made.observe([unjudged], POOL, version=0)
    assert made.coverage.attempts_X.tolist() == [0, 1, 0, 0, 0, 0, 0, 0], "an attempt, whatever the judge gave"
    assert made.coverage.coverage() == 0.0


def test_seven_of_eight_valid_verdicts_are_evidence_but_not_coverage() -> None:
    made = sampler()
    made.observe([a_group(TASKS[1], {"a": "1000000-", "b": "nnnnnnnn"})], POOL, version=0)
    assert made.ledger.cell("d1", V, 0) == (1.0, 6.0)
    assert made.coverage.coverage() == pytest.approx((0 + 1 / 8) / 2)
    assert made.members == {Cell("d1", V): [1]}


def test_a_pool_update_drops_members_and_evidence_of_retired_rubrics() -> None:
    made = covered()
    made.keep_only(a_pool({"b": X, "c": V}))
    assert made.members == {Cell("d2", X): [0]}
    assert made.ledger.cell("d1", V, 0) == (0.0, 0.0)
    assert made.coverage.outstanding().all()


def test_state_restores_exactly() -> None:
    made = covered()
    made.draw(4, version=0)
    saved = json.loads(json.dumps(made.to_dict()))
    again = sampler(seed=99, pool=Pool())
    again.restore(saved)
    assert again.to_dict() == made.to_dict()
    assert again.members == made.members
    for version in range(5):
        assert again.draw(6, version) == made.draw(6, version)


def test_foreign_states_are_refused_and_change_nothing() -> None:
    saved = covered().to_dict()
    made = sampler()
    before = made.to_dict()
    with pytest.raises(ValueError, match=r"^sampler state has format 2, this version reads 1"):
        made.restore(saved | {"format": 2})
    with pytest.raises(ValueError, match=r"^sampler state is of kind 'vade', this run samples with 'capability'$"):
        made.restore(saved | {"kind": "vade"})
    with pytest.raises(ValueError, match=r"^ledger state has format None"):
        made.restore(saved | {"ledger": {}})
    with pytest.raises(ValueError, match=r"^coverage state has format None"):
        made.restore(saved | {"coverage": {}})
    assert made.to_dict() == before


@pytest.mark.parametrize("name", ["observed_decay", "unobserved_decay"])
def test_a_state_made_with_other_decays_is_refused(name: str) -> None:
    saved = covered().to_dict()
    made = sampler(CapabilitySampling.model_validate({name: 0.5}))
    with pytest.raises(ValueError, match=rf"^sampler state was made with {name} = .*, this run has 0\.5$"):
        made.restore(saved)


def test_bad_requests() -> None:
    made = sampler()
    for count in (0, -1):
        with pytest.raises(ValueError, match=rf"^count = {count}: a batch has at least one task$"):
            made.draw(count, version=0)
    with pytest.raises(ValueError, match=r"^task 'zz' is not among the 8 training tasks$"):
        made.draw(1, version=0, unavailable=["zz"])
    with pytest.raises(ValueError, match=r"^task 'zz' is not among the 8 training tasks$"):
        made.observe([a_group(a_task("zz"), {"a": "1", "b": "1"})], POOL, version=0)
    with pytest.raises(ValueError, match=r"^rubric 'new' is not active \(active: a, b\)$"):
        made.observe([a_group(TASKS[0], {"new": "1"})], a_pool({"new": V}), version=0)


def test_an_older_version_changes_nothing() -> None:
    made = covered()
    made.observe([a_group(TASKS[0], {"a": "10", "b": "10"})], POOL, version=5)
    before = made.to_dict()
    with pytest.raises(ValueError, match=r"^version = 4 is older than evidence of version 5"):
        made.observe([a_group(TASKS[0], {"a": "10", "b": "10"})], POOL, version=4)
    with pytest.raises(ValueError, match=r"^version = 4 is older than evidence of version 5"):
        made.draw(1, version=4)
    assert made.to_dict() == before


def test_weights_need_probabilities() -> None:
    with pytest.raises(ValueError, match=r"^p\[2\] = 1\.5 must be a probability between 0 and 1$"):
        cell_weight([0.0, 1.0, 1.5])
    with pytest.raises(ValueError, match=r"^p\[0, 1\] = nan must be a probability between 0 and 1$"):
        cell_weight([[0.5, NAN]])
    with pytest.raises(ValueError, match=r"^p = -1\.0 must be a probability between 0 and 1$"):
        cell_weight(-1)
    assert cell_weight([0.0, 1.0]).tolist() == [0.0, 0.0]


def test_weights_of_zero_become_uniform() -> None:
    assert cell_probabilities(np.zeros(4)).tolist() == [0.25] * 4


def test_quota_arguments() -> None:
    with pytest.raises(ValueError, match=r"^batch_size = 0: a batch has at least one task$"):
        cell_quota(0, 0.25)
    with pytest.raises(ValueError, match=r"^quota_fraction = nan must be between 0 and 1$"):
        cell_quota(4, NAN)


def test_estimates_use_a_uniform_prior() -> None:
    random, reference = np.random.default_rng(5), np.random.default_rng(5)
    np.testing.assert_array_equal(
        pass_estimates([0.0, 2.0], [0.0, 6.0], random), reference.beta([1.0, 3.0], [1.0, 7.0])
    )


def test_no_random_number_is_drawn_for_discovery_without_candidates() -> None:
    made = covered()
    same = np.random.default_rng()
    same.bit_generator.state = made.random.bit_generator.state
    draw = made.draw(1, version=0)[0]
    # Cells in order: (d1, V), (d2, V), (d2, X); the very first random numbers are their Beta draws.
    assert draw.estimate in same.beta([5.0, 5.0, 2.0], [5.0, 5.0, 1.0])


def test_groups_of_different_sizes_can_arrive_together() -> None:
    groups = [a_group(TASKS[1], {"a": "10", "b": "nn"}), a_group(TASKS[3], {"a": "0nn-", "b": "1111"})]
    together, apart = sampler(), sampler()
    together.observe(groups, POOL, version=0)
    for group in groups:
        apart.observe([group], POOL, version=0)
    assert together.to_dict() == apart.to_dict()
    assert together.members == apart.members
