"""OpenAI chat completions: requests, answers, events and errors."""

from collections.abc import Iterator
from typing import Any

from arise.endpoint.dialects.fields import (
    IMPOSED,
    arguments_of,
    arguments_text,
    function_tool,
    limit_of,
    offered,
    require_known,
    text_of,
    typed,
)
from arise.endpoint.exchange import Answer, Ask, Body, Refused
from arise.endpoint.stream import DONE, Event, data
from arise.types.chat import FunctionCall, Message, Role, ToolSpec

KEEP_ALIVE = ": keepalive\n"
"""A comment without a blank line: some clients fail to decode a complete event that has only a comment."""
_HONOURED = frozenset({
    *("messages", "tools", "tool_choice", "stream", "stream_options", "n", "max_tokens", "max_completion_tokens"),
    *("logprobs", "top_logprobs", "return_token_ids", "response_format"),
})  # fmt: skip
_NO_EFFECT = frozenset({
    *("user", "metadata", "store", "service_tier", "prompt_cache_key", "prompt_cache_retention", "safety_identifier"),
    *("reasoning_effort", "verbosity", "parallel_tool_calls", "reasoning", "thinking", "enable_thinking"),
    *("chat_template_kwargs", "extra_body"),
})  # fmt: skip
"""Accepted and ignored: accounting and provider hints. The run's configuration controls reasoning."""
_MESSAGE = frozenset({
    *("role", "content", "name", "tool_calls", "tool_call_id", "reasoning_content", "reasoning", "reasoning_details"),
    *("refusal", "annotations", "cache_control", "provider_specific_fields", "reasoning_text"),
})  # fmt: skip
_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}


def read(body: Body) -> Ask:
    """Translate a request."""
    require_known(body, IMPOSED | _HONOURED | _NO_EFFECT)
    if body.get("n") not in (None, 1):
        raise Refused("invalid", "n must be 1: each call is one turn of a conversation", "n")
    if body.get("top_logprobs"):
        raise Refused("invalid", "top_logprobs is not supported: ask for logprobs alone", "top_logprobs")
    if (body.get("response_format") or {"type": "text"}).get("type") != "text":
        raise Refused("invalid", "response_format is not supported: it would change the policy", "response_format")
    messages = typed(body.get("messages"), list, "messages")
    options = typed(body.get("stream_options") or {}, dict, "stream_options")
    return Ask(
        tuple(message_of(message, f"messages[{n}]") for n, message in enumerate(messages)),
        _tools(body),
        bool(body.get("stream")),
        limit_of(body, "max_completion_tokens", "max_tokens"),
        bool(options.get("include_usage")),
        bool(body.get("return_token_ids")),
        bool(body.get("logprobs")),
    )


def message_of(value: object, place: str) -> Message:
    """Read one message."""
    given = typed(value, dict, place)
    require_known(given, _MESSAGE, place)
    name = typed(given.get("role"), str, f"{place}.role")
    if name not in _ROLES:
        raise Refused("invalid", f"{place}.role {name!r} is not one of {', '.join(_ROLES)}", f"{place}.role")
    role, text = _ROLES[name], text_of(given.get("content"), f"{place}.content")
    if role == "tool":
        return Message(role, text, call_id=given.get("tool_call_id") or "", name=given.get("name") or "")
    if role != "assistant":
        return Message(role, text)
    reasoning = given.get("reasoning_content") or given.get("reasoning") or given.get("reasoning_text") or ""
    calls = typed(given.get("tool_calls") or [], list, f"{place}.tool_calls")
    return Message(
        role,
        text,
        typed(reasoning, str, f"{place}.reasoning_content"),
        tuple(_call(call, f"{place}.tool_calls[{n}]") for n, call in enumerate(calls)),
    )


def _call(value: object, place: str) -> FunctionCall:
    given = typed(value, dict, place)
    made = typed(given.get("function"), dict, f"{place}.function")
    name = typed(made.get("name"), str, f"{place}.function.name")
    return FunctionCall(
        given.get("id") or "", name, arguments_of(made.get("arguments") or "", f"{place}.function.arguments")
    )


