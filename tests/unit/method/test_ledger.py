"""The ledger's bookkeeping around Eq. 20, its state, and what it refuses."""

import json

import numpy as np
import pytest

from arise.method.ledger import Ledger, contributions, require_format
from arise.types import Capability, Pool
from tests.builders import NAN, a_pool, close

V, X = Capability.VERIFICATION, Capability.EXECUTION


def ledger_of(**capability_of: Capability) -> Ledger:
    ledger = Ledger()
    ledger.keep_only(a_pool(capability_of))
    return ledger


def test_nothing_observed_is_nothing() -> None:
    ledger = ledger_of(a=V)
    assert ledger.cell("d", V, 5) == (0.0, 0.0)
    assert not ledger.task_types
    ledger.observe(["d"], ["a"], [[1.0, 0.0]], version=2)
    assert ledger.cell("d", X, 2) == (0.0, 0.0)
    assert ledger.cell("other", V, 2) == (0.0, 0.0)
    assert ledger.task_types == ("d",)


def test_cells_has_a_row_for_each_type_and_a_column_for_each_capability() -> None:
    ledger = ledger_of(a=V, b=X, c=V)
    ledger.observe(["d1"], ["a", "b", "c"], [[1.0], [0.0], [0.0]], version=1)
    ledger.observe(["d2", "d1"], ["b"], [[1.0]], version=1)
    passes_DC, fails_DC = ledger.cells(1)
    assert ledger.task_types == ("d1", "d2")
    close(passes_DC, [[0.0, 1.0, 0.5, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0, 0.0]])
    close(fails_DC, [[0.0, 1.0, 0.5, 0.0, 0.0], [0.0] * 5])


def test_the_first_observation_is_not_decayed_whatever_its_version() -> None:
    ledger = ledger_of(a=V)
    ledger.observe(["d"], ["a"], [[1.0, 0.0]], version=40)
    assert ledger.cell("d", V, 40) == (1.0, 1.0)


def test_one_version_later_only_the_observed_decay_applies() -> None:
    ledger = ledger_of(a=V)
    ledger.observe(["d"], ["a"], [[1.0, 0.0]], version=0)
    ledger.observe(["d"], ["a"], [[1.0]], version=1)
    close(ledger.cell("d", V, 1), (1.2, 0.2))


def test_an_observation_of_one_rubric_leaves_its_neighbours_alone() -> None:
    ledger = ledger_of(a=V, b=V)
    ledger.observe(["d"], ["a", "b"], [[1.0], [1.0]], version=0)
    ledger.observe(["d"], ["a", "b"], [[1.0], [NAN]], version=2)
    close(ledger.cell("d", V, 2), (0.5 * 0.2 * 0.999 + 1 + 0.5 * 0.999**2, 0))


def test_custom_decay() -> None:
    ledger = Ledger(observed_decay=0.5, unobserved_decay=0.25)
    ledger.keep_only(a_pool({"a": V}))
    ledger.observe(["d"], ["a"], [[1.0]], version=0)
    assert ledger.cell("d", V, 2) == (0.0625, 0.0)
    ledger.observe(["d"], ["a"], [[0.0]], version=3)
    assert ledger.cell("d", V, 3) == (0.5 * 0.0625, 1.0)


def test_a_rubric_that_returns_in_a_freed_column_starts_empty() -> None:
    ledger = ledger_of(a=V, b=X)
    ledger.observe(["d"], ["a", "b"], [[1.0], [1.0]], version=3)
    ledger.keep_only(a_pool({"b": X, "c": V}))
    assert ledger.cell("d", V, 3) == (0.0, 0.0)
    assert ledger.cell("d", X, 3) == (1.0, 0.0)
    ledger.observe(["d"], ["c"], [[0.0]], version=3)
    assert ledger.cell("d", V, 3) == (0.0, 1.0)
    ledger.keep_only(Pool())
    assert ledger.cell("d", X, 3) == (0.0, 0.0)


