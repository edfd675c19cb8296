"""OpenAI responses: requests, answers, events and errors. Nothing is stored; clients resend their whole input."""

from collections.abc import Iterator
from typing import Any

from arise.endpoint.dialects.chat import error as error  # both OpenAI APIs use the same error format
from arise.endpoint.dialects.fields import (
    IMPOSED,
    arguments_of,
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

KEEP_ALIVE = ": keepalive\n"
_HONOURED = frozenset({"input", "instructions", "tools", "tool_choice", "stream", "max_output_tokens", "text"})
_NO_EFFECT = frozenset({
    *("store", "include", "reasoning", "parallel_tool_calls", "prompt_cache_key", "metadata", "service_tier", "user"),
    *("truncation", "client_metadata", "safety_identifier", "stream_options", "prompt_cache_retention"),
})  # fmt: skip
_ROLES: dict[str, Role] = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}


def read(body: Body) -> Ask:
    """Translate a request."""
    require_known(body, IMPOSED | _HONOURED | _NO_EFFECT)
    shape = typed(typed(body.get("text") or {}, dict, "text").get("format") or {"type": "text"}, dict, "text.format")
    if shape.get("type") != "text":
        raise Refused("invalid", "text.format must be text: a schema would change the policy", "text.format")
    instructions, given = body.get("instructions"), body.get("input")
    messages = [Message("system", typed(instructions, str, "instructions"))] if instructions else []
    if isinstance(given, str):
        messages.append(Message("user", given))
    else:
        items = typed(given, list, "input")
        messages += [_item(item, f"input[{n}]") for n, item in enumerate(items)]
    return Ask(joined(messages), _tools(body), bool(body.get("stream")), limit_of(body, "max_output_tokens"))


def _item(value: object, place: str) -> Message:
    item = typed(value, dict, place)
    kind = item.get("type", "message")
    if kind == "message":
        name = typed(item.get("role"), str, f"{place}.role")
        if name not in _ROLES:
            raise Refused("invalid", f"{place}.role {name!r} is not one of {', '.join(_ROLES)}", f"{place}.role")
        return Message(_ROLES[name], text_of(item.get("content"), f"{place}.content"))
    if kind == "function_call":
        arguments = arguments_of(item.get("arguments") or "", f"{place}.arguments")
        name = typed(item.get("name"), str, f"{place}.name")
        return Message("assistant", calls=(FunctionCall(item.get("call_id") or "", name, arguments),))
    if kind == "function_call_output":
        text = text_of(item.get("output"), f"{place}.output")
        return Message("tool", text, call_id=item.get("call_id") or "")
    if kind == "reasoning":
        return Message("assistant", reasoning=_reasoning(item))
    raise Refused("invalid", f"{place}: input of type {kind!r} is not supported", place)


def _reasoning(item: dict[str, Any]) -> str:
    parts = item.get("content") or item.get("summary") or []
    return "\n".join(str(part.get("text", "")) for part in parts)


def _tools(body: Body) -> tuple[ToolSpec, ...]:
    found = []
    for n, value in enumerate(typed(body.get("tools") or [], list, "tools")):
        place = f"tools[{n}]"
        if typed(value, dict, place).get("type") != "function":
            raise Refused("invalid", f"{place}: tools of type {value.get('type')!r} are not supported", place)
        found.append(function_tool(value, place))
    return offered(body.get("tool_choice"), found)


def _output(answer: Answer) -> list[dict[str, Any]]:
    reply, name, items = answer.reply, answer.name, list[dict[str, Any]]()
    if reply.reasoning:
        text = {"type": "reasoning_text", "text": reply.reasoning}
        items.append({"id": f"rs_{name}", "type": "reasoning", "summary": [], "content": [text]})
    if reply.text or not reply.calls:
        part = {"type": "output_text", "text": reply.text, "annotations": []}
        head = {"id": f"msg_{name}", "type": "message", "role": "assistant", "status": "completed"}
        items.append({**head, "content": [part]})
    for n, call in enumerate(reply.calls):
        head = {"id": f"fc_{name}_{n}", "type": "function_call", "status": "completed", "call_id": call.id}
        items.append({**head, "name": call.name, "arguments": arguments_text(call)})
    return items


def write(answer: Answer, ask: Ask) -> dict[str, Any]:  # noqa: ARG001 - every dialect has this signature
    """Write an answer as one object."""
    cut = answer.finish == "length"
    prompt, sampled = answer.prompt_tokens, len(answer.ids)
    return {
        **_head(answer, "incomplete" if cut else "completed"),
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "output": _output(answer),
        "usage": {
            "input_tokens": prompt,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": sampled,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": prompt + sampled,
        },
    }


def events(answer: Answer, ask: Ask) -> Iterator[Event]:
    """Write an answer as a stream of numbered events."""
    begun = {**_head(answer, "in_progress"), "output": [], "usage": None}
    whole = write(answer, ask)
    parts: list[dict[str, Any]] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
    ]
    for n, item in enumerate(whole["output"]):
        parts += _item_events(item, n)
    parts.append({"type": f"response.{whole['status']}", "response": whole})
    for number, part in enumerate(parts):
        yield named(part["type"], {**part, "sequence_number": number})


def full_window(refused: Refused) -> Iterator[Event]:
    """Write the refusal of a prompt that does not fit as a stream; Codex recognises it in no other form."""
    said = error(refused)["error"]
    reason = {"code": said["code"], "message": said["message"]}
    response = {"id": "resp_refused", "object": "response", "status": "failed", "output": [], "error": reason}
    yield named("response.failed", {"type": "response.failed", "response": response, "sequence_number": 0})


def _item_events(item: dict[str, Any], n: int) -> list[dict[str, Any]]:
    place = {"item_id": item["id"], "output_index": n}
    blank: dict[str, Any] = {"arguments": ""} if item["type"] == "function_call" else {"content": []}
    started = item | {"status": "in_progress"} | blank
    begun = {"type": "response.output_item.added", "output_index": n, "item": started}
    ended = {"type": "response.output_item.done", "output_index": n, "item": item}
    if item["type"] == "function_call":
        text = item["arguments"]
        delta = {"type": "response.function_call_arguments.delta", **place, "delta": text}
        done = {"type": "response.function_call_arguments.done", **place, "name": item["name"], "arguments": text}
        return [begun, delta, done, ended]
    part = item["content"][0]
    text, place = part["text"], {**place, "content_index": 0}
    if item["type"] == "reasoning":
        return [begun, {"type": "response.reasoning_text.delta", **place, "delta": text}, ended]
    return [
        begun,
        {"type": "response.content_part.added", **place, "part": part | {"text": ""}},
        {"type": "response.output_text.delta", **place, "delta": text, "logprobs": []},
        {"type": "response.output_text.done", **place, "text": text, "logprobs": []},
        {"type": "response.content_part.done", **place, "part": part},
        ended,
    ]


def _head(answer: Answer, status: str) -> dict[str, Any]:
    return {
        "id": f"resp_{answer.name}",
        "object": "response",
        "created_at": answer.created,
        "status": status,
        "model": answer.model,
        "error": None,
        "incomplete_details": None,
        "tool_choice": "auto",
        "tools": [],
        "parallel_tool_calls": True,
    }