def _tools(body: Body) -> tuple[ToolSpec, ...]:
    found = []
    for n, value in enumerate(typed(body.get("tools") or [], list, "tools")):
        place = f"tools[{n}]"
        if typed(value, dict, place).get("type", "function") != "function":
            raise Refused("invalid", f"{place}: tools of type {value.get('type')!r} are not supported", f"{place}.type")
        found.append(function_tool(typed(value.get("function"), dict, f"{place}.function"), f"{place}.function"))
    return offered(body.get("tool_choice"), found)


def write(answer: Answer, ask: Ask) -> dict[str, Any]:
    """Write an answer as one object, with vLLM's token fields if requested."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.reply.text or None}
    if answer.reply.reasoning:
        message["reasoning_content"] = answer.reply.reasoning
    if answer.reply.calls:
        message["tool_calls"] = _written_calls(answer)
    choice = {"index": 0, "message": message, "finish_reason": _finish(answer), **_tokens(answer, ask)}
    prompt = {"prompt_token_ids": list(answer.prompt_ids)} if ask.token_ids else {}
    return {**_head(answer, "chat.completion"), "choices": [choice], "usage": _usage(answer), **prompt}


def events(answer: Answer, ask: Ask) -> Iterator[Event]:
    """Write an answer as a stream; send all calls in one chunk, each with its index."""
    reply = answer.reply

    def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, **more}
        return {**_head(answer, "chat.completion.chunk"), "choices": [choice]}

    first = chunk({"role": "assistant", "content": ""})
    yield data(first | ({"prompt_token_ids": list(answer.prompt_ids)} if ask.token_ids else {}))
    if reply.reasoning:
        yield data(chunk({"reasoning_content": reply.reasoning}))
    if reply.text:
        yield data(chunk({"content": reply.text}))
    if reply.calls:
        calls = [{"index": n, **call} for n, call in enumerate(_written_calls(answer))]
        yield data(chunk({"tool_calls": calls}))
    yield data(chunk({}, _finish(answer), **_tokens(answer, ask)))
    if ask.usage_in_stream:
        yield data({**_head(answer, "chat.completion.chunk"), "choices": [], "usage": _usage(answer)})
    yield DONE


def error(refused: Refused) -> dict[str, Any]:
    """Write a refusal in this dialect's error format."""
    codes = {"context": "context_length_exceeded", "key": "invalid_api_key", "unavailable": "server_error"}
    kind = "server_error" if refused.status >= 500 else "invalid_request_error"
    code = codes.get(refused.kind)
    return {"error": {"message": refused.message, "type": kind, "param": refused.param, "code": code}}


def _head(answer: Answer, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{answer.name}", "object": kind, "created": answer.created, "model": answer.model}


def _finish(answer: Answer) -> str:
    if answer.finish == "length":
        return "length"
    return "tool_calls" if answer.reply.calls else "stop"


def _written_calls(answer: Answer) -> list[dict[str, Any]]:
    return [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments_text(call)}}
        for call in answer.reply.calls
    ]


def _usage(answer: Answer) -> dict[str, Any]:
    prompt, sampled = answer.prompt_tokens, len(answer.ids)
    return {"prompt_tokens": prompt, "completion_tokens": sampled, "total_tokens": prompt + sampled}


def _tokens(answer: Answer, ask: Ask) -> dict[str, Any]:
    fields: dict[str, Any] = {"token_ids": list(answer.ids)} if ask.token_ids else {}
    if ask.logprobs:
        pieces = answer.pieces or ("",) * len(answer.ids)
        content = [
            {"token": piece, "logprob": logprob, "bytes": list(piece.encode()), "top_logprobs": []}
            for piece, logprob in zip(pieces, answer.logprobs, strict=True)
        ]
        fields["logprobs"] = {"content": content}
    return fields
