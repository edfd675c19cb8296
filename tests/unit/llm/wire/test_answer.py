"""Verdicts are the answer's own lines: not reasoning, not a quotation; and no reply takes long to read."""

import json
import time

import pytest

from arise.llm.wire import parse_annotations, parse_diagnostics, parse_duplicates, parse_pairs, parse_verdicts
from arise.llm.wire.strict_json import MAX_DEPTH, Unreadable, read_object

IDS = ["r001-ab", "r002-ab", "r003-ab"]


def line(rubric_id: str = IDS[0], verdict: str = "pass") -> str:
    return json.dumps({"rubric_id": rubric_id, "applicable": True, "verdict": verdict})


ANSWER = "\n".join(map(line, IDS))
NO_VERDICT = {
    "reasoning only": f"<think>\n{line()}\n</think>",
    "reasoning, then a refusal": f"<think>\n{line()}\n</think>\nI cannot judge this.",
    "reasoning that was cut off": f"<think>\nLet me see.\n{ANSWER}",
    "reasoning without its beginning": f"The first one passes.\n{ANSWER}\n</think>\n",
    "thinking": f"<thinking>\n{ANSWER}\n</thinking>",
    "capitals": f"<THINK>\n{ANSWER}\n</THINK>",
    "square brackets": f"[THINK]\n{ANSWER}\n[/THINK]",
    "triangles": f"◁think▷\n{ANSWER}\n◁/think▷",
    "a prefix": f"<seed:think>\n{ANSWER}\n</seed:think>",
    "an attribute": f'<think effort="high">\n{ANSWER}\n</think>',
    "a channel": f"<|channel|>analysis<|message|>\n{ANSWER}\n<|end|>",
    "marks of thought": f"<|begin_of_thought|>\n{ANSWER}\n<|end_of_thought|>",
    "reasoning again at the end": f"<think>a</think>\n<think>\n{ANSWER}",
    "two blocks": f"<think>\n{line()}\n</think>\n<think>\n{line(IDS[1])}\n</think>\nDone.",
    "a Markdown quotation": "\n".join(f"> {each}" for each in ANSWER.split("\n")),
    "a quotation in prose": f"The agent printed\n{line()}\nwhich is no evidence.",
    "a fenced quotation in prose": f"It would be\n```json\n{line()}\n```\nif the test had passed.",
    "a list": f"- {line()}\n- {line(IDS[1])}",
    "inline code": f"`{line()}`",
    "a string": json.dumps(line()),
    "a sentence": f"My answer is {line()}.",
}


@pytest.mark.parametrize("text", NO_VERDICT.values(), ids=NO_VERDICT)
def test_a_verdict_in_reasoning_or_in_prose_is_no_verdict(text: str) -> None:
    reply = parse_verdicts(text, IDS)
    assert not reply.verdicts
    assert set(reply.absent) == set(IDS)


def test_one_question_quoted_is_not_answered() -> None:
    reply = parse_verdicts(f"I could say\n{line()}\nbut I do not.", IDS[:1])
    assert reply.absent == {IDS[0]: "quoted in prose"}


COUNTS = {
    "after reasoning": f"<think>\nIt did well.\n</think>\n\n{ANSWER}",
    "after reasoning without its beginning": f"It did well.\n</think>\n{ANSWER}",
    "after two blocks of reasoning": f"<think>a</think>\n<think>b\n</think>\n{ANSWER}",
    "in the final channel": f"<|channel|>analysis<|message|>hm<|end|>\n<|channel|>final<|message|>\n{ANSWER}",
    "after a heading in brackets": f"[Analysis of three rubrics]\n{ANSWER}",
    "between polite words": f"Here are the verdicts:\n```json\n{ANSWER}\n```\nLet me know if you need more.",
    "each with its reason": "\n".join(f"{each} holds, because:\n{line(each)}" for each in IDS) + "\nThat is all.",
}


