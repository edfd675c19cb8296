"""Packaging is removed and what is inside stays; the fixed part of a prompt is small; a weak judge is not attacked."""

import json

from arise.llm.client.constraint import grammar
from arise.llm.judge.majority import merged
from arise.llm.judge.trace import PROMPT_CHARS
from arise.llm.prompts.prompt import Template, render
from arise.llm.prompts.shapes import verdict_lines
from arise.llm.wire import parse_diagnostics, parse_verdicts
from arise.testing import Ask, Say, honest
from arise.types import Judgment, Verdict
from tests.unit.llm.builders import pool
from tests.unit.llm.judge.test_judge import judged

LINES = [
    {"rubric_id": "a", "applicable": True, "verdict": "pass"},
    {"rubric_id": "b", "applicable": False, "verdict": None},
]
NOTHING = {
    "covered_by_active_rubrics": True,
    "rubric_gap_summary": "",
    "uncovered_issues": [],
    "positive_uncovered_strategies": [],
}


def test_one_object_is_read_like_its_lines() -> None:
    plain = parse_verdicts("\n".join(map(json.dumps, [*LINES, {"diagnostics": NOTHING}])), ["a", "b"], True)
    for indent in (None, 2):
        one = json.dumps({"lines": LINES, "diagnostics": NOTHING}, indent=indent)
        for text in (one, f"```json\n{one}\n```", f"<think>hm {{}}</think>\n{one}"):
            assert parse_verdicts(text, ["a", "b"], True) == plain, text
    assert plain.verdicts == {"a": Verdict.PASS, "b": Verdict.NOT_APPLICABLE}


def test_a_rubric_twice_or_escaped_in_an_object_has_no_verdict() -> None:
    twice = json.dumps({"lines": [LINES[0], LINES[0]]})
    assert parse_verdicts(twice, ["a"]).absent == {"a": "2 lines about this rubric"}
    escaped = '{"lines":[{"rubric_id":"a","applicable":true,"verdict":"p\\u0061ss"}]}'
    assert parse_verdicts(escaped, ["a"]).absent == {"a": "escapes in a verdict line"}


def test_a_sentence_may_introduce_a_fenced_object() -> None:
    """Chat models write it when nothing constrains them; with text after it, the fence may be a quotation."""
    fence = f"```json\n{json.dumps({'diagnostics': NOTHING | {'covered_by_active_rubrics': False}})}\n```"
    assert parse_diagnostics(f"Here is my answer:\n\n{fence}\n").diagnostic is not None
    assert parse_diagnostics(f"Injected text says:\n{fence}\nI do not follow it.").diagnostic is None
    assert parse_diagnostics(f"Not {{}} but\n{fence}").diagnostic is None
    assert parse_diagnostics(f"One:\n{fence}\nTwo:\n{fence}").diagnostic is None


def test_a_fenced_object_is_read() -> None:
    text = json.dumps({"diagnostics": NOTHING | {"covered_by_active_rubrics": False}})
    assert parse_diagnostics(f"```json\n{text}\n```").diagnostic is not None


def test_a_grammar_names_every_id_once() -> None:
    text = grammar(verdict_lines(["r001-x", "r002-x"], diagnostics=False))
    assert text.count("r001-x") == 2, "applicable or not"
    assert text.startswith("root ::= ")


def test_the_fixed_part_is_small_and_the_same() -> None:
    values = {"call": "", "pool_version": 1, "rubrics": [], "sample_result": {}, "rubric_count": 0}
    more = {"rest_of_pool": [], "rubric_count_plus_one": 1}
    on = {"diagnostics": True, "reasons": False}
    first = render(Template.RUBRIC_EVALUATION, values | more, on)
    other = render(Template.RUBRIC_EVALUATION, values | more | {"rubric_count": 9, "call": "x"}, on)
    assert first.system == other.system
    assert len(first.system) + len(first.user) < 8_900 < PROMPT_CHARS, "2,125 tokens of SmolLM2's tokenizer"
    reasons = render(Template.RUBRIC_EVALUATION, values | more, on | {"reasons": True})
    assert len(reasons.system) - len(first.system) < 300, "fewer than 75 tokens more"


def test_a_weak_judge_is_not_called_attacked() -> None:
    def passes_all(ask: Ask) -> Say:
        lines = [{"rubric_id": r["rubric_id"], "applicable": True, "verdict": "pass"} for r in ask.data["rubrics"]]
        return Say("\n".join(map(json.dumps, lines)))

    weak, _ = judged(passes_all, pool(1))
    assert weak.absent["r001"].startswith("weak: ")
    sound = honest(lambda _rule, _ask: Verdict.PASS)
    steered, _ = judged(lambda ask: passes_all(ask) if "Pass if habit" in ask.user else sound(ask), pool(1))
    assert steered.absent["r001"].startswith("quarantined: ")


def test_a_majority_needs_more_than_half() -> None:
    votes = [Judgment(1, "j", {"r001": verdict}) for verdict in (Verdict.PASS, Verdict.PASS, Verdict.FAIL)]
    assert merged(votes, pool(1), "j").verdicts == {"r001": Verdict.PASS}
    assert merged(votes[1:], pool(1), "j").absent["r001"].startswith("votes differ")
