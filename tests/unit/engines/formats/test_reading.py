"""Assistant turns read back: reasoning, text, calls, and why a call cannot be read."""

import pytest
from tests.unit.engines.formats.families import FAMILIES, tokenizer_of
from tests.unit.engines.formats.test_generic import BASH, CALL

from arise.engines.formats.generic import GenericFormat
from arise.engines.formats.reading import reply_of
from arise.types import FunctionCall, Message, Reply, StreamEvent

families = pytest.mark.parametrize("name", FAMILIES)


def ids_of(chat: GenericFormat, text: str) -> list[int]:
    return chat.safe.encode(text)


@families
def test_a_call_with_several_lines_is_read_back(name: str) -> None:
    chat = GenericFormat(tokenizer_of(name))
    reply = chat.read(chat.answer(Message("assistant", calls=(CALL,)), [BASH]), [BASH])
    assert [(call.name, dict(call.arguments)) for call in reply.calls] == [("bash", dict(CALL.arguments))]
    assert (reply.text, reply.malformed) == ("", "")


@families
def test_several_calls_in_one_turn_are_read_in_order(name: str) -> None:
    if name == "llama-3":  # its template writes one call per turn; the reader takes several
        chat = GenericFormat(tokenizer_of(name))
        line = '{{"name": "bash", "parameters": {{"command": "{}"}}}}'
        ids = ids_of(chat, f"{line.format('one')}; {line.format('two')}")
    else:
        chat = GenericFormat(tokenizer_of(name))
        calls = tuple(FunctionCall(f"call0000{n}", "bash", {"command": text}) for n, text in enumerate(["one", "two"]))
        ids = chat.answer(Message("assistant", calls=calls), [BASH])
    reply = chat.read(ids, [BASH])
    assert [call.arguments["command"] for call in reply.calls] == ["one", "two"]
    assert len({call.id for call in reply.calls}) == 2


@families
def test_a_stream_token_by_token_says_what_the_whole_says(name: str) -> None:
    chat = GenericFormat(tokenizer_of(name))
    for message in (
        Message("assistant", "Ich öffne die Datei. 日本語 🙂 <done> `x` {not json}", "Erst  prüfen\n\n", (CALL,)),
        Message("assistant", "  plain answer with ``` fences and < signs  "),
        Message("assistant", "", "only thought"),
    ):
        ids = chat.answer(message, [BASH])
        whole, reader, events = chat.read(ids, [BASH]), chat.stream([BASH]), list[StreamEvent]()
        for i in ids:
            events += reader.feed([i])
        streamed = len(events)
        events += reader.end()
        assert "".join(event.text for event in events if event.kind == "text") == whole.text
        assert "".join(event.text for event in events if event.kind == "reasoning") == whole.reasoning
        assert tuple(event.call for event in events if event.call) == whole.calls
        assert streamed > 0 or not (whole.text or whole.reasoning)


def test_reasoning_that_the_prompt_opened_ends_at_its_tag() -> None:
    chat = GenericFormat(tokenizer_of("deepseek"))
    asked = [Message("user", "Go.")]
    prompt = chat.prompt(asked, [BASH])
    assert chat.read(ids_of(chat, "think of it</think>\n\nyes"), [BASH], prompt) == Reply("yes", "think of it")
    said = Message("assistant", calls=(CALL,))
    after = chat.prompt([*asked, said, Message("tool", "ok", call_id=CALL.id, name="bash")], [BASH])
    assert chat.read(ids_of(chat, "yes"), [BASH], after) == Reply("yes")


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("qwen3", 'Now.\n<tool_call>\n{"name": "bash", "arguments": {"command": "ls}\n</tool_call>', "not valid JSON"),
        ("qwen3", '<tool_call>\n{"name": "bash", "arguments": {"command": "ls"}}', "no </tool_call>"),
        ("qwen3", '<tool_call>{"arguments": {}}</tool_call>', 'no "name"'),
        ("qwen3", '<tool_call>{"name": "bash", "arguments": [1]}</tool_call>', "not a JSON object"),
        ("qwen3", "<tool_call>please list</tool_call>", "neither"),
        ("glm", "<tool_call>bash\n<arg_key>command</arg_key>\n</tool_call>", "no <arg_value>"),
        ("llama-3", '{"name": "bash", "parameters": {"command": "ls"', "not valid JSON"),
        ("mistral", '[TOOL_CALLS][{"name": "bash"', "not valid JSON"),
        ("mistral", "[TOOL_CALLS]bash please", "neither a JSON list"),
        ("deepseek", "</think><｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>bash", "lacks"),
        ("chatml", "```bash\nls", "no closing"),
    ],
)
def test_a_malformed_call_keeps_its_text_and_says_why(name: str, text: str, why: str) -> None:
    chat = GenericFormat(tokenizer_of(name))
    reply = chat.read(ids_of(chat, text), [BASH])
    assert why in reply.malformed
    assert reply.calls == ()
    assert reply.text == text.removeprefix("</think>")


