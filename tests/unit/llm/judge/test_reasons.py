"""Reasons of verdicts: short, on one line, with a turn that exists; a bad one costs itself and never the verdict."""

import json
from dataclasses import replace

import pytest

from arise.llm.judge.majority import merged
from arise.llm.prompts.prompt import Template, render
from arise.llm.prompts.shapes import verdict_lines
from arise.llm.wire import parse_verdicts
from arise.llm.wire.verdicts import REASON_CHARS
from arise.run.record import without_keys
from arise.testing import Action, Ask, Say, honest
from arise.types import Group, Judgment, Verdict
from tests.unit.llm.builders import TASK, pool, rollout
from tests.unit.llm.judge.test_judge import judged

PASS, FAIL = Verdict.PASS, Verdict.FAIL


def line(verdict: str = "fail", more: dict[str, object] | None = None, **fields: object) -> str:
    return json.dumps({"rubric_id": "a", "applicable": True, "verdict": verdict} | (more or {}) | fields)


def test_a_reason_names_its_turn() -> None:
    reply = parse_verdicts(line(turn=3, reason="runs\tthe same\ncall again"), ["a"], turns=4)
    assert reply.verdicts == {"a": FAIL}
    assert reply.reasons == {"a": "turn 3: runs the same call again"}
    assert not reply.problems


@pytest.mark.parametrize(
    ("more", "reason", "problem"),
    [
        ({}, None, None),
        ({"turn": None, "reason": None}, None, None),
        ({"turn": 2}, None, None),
        ({"turn": 2, "reason": "  "}, None, None),
        ({"turn": 9, "reason": "late"}, "late", "there is no turn 9"),
        ({"turn": 0, "reason": "early"}, "early", "there is no turn 0"),
        ({"turn": True, "reason": "a truth"}, "a truth", "there is no turn True"),
        ({"turn": "2", "reason": "a text"}, "a text", "there is no turn 2"),
        ({"turn": [1] * 99, "reason": "a list"}, "a list", "there is no turn"),
        ({"turn": 2, "reason": {"deep": 1}}, None, "the reason is not a string"),
        ({"turn": 2, "reason": 'says \\ "stop"'}, 'turn 2: says \\ "stop"', None),
        ({"turn": 2, "reason": "x" * 999}, "turn 2: " + "x" * REASON_CHARS + " ...", None),
    ],
)
def test_whatever_the_reason_is_the_verdict_stays(
    more: dict[str, object], reason: str | None, problem: str | None
) -> None:
    reply = parse_verdicts(line(more=more), ["a"], turns=4)
    assert reply.verdicts == {"a": FAIL}
    assert reply.reasons.get("a") == reason
    assert len(reply.problems) == (problem is not None)
    assert problem is None or problem in reply.problems[0]


def test_a_reason_makes_nothing_valid_that_was_not() -> None:
    """Other fields, escapes outside of the reason and a second line about the same rubric still leave no verdict."""
    for text in (
        line(turn=1, reason="r", confidence=1),
        line(reason="r").replace('"fail"', '"f\\u0061il"'),
        '{"reason": "\\u0022", "rubric_id": "a", "applicable": true, "verdict": "fail"}',
        line(reason="first") + "\n" + line(verdict="pass", reason="second"),
    ):
        reply = parse_verdicts(text, ["a"], turns=4)
        assert not reply.verdicts, text
        assert not reply.reasons


def test_without_the_setting_a_reason_is_against_the_contract() -> None:
    """The paper's lines have exactly three fields."""
    reply = parse_verdicts(line(turn=1, reason="r"), ["a"])
    assert not reply.verdicts
    values = {"call": "", "pool_version": 1, "rubrics": [], "sample_result": {}, "rubric_count": 0}
    papers = render(Template.RUBRIC_EVALUATION, values, {"diagnostics": False, "reasons": False})
    assert "exactly the fields `rubric_id`, `applicable` and `verdict`" in papers.system
    assert "reason" not in json.dumps(verdict_lines(["a"], diagnostics=False).lines)


def giving_reasons(ask: Ask) -> Action:
    """Answer honestly, with a reason where the prompt asks for one."""
    said = honest(lambda _rule, _ask: FAIL)(ask)
    assert isinstance(said, Say)
    if "last `reason`" not in ask.body["messages"][0]["content"]:
        return said
    rows = [json.loads(row) for row in said.text.splitlines()]
    key = "sk-" + "a1B2" * 12
    return Say(
        "\n".join(json.dumps(row | {"turn": 1, "reason": f"prints {key}"} if "verdict" in row else row) for row in rows)
    )


def test_the_judge_keeps_reasons_by_rubric_and_stored_ones_hold_no_key() -> None:
    plain, _ = judged(giving_reasons, pool(2))
    assert (plain.verdicts, plain.reasons) == ({"r001": FAIL, "r002": FAIL}, {})
    found, _ = judged(giving_reasons, pool(2), reasons=True)
    assert found.verdicts == plain.verdicts
    assert found.reasons["r001"].startswith("turn 1: prints sk-")
    assert found.judge == f"{plain.judge} with reasons"
    kept = without_keys(Group(TASK, (replace(rollout("ls"), judgment=found),), 1)).rollouts[0].judgment
    assert kept is not None
    assert "a1B2a1B2" not in str(kept.reasons)
    assert kept.reasons["r001"].startswith("turn 1: prints ")


def test_a_majority_keeps_the_reason_of_a_vote_that_it_follows() -> None:
    votes = [
        Judgment(1, "j", {"r001": PASS}, reasons={"r001": "looks"}),
        Judgment(1, "j", {"r001": FAIL}, reasons={"r001": "turn 2: does not look"}),
        Judgment(1, "j", {"r001": FAIL}, reasons={"r001": "turn 3: writes blindly"}),
    ]
    assert merged(votes, pool(1), "j x3").reasons == {"r001": "turn 2: does not look"}
