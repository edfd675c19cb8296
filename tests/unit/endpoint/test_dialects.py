"""Dialects: one conversation reads alike in all three, answers round-trip, and events add up to the whole answer."""

import json
from collections.abc import Iterable
from typing import Any

import pytest

from arise.endpoint.canonical import path_of
from arise.endpoint.dialects import chat, messages, responses
from arise.endpoint.exchange import Answer, Ask, Refused
from arise.types.chat import FunctionCall, Message, ToolSpec

SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}}
CALLS = (FunctionCall("c1", "bash", {"command": "ls é"}), FunctionCall("c2", "bash", {"command": "pwd", "n": 2}))
SAID = Message("assistant", "I look.", "hm", CALLS)
CONVERSATION = (
    Message("system", "You work."),
    Message("user", "Fix it."),
    SAID,
    Message("tool", "a b", call_id="c1"),
    Message("tool", "/app", call_id="c2"),
    Message("user", "go on"),
)
ANSWER = Answer(4, 1700000000, "policy", SAID, "stop", 3, (4, 5), (-0.1, -0.2), (1, 2, 3))
BROKEN = {"function": {"name": "f", "arguments": "{"}}
ASK = Ask((), stream=True, usage_in_stream=True)


def _chat() -> dict[str, Any]:
    def call(made: FunctionCall) -> dict[str, Any]:
        return {
            "id": made.id,
            "type": "function",
            "function": {"name": made.name, "arguments": json.dumps(made.arguments)},
        }

    return {
        "messages": [
            {"role": "developer", "content": "You work."},
            {"role": "user", "content": [{"type": "text", "text": "Fix it."}]},
            {"role": "assistant", "content": "I look.", "reasoning_content": "hm", "tool_calls": [*map(call, CALLS)]},
            {"role": "tool", "tool_call_id": "c1", "content": "a b"},
            {"role": "tool", "tool_call_id": "c2", "content": "/app"},
            {"role": "user", "content": "go on"},
        ],
        "tools": [{"type": "function", "function": {"name": "bash", "description": "Run.", "parameters": SCHEMA}}],
    }


def _messages(nonce: str = "0") -> dict[str, Any]:
    uses = [{"type": "tool_use", "id": made.id, "name": made.name, "input": made.arguments} for made in CALLS]
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    results = [
        {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "a b"}]},
        {"type": "tool_result", "tool_use_id": "c2", "content": "/app"},
    ]
    text = {"type": "text", "text": "I look."}
    header = {"type": "text", "text": f"x-anthropic-billing-header: cc_version=2; cch={nonce};"}
    return {
        "max_tokens": 100,
        "system": [header, {"type": "text", "text": "You work.", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": "Fix it."},
            {"role": "assistant", "content": [thought, text, *uses]},
            {"role": "user", "content": [*results, {"type": "text", "text": "go on"}]},
        ],
        "tools": [{"name": "bash", "description": "Run.", "input_schema": SCHEMA}],
    }


def _responses() -> dict[str, Any]:
    calls = [
        {"type": "function_call", "call_id": made.id, "name": made.name, "arguments": json.dumps(made.arguments)}
        for made in CALLS
    ]
    return {
        "instructions": "You work.",
        "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Fix it."}]},
            {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
            *calls,
            {"type": "function_call_output", "call_id": "c1", "output": "a b"},
            {"type": "function_call_output", "call_id": "c2", "output": "/app"},
            {"role": "user", "content": "go on"},
        ],
        "tools": [{"type": "function", "name": "bash", "description": "Run.", "parameters": SCHEMA, "strict": False}],
    }


@pytest.mark.parametrize(
    "ask",
    [chat.read(_chat()), messages.read(_messages()), responses.read(_responses())],
    ids=["chat", "messages", "responses"],
)
def test_one_conversation_reads_the_same_in_every_dialect(ask: Ask) -> None:
    assert ask.messages == CONVERSATION
    assert ask.tools == (ToolSpec("bash", "Run.", SCHEMA),)


