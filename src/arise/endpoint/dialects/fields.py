"""Read request fields; refuse missing, mistyped and unsupported ones by name."""

import json
from collections.abc import Collection, Mapping
from typing import Any, TypeVar

from arise.endpoint.exchange import Refused
from arise.types.chat import FunctionCall, Message, ToolSpec

T = TypeVar("T")

IMPOSED = frozenset({"model", "temperature", "top_p", "top_k", "min_p", "seed"})
"""Fields that are accepted and ignored because the server controls sampling."""
_TEXT_PARTS = {"text", "input_text", "output_text"}


def typed(value: object, kind: type[T], place: str) -> T:
    """Return the value if it has the given type; refuse it otherwise."""
    if isinstance(value, kind) and not (kind is int and isinstance(value, bool)):
        return value
    raise Refused("invalid", f"{place} must be {_NAMES[kind]}, not {type(value).__name__}", place)


_NAMES: Mapping[type, str] = {str: "a string", dict: "an object", list: "an array", int: "an integer"}


def offered(choice: object, tools: list[ToolSpec]) -> tuple[ToolSpec, ...]:
    """Return the tools that the model may call; refuse a forced call, which would change the policy."""
    if choice not in (None, "auto", "none"):
        said = f"tool_choice must be auto or none, not {choice!r}: a forced call is not the policy's own"
        raise Refused("invalid", said, "tool_choice")
    return () if choice == "none" else tuple(tools)


def require_known(value: Mapping[str, Any], known: Collection[str], place: str = "") -> None:
    """Refuse unsupported fields; ignore those that are null or empty."""
    for name, given in value.items():
        if name not in known and given not in (None, [], {}, "", False):
            where = f"{place}.{name}" if place else name
            raise Refused("invalid", f"{where} is not supported by this endpoint: leave it out", where)


def text_of(content: object, place: str) -> str:
    """Return the text of a message's content: a string, null, or text parts joined by line breaks."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    texts = []
    for n, part in enumerate(typed(content, list, place)):
        where = f"{place}[{n}]"
        kind = typed(part, dict, where).get("type")
        if kind not in _TEXT_PARTS:
            raise Refused("invalid", f"{where}: content of type {kind!r} is not supported, only text", where)
        texts.append(typed(part.get("text"), str, f"{where}.text"))
    return "\n".join(texts)


def arguments_of(text: object, place: str) -> dict[str, object]:
    """Parse the arguments of a tool call."""
    try:
        return typed(json.loads(typed(text, str, place) or "{}"), dict, place)
    except json.JSONDecodeError as error:
        raise Refused("invalid", f"{place} is not JSON: {error}", place) from None


def function_tool(value: Mapping[str, Any], place: str, schema: str = "parameters") -> ToolSpec:
    """Read a tool from its name, description and JSON schema."""
    parameters = value.get(schema) or {"type": "object", "properties": {}}
    return ToolSpec(
        typed(value.get("name"), str, f"{place}.name"),
        typed(value.get("description") or "", str, f"{place}.description"),
        typed(parameters, dict, f"{place}.{schema}"),
    )


def limit_of(body: Mapping[str, Any], *names: str) -> int | None:
    """Return the first token limit in the request."""
    for name in names:
        if body.get(name) is not None:
            limit = typed(body[name], int, name)
            if limit < 1:
                raise Refused("invalid", f"{name} must be at least 1, got {limit}", name)
            return limit
    return None


def joined(messages: list[Message]) -> tuple[Message, ...]:
    """Merge adjacent pieces of one assistant turn, which some dialects split, into one message."""
    found: list[Message] = []
    for message in messages:
        last = found[-1] if found else None
        if last is not None and last.role == message.role == "assistant":
            found[-1] = Message(
                "assistant",
                _lines(last.text, message.text),
                _lines(last.reasoning, message.reasoning),
                last.calls + message.calls,
            )
        else:
            found.append(message)
    return tuple(found)


def _lines(one: str, other: str) -> str:
    return f"{one}\n{other}" if one and other else one or other


def arguments_text(call: FunctionCall) -> str:
    """Serialize the arguments of a call as JSON text."""
    return json.dumps(dict(call.arguments), ensure_ascii=False)
