"""golden.md section 6: coverage and discovery probability."""

import pytest

from arise.method.coverage import CoverageMap, coverage, discovery_probability
from arise.types import Capability
from tests.builders import a_pool

V, X, D = Capability.VERIFICATION, Capability.EXECUTION, Capability.DEBUGGING
BEFORE = {"a": V, "b": V, "c": V, "e": X}
AFTER = {"a": V, "c": V, "e": X, "f": D}


def filled() -> CoverageMap:
    covered = CoverageMap(["x1", "x2", "x3"])
    covered.keep_only(a_pool(BEFORE))
    covered.observe("x1", ["a", "b"], [True, True], [False, True])
    covered.observe("x2", ["e"], [True], [False])
    return covered


def test_every_capability_weighs_the_same() -> None:
    value = coverage({"a": 1, "b": 1, "e": 1}, BEFORE, task_count=3)
    assert value == pytest.approx(5 / 18, rel=1e-12)
    assert abs(value - 0.25) > 0.02, "a micro-average over rubric x task cells"
    assert discovery_probability(value) == pytest.approx(13 / 18, rel=1e-12)
    assert filled().coverage() == pytest.approx(5 / 18, rel=1e-12)


def test_a_pool_update_forgets_retired_rubrics_and_must_cover_new_ones() -> None:
    covered = filled()
    covered.keep_only(a_pool(AFTER))
    assert covered.coverage() == pytest.approx(1 / 6, rel=1e-12)
    assert discovery_probability(covered.coverage()) == pytest.approx(5 / 6, rel=1e-12)


def test_empty_and_full_coverage() -> None:
    assert CoverageMap(["x1"]).coverage() == 0.0
    assert discovery_probability(0.0) == 1.0
    assert coverage(dict.fromkeys(AFTER, 3), AFTER, task_count=3) == 1.0
    assert discovery_probability(1.0) == 0.1
