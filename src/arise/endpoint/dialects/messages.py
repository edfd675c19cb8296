"""Anthropic messages: requests, answers, events and errors."""

from collections.abc import Iterator
from typing import Any

from arise.endpoint.dialects.fields import (
    IMPOSED,
    arguments_text,
    function_tool,
    joined,
    limit_of,
    offered,
    require_known,
    text_of,
    typed,
)
from arise.endpoint.exchange import Answer, Ask, Body, Refused
from arise.endpoint.stream import Event, named
from arise.types.chat import FunctionCall, Message, Role, ToolSpec

KEEP_ALIVE = named("ping", {"type": "ping"})
_HONOURED = frozenset({"messages", "system", "tools", "tool_choice", "stream", "max_tokens"})
_NO_EFFECT = frozenset({"metadata", "service_tier", "thinking", "betas", "output_config", "context_management"})
VOLATILE = "x-anthropic-billing-header"
"""Claude Code adds a header to its first system block that changes with every call."""
SIGNATURE = "arise"
_ROLES: dict[str, Role] = {"system": "system", "user": "user", "assistant": "assistant"}


def read(body: Body) -> Ask:
    """Translate a request."""
    require_known(body, IMPOSED | _HONOURED | _NO_EFFECT)
    given = typed(body.get("messages"), list, "messages")
    messages = [_system(body.get("system"))] if body.get("system") else []
    for n, message in enumerate(given):
        messages += _messages(message, f"messages[{n}]")
    limit = limit_of(body, "max_tokens")
    return Ask(joined(messages), _tools(body), bool(body.get("stream")), limit)


def _system(value: object) -> Message:
    if isinstance(value, list):
        value = [part for part in value if not str(dict(part).get("text", "")).startswith(VOLATILE)]
    return Message("system", text_of(value, "system"))


def _messages(value: object, place: str) -> list[Message]:
    """Split a message with several tool results and text into one message each, in order."""
    message = typed(value, dict, place)
    name = typed(message.get("role"), str, f"{place}.role")
    if name not in _ROLES:
        raise Refused("invalid", f"{place}.role {name!r} is not one of {', '.join(_ROLES)}", f"{place}.role")
    role, content = _ROLES[name], message.get("content")
    if isinstance(content, str):
        return [Message(role, content)]
    found: list[Message] = []
    for n, block in enumerate(typed(content, list, f"{place}.content")):
        found.append(_block(typed(block, dict, f"{place}.content[{n}]"), role, f"{place}.content[{n}]"))
    return _texts_joined(found)


def _block(block: dict[str, Any], role: Role, place: str) -> Message:
    kind = block.get("type")
    if kind == "text":
        return Message(role, typed(block.get("text"), str, f"{place}.text"))
    if kind == "tool_use" and role == "assistant":
        arguments = typed(block.get("input") or {}, dict, f"{place}.input")
        call = FunctionCall(block.get("id") or "", typed(block.get("name"), str, f"{place}.name"), arguments)
        return Message("assistant", calls=(call,))
    if kind == "tool_result" and role == "user":
        text = text_of(block.get("content"), f"{place}.content")
        return Message("tool", text, call_id=block.get("tool_use_id") or "")
    if kind == "thinking" and role == "assistant":
        return Message("assistant", reasoning=typed(block.get("thinking"), str, f"{place}.thinking"))
    raise Refused("invalid", f"{place}: content of type {kind!r} is not supported in a message of {role}", place)


def _texts_joined(messages: list[Message]) -> list[Message]:
    """Merge adjacent text blocks of one message."""
    found: list[Message] = []
    for message in messages:
        if found and found[-1].role == message.role in ("user", "system"):
            found[-1] = Message(message.role, f"{found[-1].text}\n{message.text}")
        else:
            found.append(message)
    return found


