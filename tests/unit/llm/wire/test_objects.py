"""Diagnostics, pairs, rewrites, duplicate decisions, annotations: each item stands or is dropped with a reason."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arise.llm.wire import (
    parse_annotations,
    parse_diagnostics,
    parse_duplicates,
    parse_pairs,
    parse_rewrite,
    parse_verdicts,
)
from arise.types import Capability
from tests.unit.text.test_rules import SKILL

ITEM = {
    "kind": "failure_gap",
    "issue_tag": "error_response",
    "text": "When a call fails, the agent failed to read the message, observable via an equal next call.",
    "observable_signals": ["equal next call"],
    "related_rubric_ids": [],
}
PAIR = {
    "criteria_text": "The agent changes something related before it repeats a failed call.",
    "issue_tag": "error_response",
    "capability_tag": "Debugging",
    "abstraction_level": "global",
    "issue_evidence_refs": ["e1"],
    "contrast_evidence_refs": ["e2"],
    "observable_signals": ["coevolution_rubric_diagnostics"],
    "applicability_condition": "A tool call failed with a visible message.",
    "rubric_rule_text": "Fail if the agent repeats a failed call without a related change; pass in all other cases.",
    "skill_text": SKILL,
}
UNCOVERED = {
    "process_name": "scarf-knitting",
    "definition": "make a garment of yarn",
    "observable_outcome": "a garment",
    "nearest_tag_ids": ["weaving"],
    "distinction": "no loom",
}


def diagnostics(**change: Any) -> str:
    body = {
        "covered_by_active_rubrics": False,
        "rubric_gap_summary": "one gap",
        "uncovered_issues": [ITEM],
        "positive_uncovered_strategies": [],
    }
    return json.dumps({"diagnostics": body | change})


def test_sound_diagnostics() -> None:
    reply = parse_diagnostics(diagnostics())
    assert reply.diagnostic is not None
    assert reply.diagnostic.uncovered_issues[0].issue_tag == "error_response"
    assert reply.dropped == ()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"kind": "positive_strategy"}, "expected 'failure_gap'"),
        ({"issue_tag": "laziness"}, "not in the taxonomy"),
        ({"text": ""}, "text"),
        ({"text": "x" * 5001}, "text"),
        ({"observable_signals": []}, "observable_signals"),
        ({"observable_signals": "none"}, "observable_signals"),
        ({"related_rubric_ids": ["r001"]}, "not a rubric of this request"),
        ({"text": "When done, the agent should stop because the tests pass."}, "outcome"),
        ({"confidence": 1}, "Extra inputs"),
    ],
)
def test_a_bad_item_is_dropped_alone(change: dict[str, Any], reason: str) -> None:
    reply = parse_diagnostics(diagnostics(uncovered_issues=[ITEM | change, ITEM]))
    assert reply.diagnostic is not None
    assert len(reply.diagnostic.uncovered_issues) == 1
    assert reason in reply.dropped[0]


def test_a_sixth_item_is_dropped() -> None:
    reply = parse_diagnostics(diagnostics(uncovered_issues=[ITEM] * 7))
    assert reply.diagnostic is not None
    assert len(reply.diagnostic.uncovered_issues) == 5
    assert len(reply.dropped) == 2


def test_covered_follows_the_lists() -> None:
    empty = diagnostics(uncovered_issues=[], covered_by_active_rubrics=True)
    bootstrap = parse_diagnostics(empty)
    assert bootstrap.diagnostic is not None
    assert not bootstrap.diagnostic.covered_by_active_rubrics, "with no rubric nothing is covered"
    with_pool = parse_verdicts(empty, [], diagnostics=True, pool_ids=["r001"]).diagnostics
    assert with_pool.diagnostic is not None
    assert with_pool.diagnostic.covered_by_active_rubrics
    contradiction = parse_verdicts(diagnostics(covered_by_active_rubrics=True), [], True, ["r001"]).diagnostics
    assert contradiction.diagnostic is not None
    assert not contradiction.diagnostic.covered_by_active_rubrics
    assert "contradicts" in contradiction.dropped[0]


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"diagnostics": 3}', '{"diagnostics": {}, "more": 1}', "NaN", "```"])
def test_unreadable_diagnostics_are_absent_with_a_reason(text: str) -> None:
    reply = parse_diagnostics(text)
    assert reply.diagnostic is None
    assert reply.absent


def pairs(*items: dict[str, Any], max_items: int = 8) -> Any:
    return parse_pairs(json.dumps({"items": list(items)}), {"e1", "e2", "e3"}, max_items)


def test_a_sound_pair() -> None:
    reply = pairs(PAIR)
    assert reply.rejections == ()
    assert reply.proposals[0].capability is Capability.DEBUGGING
    assert reply.proposals[0].contrast_refs == ("e2",)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"issue_tag": "laziness"}, "not in the taxonomy"),
        ({"capability_tag": "Charm"}, "not one of the five"),
        ({"abstraction_level": "sample"}, "abstraction_level"),
        ({"issue_evidence_refs": []}, "issue_evidence_refs"),
        ({"issue_evidence_refs": ["e9"]}, "names unknown evidence 'e9'"),
        ({"issue_evidence_refs": ["e1", "e1"]}, "names an evidence id twice"),
        ({"contrast_evidence_refs": ["e1"]}, "shares 'e1' with the issue evidence"),
        ({"observable_signals": ["skill_usage_summary"]}, "lacks coevolution_rubric_diagnostics"),
        ({"observable_signals": ["coevolution_rubric_diagnostics", "raw_reasoning"]}, "observable_signals"),
        ({"rejection_risk": "low"}, "Extra inputs"),
        ({"skill_text": "short"}, "skill_text"),
        ({"rubric_rule_text": "Pass if the verifier passes and fail if the verifier does not."}, "outcome"),
    ],
)
def test_a_bad_pair_is_dropped_alone(change: dict[str, Any], reason: str) -> None:
    reply = pairs(PAIR | change, PAIR)
    assert len(reply.proposals) == 1
    assert reason in reply.rejections[0].reason


def test_more_than_max_items_are_not_taken() -> None:
    reply = pairs(PAIR, PAIR, PAIR, max_items=2)
    assert (len(reply.proposals), len(reply.rejections)) == (2, 1)


@pytest.mark.parametrize("text", ["", "[]", '{"items": {}}', '{"items": [], "note": ""}', '{"items": [], "items": []}'])
def test_unreadable_pairs(text: str) -> None:
    assert parse_pairs(text, set(), 8).unreadable


def test_items_that_are_not_objects_are_dropped() -> None:
    assert len(parse_pairs('{"items": [1, "x", null]}', set(), 8).rejections) == 3


def test_rewrites() -> None:
    assert parse_rewrite(json.dumps({"skill_text": SKILL})) == (SKILL, "")
    assert parse_rewrite(json.dumps({"skill_text": SKILL, "why": ""}))[0] is None
    assert parse_rewrite(json.dumps({"skill_text": "short"}))[0] is None
    assert "id of the evidence" in parse_rewrite(json.dumps({"skill_text": SKILL + " case-7"}), ["case-7"])[1]
    assert parse_rewrite("no")[1] == "not JSON"


def test_duplicate_decisions_count_once_or_not_at_all() -> None:
    lines = [
        '{"pair_id": "0.0", "same": true}',
        '{"pair_id": "0.1", "same": true}',
        '{"pair_id": "0.1", "same": false}',
    ]
    lines += ['{"pair_id": "9.9", "same": true}', '{"pair_id": "1.0", "same": "yes"}', "prose"]
    assert parse_duplicates("\n".join(lines), ["0.0", "0.1", "1.0"]) == {"0.0": True}


def annotated(**change: Any) -> Any:
    judgment = {
        "task_key": "t0",
        "matched_tag_ids": ["weaving"],
        "match_rationale": "it asks for cloth",
        "uncovered": None,
        "confidence": "high",
    }
    return parse_annotations(json.dumps({"judgments": [judgment | change]}), ["t0"], {"weaving", "sewing"})


def test_a_sound_annotation() -> None:
    assert annotated().annotations["t0"].task_types == ("weaving",)
    open_task = annotated(matched_tag_ids=[], uncovered=UNCOVERED).annotations["t0"]
    assert open_task.uncovered is not None
    assert open_task.uncovered.nearest == ("weaving",)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"matched_tag_ids": ["dancing"]}, "not in the registry"),
        ({"matched_tag_ids": ["weaving", "weaving"]}, "repeats"),
        ({"uncovered": UNCOVERED}, "null with a match"),
        ({"matched_tag_ids": []}, "null with a match"),
        ({"matched_tag_ids": [], "uncovered": UNCOVERED | {"nearest_tag_ids": ["dancing"]}}, "not in the registry"),
        ({"matched_tag_ids": [], "uncovered": UNCOVERED | {"process_name": "Scarf Knitting"}}, "process_name"),
        ({"confidence": "certain"}, "confidence"),
        ({"task_key": "t1"}, "no judgment of this task"),
    ],
)
def test_a_bad_annotation_is_absent(change: dict[str, Any], reason: str) -> None:
    reply = annotated(**change)
    assert reply.annotations == {}
    assert reason in reply.absent["t0"]


def test_a_task_judged_twice_is_absent() -> None:
    text = json.dumps({"judgments": [{"task_key": "t0"}, {"task_key": "t0"}]})
    assert parse_annotations(text, ["t0"], set()).absent == {"t0": "2 judgments of this task"}


@given(
    st.recursive(
        st.none() | st.booleans() | st.text() | st.floats(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
def test_any_json_is_survived(value: Any) -> None:
    text = json.dumps(value)
    parse_diagnostics(text)
    parse_pairs(text, {"e1"}, 3)
    parse_rewrite(text)
    parse_annotations(text, ["t0"], {"weaving"})
    parse_diagnostics(json.dumps({"diagnostics": value}))
    parse_pairs(json.dumps({"items": [value]}), {"e1"}, 3)
    parse_annotations(json.dumps({"judgments": [value]}), ["t0"], {"weaving"})