def test_groups_that_arrive_together_decay_once() -> None:
    one_by_one, together = ledger_of(a=V, b=X), ledger_of(a=V, b=X)
    for ledger in (one_by_one, together):
        ledger.observe(["d1", "d2"], ["a", "b"], [[1.0, 1.0], [0.0, NAN]], version=0)
    groups = [(["d1"], [[1.0, 0.0], [NAN, NAN]]), (["d1", "d3"], [[NAN, 1.0], [1.0, 1.0]]), ([], [[0.0, 0.0]] * 2)]
    for types, verdicts in groups:
        one_by_one.observe(types, ["a", "b"], verdicts, version=3)
    together.observe_groups([types for types, _ in groups], ["a", "b"], [verdicts for _, verdicts in groups], version=3)
    assert together.to_dict() == one_by_one.to_dict()
    together.observe_groups([], ["a", "b"], np.zeros((0, 2, 8)), version=4)
    assert together.to_dict() == one_by_one.to_dict()


def test_as_many_tag_lists_as_groups() -> None:
    with pytest.raises(ValueError, match=r"^types_G names 1 groups, but verdict_GIJ has 2$"):
        ledger_of(a=V).observe_groups([["d"]], ["a"], [[[1.0]], [[1.0]]], version=0)


def test_untagged_tasks_leave_no_trace() -> None:
    ledger = ledger_of(a=V)
    ledger.observe([], ["a"], [[1.0]], version=0)
    assert ledger.to_dict()["tallies"] == []


def test_state_is_json_and_exact() -> None:
    ledger = Ledger(observed_decay=0.5, unobserved_decay=0.25)
    ledger.keep_only(a_pool({"a": V, "b": X}))
    ledger.observe(["d1", "d2"], ["a", "b"], [[1.0, 0.0, 1.0], [NAN, 1.0, NAN]], version=1)
    ledger.observe(["d1"], ["a"], [[1.0]], version=3)
    ledger.observe(["d3"], ["a"], [[NAN]], version=4)
    saved = json.loads(json.dumps(ledger.to_dict()))
    restored = Ledger.from_dict(saved)
    assert restored.to_dict() == ledger.to_dict() == saved
    assert restored.task_types == ledger.task_types
    for mass, again in zip(ledger.cells(9), restored.cells(9), strict=True):
        np.testing.assert_array_equal(mass, again)
    assert saved["rubrics"] == [["a", "Verification"], ["b", "Execution"]]
    assert (saved["observed_decay"], saved["unobserved_decay"]) == (0.5, 0.25)
    assert saved["tallies"] == [
        ["d1", "a", 2 * 0.5 * 0.25 + 1, 0.125, 3],
        ["d1", "b", 1.0, 0.0, 1],
        ["d2", "a", 2.0, 1.0, 1],
        ["d2", "b", 1.0, 0.0, 1],
    ]


def test_restored_sums_are_identical_after_columns_were_reused() -> None:
    names = {f"r{n}": V for n in range(1, 8)}
    ledger = ledger_of(**names)
    random = np.random.default_rng(0)
    ledger.observe(["d"], list(names), random.integers(0, 2, (7, 8)).astype(float), version=0)
    survivors = {"r3": V, "r5": V, "r6": V, "r8": V, "r9": V, "r10": V}
    ledger.keep_only(a_pool(survivors))
    ledger.observe(["d"], list(survivors), random.integers(0, 2, (6, 8)).astype(float), version=3)
    restored = Ledger.from_dict(ledger.to_dict())
    for version in range(3, 60):
        assert restored.cell("d", V, version) == ledger.cell("d", V, version)


@pytest.mark.parametrize("found", [0, 2, "1", None])
def test_another_format_is_refused(found: object) -> None:
    saved = ledger_of(a=V).to_dict() | {"format": found}
    with pytest.raises(ValueError, match=rf"^ledger state has format {found!r}, this version reads 1: resume with"):
        Ledger.from_dict(saved)


def test_formats_and_kinds() -> None:
    require_format("x", {"format": 3, "kind": "k"}, 3)
    require_format("x", {"format": 3, "kind": "k"}, 3, "k")
    with pytest.raises(ValueError, match=r"^x state is of kind 'k', this run samples with 'other'$"):
        require_format("x", {"format": 3, "kind": "k"}, 3, "other")
    with pytest.raises(ValueError, match=r"^x state is of kind None, this run samples with 'other'$"):
        require_format("x", {"format": 3}, 3, "other")


