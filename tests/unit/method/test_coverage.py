import json

import numpy as np
import pytest

from arise.method.coverage import CoverageMap, coverage, discovery_probability, inverse_attempt_weights
from arise.types import Capability, Pool
from tests.builders import NAN, a_pool

V, X = Capability.VERIFICATION, Capability.EXECUTION


def map_of(*task_ids: str, **capability_of: Capability) -> CoverageMap:
    covered = CoverageMap(task_ids)
    covered.keep_only(a_pool(capability_of))
    return covered


def test_outstanding_evaluations() -> None:
    covered = map_of("x1", "x2", a=V, b=V)
    assert covered.outstanding().tolist() == [True, True]
    covered.observe("x1", ["a", "b"], [True, False], [True, False])
    assert covered.outstanding().tolist() == [True, True]
    covered.observe("x1", ["b"], [True], [False])
    assert covered.outstanding().tolist() == [False, True]
    assert covered.attempts_X.tolist() == [2, 0]
    assert covered.coverage() == 0.5


def test_with_an_empty_pool_every_task_is_outstanding() -> None:
    covered = map_of("x1", "x2")
    covered.observe("x1", [], [], [])
    assert covered.outstanding().tolist() == [True, True]
    assert covered.attempts_X.tolist() == [1, 0]
    assert covered.coverage() == 0.0


def test_repeated_evaluations_count_once_and_coverage_is_sticky() -> None:
    covered = map_of("x1", "x2", a=V)
    for valid in (True, True, False):
        covered.observe("x1", ["a"], [valid], [valid])
    assert covered.coverage() == 0.5
    assert covered.attempts_X.tolist() == [3, 0]


def test_applicable_evidence_is_reported_when_it_is_the_first_of_its_capability() -> None:
    covered = map_of("x1", "x2", a=V, b=V, c=X)
    assert covered.observe("x1", ["a", "b", "c"], [True] * 3, [True, True, False]) == [V]
    assert covered.observe("x1", ["a", "b", "c"], [True] * 3, [True, True, True]) == [X]
    assert covered.observe("x1", ["a", "b", "c"], [False] * 3, [True, True, True]) == []
    assert covered.capabilities_with_evidence(0) == [X, V], "in the order of Table 3"
    assert covered.capabilities_with_evidence(1) == []
    assert covered.applicable(V).tolist() == [True, False]


def test_applicable_evidence_leaves_with_the_last_rubric_that_gave_it() -> None:
    covered = map_of("x1", a=V, b=V)
    covered.observe("x1", ["a", "b"], [True, True], [True, True])
    covered.keep_only(a_pool({"b": V, "c": V}))
    assert covered.applicable(V).tolist() == [True]
    covered.keep_only(a_pool({"c": V}))
    assert covered.applicable(V).tolist() == [False]
    assert covered.coverage() == 0.0
    assert covered.attempts_X.tolist() == [1], "attempts are never reset"
    assert covered.outstanding().tolist() == [True]


def test_state_is_json_and_exact() -> None:
    covered = map_of("x1", "x2", "x3", a=V, b=X, c=V)
    covered.observe("x1", ["a", "b", "c"], [True, False, True], [True, True, False])
    covered.observe("x3", ["a"], [True], [True])
    covered.keep_only(a_pool({"b": X, "c": V, "d": V}))
    saved = json.loads(json.dumps(covered.to_dict()))
    restored = map_of("x1", "x2", "x3", z=V)
    restored.observe("x2", ["z"], [True], [True])
    restored.restore(saved)
    assert restored.to_dict() == covered.to_dict() == saved
    assert saved["attempts"] == [[0, 2], [1, 1]]
    assert restored.coverage() == covered.coverage()
    assert restored.outstanding().tolist() == covered.outstanding().tolist()
    for capability in Capability:
        assert restored.applicable(capability).tolist() == covered.applicable(capability).tolist()
    assert restored.observe("x1", ["b", "c"], [True, True], [True, True]) == covered.observe(
        "x1", ["b", "c"], [True, True], [True, True]
    )
    assert restored.to_dict() == covered.to_dict()


def test_foreign_states_are_refused() -> None:
    saved = map_of("x1", a=V).to_dict()
    with pytest.raises(ValueError, match=r"^coverage state has format 9, this version reads 1"):
        map_of("x1").restore(saved | {"format": 9})
    with pytest.raises(ValueError, match=r"^coverage state belongs to another set of training tasks: resume with"):
        map_of("x2").restore(saved)