def test_the_nonce_of_claude_code_is_removed() -> None:
    one, two = (messages.read(_messages(nonce)).messages for nonce in ("a1", "b2"))
    assert path_of(one) == path_of(two)
    assert one[0].text == "You work."


def test_answers_read_back_as_they_were_written() -> None:
    whole = chat.write(ANSWER, ASK)["choices"][0]["message"]
    assert chat.read({"messages": [whole]}).messages == (SAID,)
    content = messages.write(ANSWER, ASK)["content"]
    assert messages.read({"messages": [{"role": "assistant", "content": content}]}).messages == (SAID,)
    assert responses.read({"input": responses.write(ANSWER, ASK)["output"]}).messages == (SAID,)


def test_a_cut_answer_is_cut_in_every_dialect() -> None:
    cut = Answer(4, 1, "policy", SAID, "length", 1, (4,), (-0.1,))
    assert chat.write(cut, ASK)["choices"][0]["finish_reason"] == "length"
    assert messages.write(cut, ASK)["stop_reason"] == "max_tokens"
    assert responses.write(cut, ASK)["incomplete_details"] == {"reason": "max_output_tokens"}


def _data(events: Iterable[str]) -> list[dict[str, Any]]:
    lines = [line for event in events for line in event.splitlines() if line.startswith("data: ")]
    return [json.loads(line[6:]) for line in lines if line != "data: [DONE]"]


def test_chat_chunks_add_up_and_calls_come_in_one_chunk() -> None:
    chunks = _data(chat.events(ANSWER, ASK))
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]
    assert "".join(delta.get("content") or "" for delta in deltas) == "I look."
    assert "".join(delta.get("reasoning_content") or "" for delta in deltas) == "hm"
    (calls,) = [delta["tool_calls"] for delta in deltas if "tool_calls" in delta]
    assert [call["index"] for call in calls] == [0, 1]
    assert chunks[-2]["choices"][0]["finish_reason"] == "tool_calls"
    assert chunks[-1]["usage"] == {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}


def test_message_events_add_up() -> None:
    events = _data(messages.events(ANSWER, ASK))
    blocks = [event["content_block"] for event in events if event["type"] == "content_block_start"]
    assert [block["type"] for block in blocks] == ["thinking", "text", "tool_use", "tool_use"]
    arguments = [event["delta"]["partial_json"] for event in events if event.get("delta", {}).get("partial_json")]
    assert [json.loads(text) for text in arguments] == [dict(call.arguments) for call in CALLS]
    assert [event["type"] for event in events[-2:]] == ["message_delta", "message_stop"]


def test_response_events_are_numbered_and_end_with_the_whole() -> None:
    events = _data(responses.events(ANSWER, ASK))
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert events[-1]["response"] == responses.write(ANSWER, ASK)
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert done == events[-1]["response"]["output"]


@pytest.mark.parametrize(
    ("read", "body", "param"),
    [
        (messages.read, {"messages": [], "stop_sequences": ["x"]}, "stop_sequences"),
        (messages.read, {"messages": [], "tools": [{"type": "web_search_20250305", "name": "web"}]}, "tools[0]"),
        (messages.read, {"messages": [], "tool_choice": {"type": "any"}}, "tool_choice"),
        (messages.read, {"messages": [{"role": "user", "content": [{"type": "image"}]}]}, "messages[0].content[0]"),
        (responses.read, {"input": [], "previous_response_id": "r"}, "previous_response_id"),
        (responses.read, {"input": [{"type": "item_reference"}]}, "input[0]"),
        (responses.read, {"input": [], "tools": [{"type": "web_search"}]}, "tools[0]"),
        (responses.read, {"input": [], "text": {"format": {"type": "json_schema"}}}, "text.format"),
        (chat.read, {"messages": [{"role": "assistant", "tool_calls": [BROKEN]}]},
         "messages[0].tool_calls[0].function.arguments"),
    ],
)  # fmt: skip
def test_what_a_dialect_does_not_honour_is_named(read: Any, body: dict[str, Any], param: str) -> None:
    with pytest.raises(Refused) as refused:
        read(body)
    assert refused.value.param == param