@pytest.mark.parametrize("entry", [["d", "a", -1.0, 0.0, 0], ["d", "a", 0.0, -1.0, 0], ["d", "a", 0.0, 0.0, -1]])
def test_negative_entries_are_refused(entry: list[object]) -> None:
    saved = ledger_of(a=V).to_dict() | {"tallies": [entry]}
    with pytest.raises(ValueError, match=r"^ledger state: negative entry for \('d', 'a'\): "):
        Ledger.from_dict(saved)


def test_tallies_of_zero_are_not_negative() -> None:
    saved = ledger_of(a=V).to_dict() | {"tallies": [["d", "a", 0.0, 0.0, 0]]}
    assert Ledger.from_dict(saved).task_types == ("d",)


def test_tally_of_an_unknown_rubric() -> None:
    saved = ledger_of(a=V).to_dict() | {"tallies": [["d", "z", 1.0, 0.0, 0]]}
    with pytest.raises(ValueError, match=r"^rubric 'z' is not active \(active: a\)$"):
        Ledger.from_dict(saved)


def test_versions_only_grow() -> None:
    ledger = ledger_of(a=V)
    ledger.observe(["d"], ["a"], [[1.0]], version=3)
    before = ledger.to_dict()
    with pytest.raises(ValueError, match=r"^version = 2 is older than evidence of version 3: versions only grow$"):
        ledger.observe(["d"], ["a"], [[1.0]], version=2)
    with pytest.raises(ValueError, match=r"^version = 2 is older than evidence of version 3: versions only grow$"):
        ledger.cell("d", V, 2)
    with pytest.raises(ValueError, match=r"^version = -1 must not be negative$"):
        ledger.observe(["d"], ["a"], [[1.0]], version=-1)
    assert ledger.to_dict() == before


def test_observations_of_unknown_or_repeated_rubrics_are_refused() -> None:
    ledger = ledger_of(a=V, b=X)
    with pytest.raises(ValueError, match=r"^rubric 'z' is not active \(active: a, b\)$"):
        ledger.observe(["d"], ["z"], [[1.0]], version=0)
    with pytest.raises(ValueError, match=r"^rubric_ids holds 'a' twice$"):
        ledger.observe(["d"], ["a", "a"], [[1.0], [1.0]], version=0)
    with pytest.raises(ValueError, match=r"^task_types holds 'd' twice$"):
        ledger.observe(["d", "d"], ["a"], [[1.0]], version=0)
    with pytest.raises(ValueError, match=r"^verdict_IJ has 1 rubrics, but capability_I names 2$"):
        ledger.observe(["d"], ["a", "b"], [[1.0]], version=0)
    with pytest.raises(ValueError, match=r"^verdict_IJ\[0, 0\] = 3\.0 is not a verdict"):
        ledger.observe(["d"], ["a"], [[3.0]], version=0)
    ledger.observe(["d"], ["a"], [[1.0]], version=0)
    with pytest.raises(ValueError, match=r"'Nonsense' is not a valid Capability"):
        ledger.cell("d", "Nonsense", 0)  # type: ignore[arg-type]


def test_unknown_capability_of_a_contribution() -> None:
    with pytest.raises(ValueError, match=r"^capability_I = \['Nonsense'\] must name capabilities of Table 3: Under"):
        contributions([[1.0]], ["Nonsense"])  # type: ignore[list-item]


@pytest.mark.parametrize("name", ["observed_decay", "unobserved_decay"])
def test_decay_must_be_a_fraction(name: str) -> None:
    with pytest.raises(ValueError, match=rf"^{name} = 1\.5 must be between 0 and 1$"):
        Ledger(**{name: 1.5})


def test_contributions_name_what_is_wrong() -> None:
    with pytest.raises(ValueError, match=r"^verdict_IJ must be 2-d, got shape \(1,\)$"):
        contributions([1.0], [V])
    with pytest.raises(ValueError, match=r"^verdict_IJ\[0, 1\] = 2\.0 is not a verdict"):
        contributions([[1.0, 2.0]], [V])
    with pytest.raises(ValueError, match=r"^verdict_IJ has 1 rubrics, but capability_I names 2$"):
        contributions(np.ones((3, 1, 4)), [V, X])