def test_bad_observations() -> None:
    covered = map_of("x1", a=V)
    before = covered.to_dict()
    with pytest.raises(ValueError, match=r"^task 'x7' is not among the 1 training tasks$"):
        covered.observe("x7", ["a"], [True], [True])
    with pytest.raises(ValueError, match=r"^rubric 'z' is not active \(active: a\)$"):
        covered.observe("x1", ["z"], [True], [True])
    with pytest.raises(ValueError, match=r"^rubric_ids holds 'a' twice$"):
        covered.observe("x1", ["a", "a"], [True, True], [True, True])
    with pytest.raises(ValueError, match=r"^valid_I \(2,\) and applicable_I \(1,\) must fit 1 rubrics$"):
        covered.observe("x1", ["a"], [True, False], [True])
    with pytest.raises(ValueError, match=r"^valid_I \(1,\) and applicable_I \(0,\) must fit 1 rubrics$"):
        covered.observe("x1", ["a"], [True], [])
    assert covered.to_dict() == before


def test_bad_corpora() -> None:
    with pytest.raises(ValueError, match=r"^task_ids is empty: training needs at least one task$"):
        CoverageMap([])
    with pytest.raises(ValueError, match=r"^task_ids holds 'x' twice$"):
        CoverageMap(["x", "x"])


def test_coverage_of_counts() -> None:
    assert coverage({}, {}, task_count=4) == 0.0
    assert coverage({}, {"a": V}, task_count=4) == 0.0
    assert coverage({"a": 1, "b": 4}, {"a": V, "b": X}, task_count=4) == 0.625
    with pytest.raises(ValueError, match=r"^task_count = 0: coverage needs at least one training task$"):
        coverage({}, {}, task_count=0)
    for bad in (-1, 5):
        with pytest.raises(ValueError, match=rf"^evaluated_tasks\['a'\] = {bad} must be between 0 and task_count = 4$"):
            coverage({"a": bad}, {"a": V}, task_count=4)
    with pytest.raises(ValueError, match=r"^evaluated_tasks names rubric 'z', which is not active \(active: a\)$"):
        coverage({"a": 1, "z": 1}, {"a": V}, task_count=4)
    with pytest.raises(ValueError, match=r"^evaluated_tasks names rubric 'y', which is not active \(active: none\)$"):
        coverage({"z": 1, "y": 1}, {}, task_count=4)


def test_discovery_probability() -> None:
    assert discovery_probability(0.95, min_discovery=0.2) == 0.2
    assert discovery_probability(0.25, min_discovery=0.0) == 0.75
    with pytest.raises(ValueError, match=r"^coverage = 1\.2 must be between 0 and 1$"):
        discovery_probability(1.2)
    with pytest.raises(ValueError, match=r"^min_discovery = -1 must be between 0 and 1$"):
        discovery_probability(0.5, min_discovery=-1)


def test_attempts_must_be_counts() -> None:
    with pytest.raises(ValueError, match=r"^attempts_X\[1\] = -1\.0 must not be negative$"):
        inverse_attempt_weights([0, -1])
    with pytest.raises(ValueError, match=r"^attempts_X\[0\] = nan is not finite"):
        inverse_attempt_weights([NAN])


def test_growth_of_the_pool_keeps_what_was_recorded() -> None:
    covered = map_of("x1", "x2", a=V)
    covered.observe("x2", ["a"], [True], [True])
    covered.keep_only(a_pool({"a": V, "b": V, "c": X}))
    np.testing.assert_allclose(covered.coverage(), (0.25 + 0) / 2)
    assert covered.applicable(V).tolist() == [False, True]
    covered.keep_only(Pool())
    assert covered.coverage() == 0.0


def test_a_restored_map_forgets_like_the_original() -> None:
    covered = map_of("x1", "x2", a=V, b=V)
    covered.observe("x1", ["a", "b"], [True, True], [True, True])
    covered.observe("x2", ["a"], [True], [False])
    restored = map_of("x1", "x2")
    restored.restore(covered.to_dict())
    for each in (covered, restored):
        assert each.outstanding().tolist() == [False, True]
        each.keep_only(a_pool({"b": V, "c": V}))
        assert each.applicable(V).tolist() == [True, False]
        each.observe("x1", ["c"], [True], [False])
        assert each.outstanding().tolist() == [False, True]
        each.keep_only(a_pool({"c": V}))
        assert each.applicable(V).tolist() == [False, False]
