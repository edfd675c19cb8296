from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from arise.types import Capability, Group, Pool, Skill, StopReason, Tokens, Trajectory
from tests.builders import a_diagnostic, a_pool, a_rollout, a_task


def tokens(*generated: bool) -> Tokens:
    size = len(generated)
    return Tokens(np.arange(size), np.array(generated), np.zeros(size), np.zeros(size, dtype=np.int64))


def test_generated_tokens_are_counted_over_all_rows() -> None:
    trajectory = Trajectory("t", "x", (), StopReason.FINISHED, rows=(tokens(False, True, True), tokens(True)))
    assert trajectory.generated_tokens == 3
    assert len(trajectory.rows[0]) == 3


def test_token_arrays_have_one_length() -> None:
    with pytest.raises(ValueError, match=r"^Tokens: ids_U, generated_U, logprob_U and version_U must be 1-d of one"):
        Tokens(np.arange(3), np.zeros(2, dtype=np.bool_), np.zeros(3), np.zeros(3, dtype=np.int64))
    flat = np.zeros((1, 2))
    with pytest.raises(ValueError, match=r"^Tokens: "):
        Tokens(flat.astype(np.int64), flat.astype(np.bool_), flat, flat.astype(np.int64))


def test_a_group_is_complete_when_every_rollout_has_a_reward() -> None:
    assert Group(a_task(), (a_rollout(0), a_rollout(1)), 2).complete
    assert not Group(a_task(), (a_rollout(0),), 2).complete
    assert not Group(a_task(), (a_rollout(0), a_rollout(1, reward=None)), 2).complete


def test_finding_a_pair() -> None:
    pool = a_pool({"a": Capability.EXECUTION, "b": Capability.DEBUGGING}, version=4)
    assert pool.find("b").rubric.capability is Capability.DEBUGGING
    assert [rubric.id for rubric in pool.rubrics] == ["a", "b"]
    assert len(pool) == 2
    with pytest.raises(ValueError, match=r"^rubric 'z' is not in pool version 4 \(active: a, b\)$"):
        pool.find("z")
    with pytest.raises(ValueError, match=r"^rubric 'z' is not in pool version 0 \(active: none, the pool is empty\)$"):
        Pool().find("z")


def test_values_are_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        Skill("text").active = True  # type: ignore[misc]


def test_diagnostics_have_items() -> None:
    assert a_diagnostic(1, 0).has_items
    assert a_diagnostic(0, 1).has_items
    assert not a_diagnostic(0, 0).has_items
    assert a_diagnostic(0, 0).covered_by_active_rubrics
