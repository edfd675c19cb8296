"""What is stored reads back equal, bit by bit."""

import json
from typing import TypeVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arise.types import (
    Capability,
    Cell,
    Draw,
    DrawPath,
    EvidenceRecord,
    GenerationRecord,
    Group,
    Judgment,
    Observation,
    Rollout,
    ShownSkill,
    StopReason,
    Task,
    Tokens,
    ToolCall,
    Trajectory,
    Turn,
    Verdict,
    VerifierOutcome,
)
from arise.types.codec import from_json, to_json

T = TypeVar("T")


def through_json(kind: type[T], value: T) -> T:
    return from_json(kind, json.loads(json.dumps(to_json(value))))


@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=20), st.text())
def test_a_group_reads_back_with_the_same_bits(numbers: list[float], text: str) -> None:
    count = len(numbers)
    row = Tokens(np.arange(count), np.ones(count, dtype=bool), np.array(numbers), np.full(count, 3))
    turn = Turn(text, (ToolCall("bash", {"command": text}),), (Observation(text, error=True),))
    trajectory = Trajectory("t/0", "t", (turn,), StopReason.FINISHED, text, (row,), (ShownSkill("r001", 2),))
    judgment = Judgment(3, "judge", {"r001": Verdict.FAIL}, {"r002": "no reply"})
    group = Group(Task("t", text, ("a",), "d"), (Rollout(trajectory, 0.1, False, judgment),), 1)
    back = through_json(Group, group)
    assert to_json(back) == to_json(group)
    assert back.rollouts[0].trajectory.rows[0].logprob_U.tobytes() == row.logprob_U.tobytes()
    assert back.rollouts[0].judgment == judgment


def test_named_tuples_and_optional_fields_come_back_as_their_types() -> None:
    draw = Draw("t", DrawPath.ADAPTIVE, 0.5, 0.1, Cell("x", Capability.EXECUTION), 0.2, 0.3, 1, 2)
    assert through_json(Draw, draw) == draw
    view = GenerationRecord("e1", 1, 2, ("a",), "d", (), (), (ShownSkill("r", 1),), (), 8, 1)
    record = EvidenceRecord(view, "t", "t/0", (("r1", Verdict.PASS),), VerifierOutcome(True, 1.0))
    assert through_json(EvidenceRecord, record) == record
    assert through_json(EvidenceRecord, EvidenceRecord(view, "t", "t/0", (), None)).outcome is None


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"task_id": "t", "path": "by magic", "probability": 1.0}, "Draw.path: 'by magic' is not a valid DrawPath"),
        ({"task_id": "t", "path": "uniform", "probability": 1.0, "luck": 3}, "Draw: unknown field 'luck'"),
        ([1, 2], "Draw: expected an object, found list"),
    ],
)
def test_values_of_the_wrong_shape_are_named(value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_json(Draw, value)


def test_values_without_a_json_form_are_refused() -> None:
    with pytest.raises(TypeError, match="cannot store a complex"):
        to_json(1j)