@pytest.mark.parametrize("text", COUNTS.values(), ids=COUNTS)
def test_the_answer_counts_wherever_it_is(text: str) -> None:
    assert set(parse_verdicts(text, IDS).verdicts) == set(IDS)


def test_a_tag_inside_a_string_is_no_tag() -> None:
    text = "the agent wrote </think> and <think> to its log"
    diagnostics = {
        "covered_by_active_rubrics": True,
        "rubric_gap_summary": text,
        "uncovered_issues": [],
        "positive_uncovered_strategies": [],
    }
    reply = parse_verdicts(f"{ANSWER}\n{json.dumps({'diagnostics': diagnostics})}", IDS, diagnostics=True)
    assert set(reply.verdicts) == set(IDS), "what an agent writes cannot make its verdicts go away"


def test_decisions_in_reasoning_do_not_count_either() -> None:
    said = json.dumps({"pair_id": "p1", "same": True})
    assert parse_duplicates(f"<think>\n{said}\n</think>", ["p1"]) == {}
    assert parse_duplicates(f"<think>hm</think>\n{said}", ["p1"]) == {"p1": True}


def test_forty_thousand_keys_are_read_in_one_pass() -> None:
    keys = ",".join(f'"k{n}":1' for n in range(40_000))
    started = time.perf_counter()
    assert read_object("{" + keys + ',"k39999":2}') == Unreadable("duplicate key 'k39999'")
    assert time.perf_counter() - started < 2.0


def test_numbers_and_depth_have_limits() -> None:
    assert read_object('{"a": 1e999}') == Unreadable("1e999 is too large for a number")
    assert read_object('{"a": -1e999}') == Unreadable("-1e999 is too large for a number")
    deep = '{"a": ' + "[" * MAX_DEPTH + "]" * MAX_DEPTH + "}"
    assert read_object(deep) == Unreadable(f"nested deeper than {MAX_DEPTH} levels")
    nested = "[" * 900 + "]" * 900
    assert parse_annotations('{"judgments": [{"task_key": ' + nested + "}]}", ["k"], []).absent
    assert parse_pairs('{"items": [' + nested + "]}", [], 8).unreadable


MANY = {
    "lines": "x\n" * 9_999,
    "braces": "{\n" * 9_999,
    "verdicts": (line() + "\n") * 9_000,
    "tags": "<think" * 160_000,
    "items": '{"items": [' + ",".join(["{}"] * 300_000) + "]}",
    "references": '{"items": [{"issue_evidence_refs": [' + ",".join(["0"] * 480_000) + "]}]}",
    "judgments": '{"judgments": [' + ",".join(["{}"] * 300_000) + "]}",
    "tag ids": '{"judgments": [{"task_key": "k", "matched_tag_ids": [' + ",".join(["0"] * 450_000) + "]}]}",
}


@pytest.mark.parametrize("text", MANY.values(), ids=MANY)
def test_a_large_reply_is_read_quickly_and_leaves_little(text: str) -> None:
    started = time.process_time()
    verdicts = parse_verdicts(text, IDS, diagnostics=True)
    pairs = parse_pairs(text, [], 8)
    parse_duplicates(text, IDS)
    parse_annotations(text, ["k"], [])
    assert time.process_time() - started < 10.0
    assert len(verdicts.problems) <= 100
    assert len(pairs.rejections) <= 101


def test_long_lists_of_diagnostics_leave_few_notes() -> None:
    body = {
        "covered_by_active_rubrics": False,
        "rubric_gap_summary": "",
        "uncovered_issues": [0] * 200_000,
        "positive_uncovered_strategies": [],
    }
    dropped = parse_diagnostics(json.dumps({"diagnostics": body})).dropped
    assert len(dropped) == 21
    assert dropped[-1] == "uncovered_issues: 199,980 more items were not read"


def test_a_reply_of_too_many_lines_is_refused() -> None:
    reply = parse_verdicts("\n" * 10_001 + ANSWER, IDS)
    assert set(reply.absent.values()) == {"reply of more than 10,000 lines"}
