"""Any chat template: prompts as the template writes them, conversations that only grow, texts that stay texts."""

import copy
from typing import Any

import pytest
from tests.unit.engines.formats.families import FAMILIES, tokenizer_of
from tests.unit.engines.formats.hostile import HOSTILE
from tokenizers import AddedToken

from arise.engines.formats.generic import GenericFormat
from arise.engines.formats.templates import tool_dict
from arise.ports import FormatError
from arise.types import FunctionCall, Message, ToolSpec

BASH = ToolSpec(
    "bash",
    "Run a shell command.",
    {
        "type": "object",
        "properties": {"command": {"type": "string"}, "seconds": {"type": "integer"}},
        "required": ["command"],
    },
)
CALL = FunctionCall("call00001", "bash", {"command": "cat <<'E'\none\ntwo\nE", "seconds": 3})
ASKED = [Message("system", "Be brief."), Message("user", "List the files.")]
RESULT = Message("tool", "a.txt\nb.txt", call_id="call00001", name="bash")

families = pytest.mark.parametrize("name", FAMILIES)


@families
def test_a_prompt_has_the_tokens_that_the_template_itself_gives(name: str) -> None:
    tokenizer, family = tokenizer_of(name), FAMILIES[name]
    messages = [{"role": message.role, "content": message.text} for message in ASKED[1:]]
    tools = [tool_dict(BASH)] if family.native else None
    expected = tokenizer.apply_chat_template(messages, tools=tools, add_generation_prompt=True)["input_ids"]
    assert GenericFormat(tokenizer).prompt(ASKED[1:], [BASH] if family.native else []) == expected


@families
def test_tools_are_native_where_the_template_has_them(name: str) -> None:
    chat = GenericFormat(tokenizer_of(name))
    assert (chat.notice == "") == FAMILIES[name].native
    assert "Run a shell command." in chat.safe.decode(chat.prompt(ASKED, [BASH]))


@families
@pytest.mark.parametrize("ended", [True, False])
def test_an_extension_keeps_the_ids_and_adds_what_the_template_writes(name: str, ended: bool) -> None:
    chat = GenericFormat(tokenizer_of(name))
    said = chat.answer(Message("assistant", calls=(CALL,)), [BASH])
    ids = chat.prompt(ASKED, [BASH]) + (said if ended else said[:-1])
    longer = chat.extend(ids, [RESULT], [BASH])
    assert longer is not None
    assert longer[: len(ids)] == ids
    whole = chat.prompt([*ASKED, Message("assistant", calls=(CALL,)), RESULT], [BASH])
    added = longer[len(ids) :]
    assert added == whole[-len(added) :]
    assert (added[0] in chat.stop_ids) == (not ended)


@families
def test_results_of_several_calls_are_one_group(name: str) -> None:
    chat = GenericFormat(tokenizer_of(name))
    ids = chat.prompt(ASKED, [BASH]) + chat.answer(Message("assistant", calls=(CALL,)), [BASH])
    second = Message("tool", "c.txt", call_id="call00002", name="bash")
    both = chat.extend(ids, [RESULT, second], [BASH])
    assert both is not None
    text = chat.safe.decode(both[len(ids) :])
    assert "a.txt" in text.partition("c.txt")[0]
    if name != "llama-3":  # its template knows one call per turn, so each result has a separate turn
        one = chat.extend(ids, [RESULT], [BASH])
        assert one is not None
        turns = [sum(i in chat.stop_ids for i in row[len(ids) :]) for row in (both, one)]
        assert turns[0] == turns[1]


@families
@pytest.mark.parametrize("role", ["user", "system"])
def test_other_messages_extend_too(name: str, role: Any) -> None:
    chat = GenericFormat(tokenizer_of(name))
    ids = chat.prompt(ASKED) + chat.answer(Message("assistant", "Done."))
    longer = chat.extend(ids, [Message(role, "And then?")])
    if name == "deepseek" and role == "system":  # its template moves system messages to the front
        assert longer is None or "And then?" not in chat.safe.decode(longer[len(ids) :])
        return
    assert longer is not None
    assert "And then?" in chat.safe.decode(longer[len(ids) :])


@families
def test_an_assistant_message_is_never_part_of_an_extension(name: str) -> None:
    chat = GenericFormat(tokenizer_of(name))
    assert chat.extend(chat.prompt(ASKED), [Message("assistant", "x")]) is None


def cut_turns(chat: GenericFormat) -> dict[str, list[int]]:
    """A turn cut by a limit in its reasoning, its text and its call."""
    whole = Message("assistant", "I look at the files first.", "The files come first.", (CALL,))
    ids = chat.answer(whole, [BASH])[:-1]
    cuts = dict[str, list[int]]()
    for place, word in (("reasoning", "come"), ("text", "look"), ("call", "two")):
        for end in range(1, len(ids) + 1):
            if word in chat.safe.decode(ids[:end]):
                cuts[place] = ids[:end]
                break
    return cuts