@pytest.mark.parametrize(
    ("name", "text", "command"),
    [
        ("qwen3", '<tool_call>\n{"name": "bash", "arguments": {"command": "a\nb"}}\n</tool_call>', "a\nb"),
        ("qwen3", '<tool_call>{"name":"bash","arguments":"{\\"command\\": \\"ls\\"}"}</tool_call>', "ls"),
        ("qwen3", '<tool_call>{"name": "bash", "arguments": {"command": "echo </tool_call>"}}</tool_call>', "echo </t"),
        ("llama-3", '<|python_tag|>{"name": "bash", "parameters": {"command": "ls"}}', "ls"),
        ("mistral", '[TOOL_CALLS]bash[ARGS]{"command": "ls"}', "ls"),
        ("chatml", "I look.\n```bash\ncat <<'E' > f\none\n\ntwo\nE\n```\n", "cat <<'E' > f\none\n\ntwo\nE"),
        ("gemma", '<tool_call>{"name": "bash", "parameters": {"command": "ls"}}</tool_call>', "ls"),
        ("qwen3.5", "</think><tool_call><function=bash><parameter=command>ls</parameter></function></tool_call>", "ls"),
    ],
)
def test_calls_are_read_as_models_write_them(name: str, text: str, command: str) -> None:
    chat = GenericFormat(tokenizer_of(name))
    reply = chat.read(ids_of(chat, text), [BASH])
    assert reply.malformed == ""
    assert str(reply.calls[0].arguments["command"]).startswith(command)


def test_json_that_names_no_tool_and_fences_without_a_shell_are_text() -> None:
    llama, chatml = (GenericFormat(tokenizer_of(name)) for name in ("llama-3", "chatml"))
    assert llama.read(ids_of(llama, '{"a": 1}'), [BASH]) == Reply('{"a": 1}')
    assert chatml.read(ids_of(chatml, "```bash\nls\n```"), []) == Reply("```bash\nls\n```")


RESPONSE_TEMPLATE = {
    "start_anchor": "<|im_start|>assistant\n",
    "fields": {
        "content": {},
        "thinking": {"open": "<think>", "close": "</think>"},
        "tool_calls": {
            "open": "<tool_call>",
            "close": "</tool_call>",
            "content": "json",
            "repeats": True,
            "transform": {"type": "function", "function": "{content}"},
        },
    },
}


def test_the_response_template_of_a_tokenizer_is_used() -> None:
    import copy

    tokenizer = copy.copy(tokenizer_of("qwen3"))
    tokenizer.response_template = RESPONSE_TEMPLATE
    chat = GenericFormat(tokenizer)
    ids = chat.answer(Message("assistant", "Look.", "first", (CALL,)), [BASH])
    reply = chat.read(ids, [BASH])
    assert (reply.text, reply.reasoning, reply.calls[0].arguments) == ("Look.", "first", dict(CALL.arguments))
    broken = chat.read(ids_of(chat, 'so <tool_call>{"name": </tool_call>'), [BASH])
    assert broken.calls == ()
    assert broken.malformed
    assert broken.text.startswith("so <tool_call>")
    assert reply_of(chat.stream([BASH]), ids) == reply
