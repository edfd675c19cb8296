"""Conversations sampled in every tokenization, resent in every spelling: a row is exactly what was sent and sampled."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arise.engines.formats.generic import GenericFormat
from arise.types import FunctionCall, Message
from tests.unit.engines.formats.families import FAMILIES, tokenizer_of
from tests.unit.engines.formats.test_generic import BASH

FORMATS = {name: GenericFormat(tokenizer_of(name)) for name in FAMILIES}
TEXTS = st.text(st.sampled_from("ab \n\"'{}<>|/\\`éß日🙂"), max_size=12) | st.sampled_from(
    ["<|im_end|>", "</think>", "<tool_call>", "a\n\n", "ls -la | grep x", "False", "null", "1.0", "</s>", "<|eot_id|>"]
)
SPELLINGS = st.fixed_dictionaries(
    {"separators": st.sampled_from([(",", ":"), (", ", ": "), (" , ", " :  ")]), "sort_keys": st.booleans()}
)


@st.composite
def turns(draw: st.DrawFn) -> list[tuple[Message, bool, list[Message]]]:
    """Assistant turns, whether each was cut, and the group that answers it."""
    conversation = []
    for number in range(draw(st.integers(1, 3))):
        call = FunctionCall(f"call{number:05d}", "bash", {"command": draw(TEXTS), "seconds": draw(st.integers(0, 9))})
        calls = (call,) if draw(st.booleans()) else ()
        said = Message("assistant", draw(TEXTS), draw(TEXTS), calls)
        results = [Message("tool", draw(TEXTS), call_id=call.id, name="bash")] * draw(st.integers(1, 2))
        group = results if calls else [Message("user", draw(TEXTS) or "go on")]
        conversation.append((said, draw(st.booleans()), group))
    return conversation


def tokenized(chat: GenericFormat, ids: list[int], seed: int) -> list[int]:
    """The same turn in other tokens: some are replaced by the tokens of their characters."""
    random = np.random.default_rng(seed)
    other = list[int]()
    for i in ids:
        text = chat.safe.decode([i])
        split = i not in chat.safe.control_ids and "\ufffd" not in text and random.random() < 0.5
        other += [j for letter in text for j in chat.safe.encode(letter)] if split else [i]
    return other


def resent(message: Message, spelling: dict[str, object]) -> Message:
    """The turn as a harness sends it back: arguments in another spelling, reasoning and ids dropped."""
    calls = tuple(
        FunctionCall("call00009", call.name, json.loads(json.dumps(dict(call.arguments), **spelling)))  # type: ignore[arg-type]
        for call in message.calls
    )
    return Message("assistant", message.text, "", calls)


def check(
    name: str, conversation: list[tuple[Message, bool, list[Message]]], seed: int, spelling: dict[str, object]
) -> None:
    chat, messages = FORMATS[name], [Message("system", "Be brief."), Message("user", "Go.")]
    row = chat.prompt(messages, [BASH])
    generated, spoken = [False] * len(row), list[int]()
    for said, cut, group in conversation:
        sampled = tokenized(chat, chat.answer(said, [BASH]), seed)
        sampled = sampled[: max(1, len(sampled) // 2)] if cut else sampled
        row, generated, spoken = [*row, *sampled], [*generated, *[True] * len(sampled)], [*spoken, *sampled]
        longer = chat.extend(row, group, [BASH])
        assert longer is not None
        assert longer[: len(row)] == row
        added = longer[len(row) :]
        messages += [resent(said, spelling), *group]
        moved = name == "mistral" and group[0].role == "user"  # its template moves the system text to the last question
        if not moved:
            whole = chat.prompt([*messages[:2], resent(said, spelling), *group], [BASH])
            assert whole[-len(added) :] == added
        row, generated = longer, [*generated, *[False] * len(added)]
    assert [i for i, own in zip(row, generated, strict=True) if own] == spoken
    chat.prompt(messages, [BASH])  # a resent history can always be rendered, as a new row


@pytest.mark.parametrize("name", FAMILIES)
@settings(max_examples=25, deadline=None)
@given(turns(), st.integers(0, 9), SPELLINGS)
def test_a_conversation_only_grows(
    name: str, conversation: list[tuple[Message, bool, list[Message]]], seed: int, spelling: dict[str, object]
) -> None:
    check(name, conversation, seed, spelling)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", FAMILIES)
@settings(max_examples=625, deadline=None)
@given(turns(), st.integers(0, 9), SPELLINGS)
def test_five_thousand_conversations_only_grow(
    name: str, conversation: list[tuple[Message, bool, list[Message]]], seed: int, spelling: dict[str, object]
) -> None:
    check(name, conversation, seed, spelling)