@families
def test_a_cut_turn_is_extended_exactly_and_closed_by_masked_tokens(name: str) -> None:
    chat = GenericFormat(tokenizer_of(name))
    prompt = chat.prompt(ASKED, [BASH])
    for place, sampled in cut_turns(chat).items():
        ids = prompt + sampled
        for group in ([Message("user", "Your message was cut.")], [RESULT]):
            longer = chat.extend(ids, group, [BASH])
            assert longer is not None, place
            assert longer[: len(ids)] == ids
            assert longer[len(ids)] in chat.stop_ids  # written by the format, so it is not trained
        reply = chat.read(sampled, [BASH], prompt)
        assert reply.calls == ()
        assert bool(reply.malformed) == (place == "call"), place


def conversation(text: str) -> list[Message]:
    call = FunctionCall("call00001", "bash", {"command": text})
    return [
        Message("system", text),
        Message("user", f"say {text}"),
        Message("assistant", text, text, (call,)),
        Message("tool", text, call_id="call00001", name="bash"),
    ]


@families
def test_no_text_becomes_a_control_token(name: str) -> None:
    chat = GenericFormat(tokenizer_of(name))
    control = chat.safe.control_ids

    def controls(ids: list[int] | None) -> list[int]:
        return [i for i in ids or [] if i in control]

    def tool(text: str) -> ToolSpec:
        return ToolSpec("bash", text, {"type": "object", "properties": {"command": {"description": text}}})

    ids = chat.prompt(ASKED, [BASH]) + chat.answer(Message("assistant", "x"))
    results = [[Message("tool", text, call_id="call00001", name="bash")] for text in ("x", *HOSTILE)]
    expected = controls(chat.extend(ids, results[0]))
    assert expected
    assert {text: controls(chat.extend(ids, result)) for text, result in zip(HOSTILE, results[1:], strict=True)} == (
        dict.fromkeys(HOSTILE, expected)
    )
    plain = controls(chat.prompt(conversation("x"), [tool("x")]))
    assert {text: controls(chat.prompt(conversation(text), [tool(text)])) for text in HOSTILE} == (
        dict.fromkeys(HOSTILE, plain)
    )


@families
def test_hostile_text_is_still_read_by_the_model(name: str) -> None:
    chat = GenericFormat(tokenizer_of(name))
    ids = chat.prompt(ASKED) + chat.answer(Message("assistant", "x"))
    for text in ("<|im_end|>", "</tool_response>", "<|eot_id|>", "</s>", "<end_of_turn>", "<｜User｜>", "<|user|>"):
        longer = chat.extend(ids, [Message("tool", text, call_id="call00001", name="bash")])
        assert longer is not None
        assert text in chat.safe.decode(longer[len(ids) :])


def with_template(template: str) -> Any:
    tokenizer = copy.copy(tokenizer_of("chatml"))
    tokenizer.chat_template = template
    return tokenizer


TURNS = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}{% if add_generation_prompt %}a: {% endif %}"


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("", "no chat template"),
        (TURNS, "cannot be continued behind a sampled answer: no control token"),
        ("{{ raise_exception('closed on Sundays') }}", "closed on Sundays"),
        ("{% for m in messages if m.role != 'assistant' %}{{ m.content }}{% endfor %}", "drops the assistant"),
    ],
)
def test_a_template_that_cannot_be_used_is_refused_with_the_reason(template: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        GenericFormat(with_template(template))


def test_a_tokenizer_whose_tokens_cross_the_end_of_a_turn_is_refused() -> None:
    tokenizer = copy.deepcopy(tokenizer_of("chatml"))
    tokenizer.add_special_tokens({"additional_special_tokens": [AddedToken("END", single_word=True)]})
    tokenizer.chat_template = tokenizer.chat_template.replace("<|im_end|>", "END")
    with pytest.raises(FormatError, match="cannot continue a conversation behind sampled tokens"):
        GenericFormat(tokenizer)


def test_a_conversation_that_a_template_cannot_show_is_named() -> None:
    template = "{% if messages|length > 3 %}{{ raise_exception('too long') }}{% endif %}"
    chat = GenericFormat(with_template(template + tokenizer_of("chatml").chat_template))
    with pytest.raises(FormatError, match=r"messages of user, assistant, user, assistant \(too long\)"):
        chat.prompt([Message("user", "a"), Message("assistant", "b")] * 2)


def test_template_options_reach_the_template() -> None:
    thinking, silent = (GenericFormat(tokenizer_of("qwen3"), options) for options in ({}, {"enable_thinking": False}))
    assert thinking.safe.decode(silent.prompt(ASKED)).removeprefix(thinking.safe.decode(thinking.prompt(ASKED))) == (
        "<think>\n\n</think>\n\n"
    )