def _tools(body: Body) -> tuple[ToolSpec, ...]:
    found = []
    for n, value in enumerate(typed(body.get("tools") or [], list, "tools")):
        place = f"tools[{n}]"
        if typed(value, dict, place).get("type", "custom") != "custom":
            raise Refused("invalid", f"{place}: tools of type {value['type']!r} run at a provider, not here", place)
        found.append(function_tool(value, place, "input_schema"))
    choice = typed(body.get("tool_choice") or {}, dict, "tool_choice").get("type")
    return offered(choice, found)


def _content(answer: Answer) -> list[dict[str, Any]]:
    reply, blocks = answer.reply, list[dict[str, Any]]()
    if reply.reasoning:
        blocks.append({"type": "thinking", "thinking": reply.reasoning, "signature": SIGNATURE})
    if reply.text or not reply.calls:
        blocks.append({"type": "text", "text": reply.text})
    for call in reply.calls:
        blocks.append({"type": "tool_use", "id": call.id, "name": call.name, "input": dict(call.arguments)})
    return blocks


def write(answer: Answer, ask: Ask) -> dict[str, Any]:  # noqa: ARG001 - every dialect has this signature
    """Write an answer as one object."""
    usage = {**_input_usage(answer), "output_tokens": len(answer.ids)}
    return {**_head(answer), "content": _content(answer), "stop_reason": _stop(answer), "usage": usage}


def events(answer: Answer, ask: Ask) -> Iterator[Event]:  # noqa: ARG001 - every dialect has this signature
    """Write an answer as a stream of content blocks."""
    begun = {**_head(answer), "content": [], "stop_reason": None, "usage": {**_input_usage(answer), "output_tokens": 0}}
    yield named("message_start", {"type": "message_start", "message": begun})
    for n, (block, call) in enumerate(_with_calls(answer)):
        yield named("content_block_start", {"type": "content_block_start", "index": n, "content_block": _empty(block)})
        for delta in _deltas(block, call):
            yield named("content_block_delta", {"type": "content_block_delta", "index": n, "delta": delta})
        yield named("content_block_stop", {"type": "content_block_stop", "index": n})
    delta = {"stop_reason": _stop(answer), "stop_sequence": None}
    usage = {"output_tokens": len(answer.ids)}
    yield named("message_delta", {"type": "message_delta", "delta": delta, "usage": usage})
    yield named("message_stop", {"type": "message_stop"})


def _with_calls(answer: Answer) -> Iterator[tuple[dict[str, Any], FunctionCall | None]]:
    calls = iter(answer.reply.calls)
    for block in _content(answer):
        yield block, next(calls) if block["type"] == "tool_use" else None


def _empty(block: dict[str, Any]) -> dict[str, Any]:
    blank: dict[str, dict[str, Any]] = {
        "text": {"text": ""},
        "thinking": {"thinking": "", "signature": ""},
        "tool_use": {"input": {}},
    }
    return block | blank[block["type"]]


def _deltas(block: dict[str, Any], call: FunctionCall | None) -> list[dict[str, Any]]:
    if call is not None:
        return [{"type": "input_json_delta", "partial_json": arguments_text(call)}]
    if block["type"] == "thinking":
        signed = {"type": "signature_delta", "signature": block["signature"]}
        return [{"type": "thinking_delta", "thinking": block["thinking"]}, signed]
    return [{"type": "text_delta", "text": block["text"]}]


def error(refused: Refused) -> dict[str, Any]:
    """Write a refusal in this dialect's error format; clients compact when they read `prompt is too long`."""
    kinds = {"key": "authentication_error", "unavailable": "overloaded_error"}
    said = f"prompt is too long: {refused.message}" if refused.kind == "context" else refused.message
    return {"type": "error", "error": {"type": kinds.get(refused.kind, "invalid_request_error"), "message": said}}


def _head(answer: Answer) -> dict[str, Any]:
    return {
        "id": f"msg_{answer.name}",
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "stop_sequence": None,
    }


def _input_usage(answer: Answer) -> dict[str, int]:
    count = answer.prompt_tokens
    return {"input_tokens": count, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}


def _stop(answer: Answer) -> str:
    if answer.finish == "length":
        return "max_tokens"
    return "tool_use" if answer.reply.calls else "end_turn"
