"""Histories: resent messages extend what was sampled, edits branch, and rows train each sampled token once."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arise.endpoint.history import PromptOrigin
from arise.endpoint.rows import BrokenRecord, export
from arise.engines.formats.generic import GenericFormat
from arise.ports import Format
from arise.types.chat import Message
from tests.unit.endpoint.byte_format import END, STYLES, ByteFormat
from tests.unit.endpoint.conversations import OPENING, Harness, bash, loose, resent, segment
from tests.unit.engines.formats.families import FAMILIES, tokenizer_of

SINGLE_CALLS = ("llama-3",)
"""Families whose template shows one call of a turn only."""


def said(text: str = "", *commands: str, reasoning: str = "") -> Message:
    return Message("assistant", text, reasoning, tuple(map(loose, commands)))


def result(text: str, call_id: str = "") -> Message:
    return Message("tool", text, call_id=call_id)


def trained(harness: Harness) -> list[list[int]]:
    """What each row trains, as ids."""
    return [row.ids_U[row.generated_U].tolist() for row in export(harness.history).rows]


def converse(seed: int, chat: Format, most_calls: int = 2) -> None:
    """One conversation, every request perturbed: prompts grow and the one row is what was sent."""
    random = Random(seed)
    harness = Harness(chat)
    for turn in range(random.randint(2, 6)):
        commands = [f"ls {turn} {n} é" for n in range(random.randint(0, most_calls))]
        reply = said(random.choice(["", " I look. \n", "ok"]), *commands, reasoning=random.choice(["", "hm"]))
        plain = [resent(message, random) for message in harness.messages]
        call = harness.ask(reply, plain)
        results = [result(f"out {n}", made.id) for n, made in enumerate(call.reply.calls)]
        harness.messages += [call.reply, *(results or [Message("user", "go on")])]
        prompt, _ = harness.sent[-1]
        if turn:
            before, sampled = harness.sent[-2]
            assert prompt[: len(before) + len(sampled)] == before + sampled
    row = export(harness.history).rows
    assert len(row) == 1
    last_prompt, last = harness.sent[-1]
    assert tuple(row[0].ids_U) == last_prompt + last
    assert trained(harness) == [[i for _, sampled in harness.sent for i in sampled]]


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32))
def test_resent_history_never_drifts(seed: int) -> None:
    converse(seed, STYLES[seed % len(STYLES)])


@pytest.mark.parametrize("name", FAMILIES)
def test_resent_history_never_drifts_in_any_family(name: str) -> None:
    chat, most_calls = GenericFormat(tokenizer_of(name)), 1 if name in SINGLE_CALLS else 2
    for seed in range(10):
        converse(seed, chat, most_calls)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", FAMILIES)
def test_five_thousand_resent_conversations_never_drift(name: str) -> None:
    """625 in each of eight families of tokenizers and templates."""
    chat, most_calls = GenericFormat(tokenizer_of(name)), 1 if name in SINGLE_CALLS else 2
    for seed in range(625):
        converse(seed, chat, most_calls)


@pytest.mark.slow
def test_five_thousand_resent_conversations_of_bytes_never_drift() -> None:
    for seed in range(5000):
        converse(seed, STYLES[seed % len(STYLES)])


@pytest.mark.parametrize("style", STYLES)
def test_an_edited_argument_branches_and_no_token_is_lost_or_trained_twice(style: ByteFormat) -> None:
    harness = Harness(style)
    harness.turn(said("a", "ls"), result("x"))
    harness.turn(said("b", "cat f"), result("y"))
    edited = replace(harness.messages[4], calls=(bash("cat g"),))
    harness.messages[4] = edited
    harness.turn(said("c", "rm f"), result("z"))
    call = harness.ask(said("done"))
    assert harness.history.calls[2].start is PromptOrigin.REWRITTEN
    assert call.start is PromptOrigin.EXTENDED
    rows = trained(harness)
    assert len(rows) == 2
    assert sorted(i for row in rows for i in row) == sorted(i for _, ids in harness.sent for i in ids)


def test_notes_between_turns_stay_in_place_and_keep_one_row() -> None:
    harness = Harness()
    harness.turn(said("a", "ls"), result("x"), Message("system", "4 minutes left"))
    harness.turn(said("b", "cat f"), result("y"), Message("system", "3 minutes left"))
    harness.turn(said("c"))
    assert len(export(harness.history).rows) == 1


def test_compaction_opens_a_row_and_what_both_share_trains_once() -> None:
    harness = Harness()
    for n in range(4):
        harness.turn(said("a", f"ls {n}"), result(f"out {n}"))
    harness.messages = [*OPENING, Message("user", "So far: listed.")]
    harness.turn(said("b", "cat"), result("y"))
    pruned = [*harness.messages[:-1], result("(cleared)")]
    harness.messages = [*pruned, Message("user", "next")]
    harness.turn(said("c"))
    found = export(harness.history)
    forks = sum(count for start, count in found.starts.items() if start != "extended") - 1
    assert len(found.rows) == forks + 1
    assert sum(row.generated_U.sum() for row in found.rows) == sum(len(ids) for _, ids in harness.sent)


def test_interleaved_sub_agents_have_a_row_each() -> None:
    harness = Harness()
    a = list(OPENING)
    b = [OPENING[0], Message("user", "Look for tests.")]
    for n in range(2):
        for own in (a, b):
            call = harness.ask(said(f"turn {n}", "ls"), own)
            own += [call.reply, result("x", call.reply.calls[0].id)]
    assert [call.start for call in harness.history.calls] == [
        PromptOrigin.OPENING,
        PromptOrigin.OPENING,
        *[PromptOrigin.EXTENDED] * 2,
    ]
    assert len(export(harness.history).rows) == 2


def test_parallel_requests_become_siblings_of_one_parent() -> None:
    harness = Harness()
    first = harness.turn(said("a", "ls"), result("x"))
    plans = [
        harness.history.plan([*harness.messages, Message("user", text)], harness.tools) for text in ("left", "right")
    ]
    for plan in plans:
        harness.history.commit(plan, segment([66, END]), Message("assistant", "B"))
    assert harness.history.children(first.number) == [1, 2]
    rows = trained(harness)
    assert len(rows) == 2
    assert sum(map(len, rows)) == len(harness.sent[0][1]) + 4


def test_a_title_is_auxiliary_and_trains_nothing() -> None:
    harness = Harness()
    title = [Message("system", "Write a title."), Message("user", "Fix it.")]
    plan = harness.history.plan(title)
    harness.history.commit(plan, segment([65, END]), Message("assistant", "A"))
    harness.turn(said("a", "ls"), result("x"))
    found = export(harness.history)
    assert found.auxiliary == 1
    assert trained(harness) == [list(harness.sent[0][1])]
    assert len(found.turns) == 1
    assert found.system_prompt == OPENING[0].text


def test_without_any_tools_every_conversation_is_the_agent() -> None:
    harness = Harness(tools=())
    harness.turn(said("run ls"), Message("user", "x"))
    harness.turn(said("done"))
    found = export(harness.history)
    assert found.auxiliary == 0
    assert [turn.text for turn in found.turns] == ["run ls", "done"]
    assert found.turns[0].observations[0].text == "x"


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize(
    "cut", [said("half a sen"), said("", reasoning="half a tho"), said("", "ls")], ids=["text", "thought", "call"]
)
def test_a_turn_cut_by_length_is_extended_with_masked_closing_tokens(style: ByteFormat, cut: Message) -> None:
    harness = Harness(style)
    ids = style.answer(cut)[:-2] if cut.calls or cut.reasoning else style.answer(cut)[:-1]
    plan = harness.history.plan(harness.messages, harness.tools)
    read = style.read(ids)
    reply = Message("assistant", read.text, read.reasoning, read.calls)
    harness.history.commit(plan, segment(ids, "length"), reply)
    harness.messages += [reply, Message("user", "go on")]
    harness.ask(said("done"))
    (row,) = export(harness.history).rows
    assert row.ids_U[len(plan.ids) : len(plan.ids) + len(ids)].tolist() == ids
    assert int(row.generated_U.sum()) == len(ids) + len(harness.sent[-1][1])
    assert not row.generated_U[len(plan.ids) + len(ids)]


def test_a_format_that_cannot_extend_opens_a_row_for_each_turn() -> None:
    harness = Harness(ByteFormat(extends=False))
    harness.turn(said("a", "ls", reasoning="hm"), result("x"))
    harness.turn(said("done"))
    found = export(harness.history)
    assert found.starts == {"opening": 1, "unextendable": 1}
    assert len(found.rows) == 2
    assert found.turns[0].observations[0].text == "x"
    assert trained(harness) == [list(ids) for _, ids in harness.sent]


def test_of_repeated_requests_the_continued_answer_is_kept_else_the_latest() -> None:
    harness = Harness()
    first = harness.ask(said("a", "ls"))
    harness.ask(said("b", "ls"))
    harness.messages += [first.reply, result("x")]
    harness.ask(said("c"))
    last = harness.ask(said("d"))
    found = export(harness.history)
    assert found.superseded == 2
    assert [turn.text for turn in found.turns] == ["a", "d"]
    assert found.rows[0].ids_U.tolist() == list(harness.history.ids(last.number))


def test_a_record_that_contradicts_itself_is_refused() -> None:
    for logprob in (float("nan"), 0.5, -9999.0):
        harness = Harness()
        plan = harness.history.plan(harness.messages, harness.tools)
        sampled = replace(segment([65, END]), logprobs=(logprob, -0.1))
        harness.history.commit(plan, sampled, Message("assistant", "A"))
        with pytest.raises(BrokenRecord, match="log-probability"):
            export(harness.history)
    harness = Harness()
    plan = harness.history.plan(harness.messages, harness.tools)
    harness.history.commit(plan, replace(segment([65, END]), logprobs=(-0.1,)), Message("assistant", "A"))
    with pytest.raises(BrokenRecord, match="length"):
        export(harness.history)


def test_masked_tokens_have_no_logprob_and_no_version() -> None:
    harness = Harness()
    harness.turn(said("a", "ls"), result("x"))
    (row,) = export(harness.history).rows
    assert np.all(row.logprob_U[~row.generated_U] == 0.0)
    assert np.all(row.version_U[~row.generated_U] == -1)
    assert np.all(row.version_U[row.generated_U] == 3)
