"""F4: whatever a judge writes, no exception and no verdict that is not literally there exactly once."""

import json
import random
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arise.llm.wire import parse_verdicts
from arise.testing.scripts import NOTHING_UNCOVERED
from arise.types import Verdict

IDS = ["r001-ab", "r002-ab", "r003-ab"]
GOLDEN = json.loads((Path(__file__).parents[3] / "golden/llm/verdict_replies.json").read_text("utf-8"))
DIAGNOSTICS = json.dumps({"diagnostics": NOTHING_UNCOVERED})
LINES = {"pass": Verdict.PASS, "fail": Verdict.FAIL, None: Verdict.NOT_APPLICABLE}


def line(rubric_id: str, verdict: str | None) -> str:
    return json.dumps({"rubric_id": rubric_id, "applicable": verdict is not None, "verdict": verdict})


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case["name"])
def test_f4_named_replies(case: dict[str, object]) -> None:
    reply = parse_verdicts(str(case["reply"]), IDS, diagnostics=True)
    found = {
        "verdicts": {key: verdict.value for key, verdict in reply.verdicts.items()},
        "absent": reply.absent,
        "diagnostics": reply.diagnostics.diagnostic is not None,
    }
    assert found == {key: case[key] for key in found}


def test_the_corpus_has_forty_cases() -> None:
    assert len(GOLDEN) >= 40
    assert len({case["name"] for case in GOLDEN}) == len(GOLDEN)


def literal(text: str, rubric_id: str) -> Verdict | None:
    """An independent reading: the verdict of the only line that names the rubric as `rubric_id`."""
    verdicts = [
        Verdict.NOT_APPLICABLE if match["v"] == "null" else Verdict(match["v"].strip('"'))
        for match in re.finditer(
            r'^[ \t\ufeff]*\{\s*(?=[^\n]*"rubric_id"\s*:\s*"' + re.escape(rubric_id) + r'")'
            r'(?=[^\n]*"applicable"\s*:\s*(?:true|false))'
            r'(?=[^\n]*"verdict"\s*:\s*(?P<v>"pass"|"fail"|null))[^\n]*\}[ \t\r]*$',
            text,
            re.MULTILINE,
        )
    ]
    named = len(re.findall(r'"rubric_id"\s*:\s*"' + re.escape(rubric_id) + '"', text))
    return verdicts[0] if len(verdicts) == 1 and named == 1 else None


PIECES = st.sampled_from(
    [line(i, v) for i in IDS for v in ("pass", "fail", None)]
    + [
        DIAGNOSTICS,
        "```json",
        "```",
        "Here are the verdicts:",
        "",
        "   ",
        "[",
        "]",
        "{",
        "}",
        ",",
        "\ufeff",
        "\0",
        "NaN",
    ]
    + ['{"rubric_id":"r001-ab","applicable":true,"verdict":"pass","verdict":"fail"}', '{"rubric_id":"r009-ab"}']
    + ['{"rubric_id":"r002-ab","applicable":NaN,"verdict":null}', '{"rubric_id":"r003-ab","applicable":true}']
    + [
        line("r001-ab", "pass").replace("pass", "PASS"),
        '{"rubric_id":"r001\\u002dab","applicable":true,"verdict":"pass"}',
    ]
)


ASSEMBLED = given(st.lists(PIECES, max_size=8), st.sampled_from(["\n", "\r\n", "\n\n", " ", "\u2028"]))
MUTATED = given(st.integers(0, 2**32), st.integers(1, 6))
SHORT = settings(max_examples=300, deadline=None)
LONG = settings(max_examples=2500, deadline=None)


@SHORT
@ASSEMBLED
def test_f4_assembled_replies(pieces: list[str], separator: str) -> None:
    check(separator.join(pieces))


@pytest.mark.slow
@LONG
@ASSEMBLED
def test_f4_2500_assembled_replies(pieces: list[str], separator: str) -> None:
    check(separator.join(pieces))


@SHORT
@MUTATED
def test_f4_mutated_replies(seed: int, edits: int) -> None:
    check(mutated(seed, edits))


@pytest.mark.slow
@LONG
@MUTATED
def test_f4_2500_mutated_replies(seed: int, edits: int) -> None:
    check(mutated(seed, edits))


def mutated(seed: int, edits: int) -> str:
    """A correct reply with this many random edits."""
    rng = random.Random(seed)
    text = "\n".join([*(line(i, rng.choice(["pass", "fail", None])) for i in IDS), DIAGNOSTICS])
    for _ in range(edits):
        start = rng.randrange(len(text) + 1)
        end = min(len(text), start + rng.randrange(12))
        change = rng.choice(
            ["", "\n", '"', "{", "}", "\\", "\0", "\ud800", text[start:end] * 2, rng.choice(["pass", "fail"])]
        )
        text = text[:start] + change + text[end:]
    return text


def check(text: str) -> None:
    reply = parse_verdicts(text, IDS, diagnostics=True)
    assert set(reply.verdicts) | set(reply.absent) == set(IDS)
    assert not set(reply.verdicts) & set(reply.absent)
    assert all(reply.absent.values())
    for rubric_id, verdict in reply.verdicts.items():
        assert literal(text, rubric_id) is verdict


@given(st.text(max_size=300))
def test_any_text_is_survived(text: str) -> None:
    reply = parse_verdicts(text, IDS)
    assert set(reply.verdicts) | set(reply.absent) == set(IDS)


def test_a_huge_or_deep_reply_is_refused_not_read() -> None:
    assert not parse_verdicts("[" * 100_000, IDS).verdicts
    assert "longer than" in parse_verdicts("x" * 1_000_001, IDS).absent["r001-ab"]
    assert not parse_verdicts('{"rubric_id":' + "9" * 5000 + "}", IDS).verdicts


def test_diagnostics_not_asked_for_are_not_used() -> None:
    reply = parse_verdicts(DIAGNOSTICS, [], diagnostics=False)
    assert reply.diagnostics.diagnostic is None
    assert reply.problems == ("diagnostics were not asked for",)
