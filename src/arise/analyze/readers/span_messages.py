"""Messages of one model call in a span: attributes of GenAI, OpenInference and OpenLLMetry, and events before 1.37."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from arise.analyze.files import as_mapping

Span = dict[str, Any]
"""`id`, `trace`, `start`, `attributes`, and `events` as pairs of name and attributes."""
INPUT, OUTPUT = "input", "output"
_INDEXED = re.compile(
    r"(?:llm\.(?:input|output)_messages\.(?P<place>\d+)\.message|gen_ai\.(?:prompt|completion)\.(?P<older>\d+))\.(?P<name>.+)"
)
_CALL = re.compile(r"tool_calls\.(\d+)\.(?:tool_call\.)?(id|(?:function\.)?(?:name|arguments))")
_PREFIXES = {INPUT: ("llm.input_messages.", "gen_ai.prompt."), OUTPUT: ("llm.output_messages.", "gen_ai.completion.")}
_CHOICE = "gen_ai.choice"
_EVENTS = {"gen_ai.system.message": "system", "gen_ai.user.message": "user", "gen_ai.assistant.message": "assistant",
           "gen_ai.tool.message": "tool", _CHOICE: "assistant"}  # fmt: skip
"""Events of the conventions up to 1.36, one message each, by role."""
_WHOLE = {"gen_ai.content.prompt": INPUT, "gen_ai.content.completion": OUTPUT}
"""Older events that hold all messages of one side."""
_DETAILS = "gen_ai.client.inference.operation.details"
EVENT_NAMES = frozenset({*_EVENTS, *_WHOLE, _DETAILS})
_CHAT = {"chat", "generate_content", "text_completion"}


def is_model_call(span: Span) -> bool:
    """Return whether a span is a call of a model, not of a tool or an agent."""
    attributes = span["attributes"]
    return (
        attributes.get("gen_ai.operation.name") in _CHAT
        or attributes.get("openinference.span.kind") == "LLM"
        or any(key.startswith((*_PREFIXES[INPUT], *_PREFIXES[OUTPUT])) for key in attributes)
        or (any(name in EVENT_NAMES for name, _ in span["events"]) and "gen_ai.operation.name" not in attributes)
    )


def messages_of(span: Span, side: str) -> list[dict[str, Any]]:
    """Return the messages of one side of a call in OpenAI's format; every span repeats its history."""
    details = [as_mapping(facts) for name, facts in span["events"] if name == _DETAILS]
    for attributes in (span["attributes"], *details):
        if found := _listed(attributes, side):
            return found
    indexed: dict[int, dict[str, Any]] = {}
    for key, item in span["attributes"].items():
        if key.startswith(_PREFIXES[side]) and (match := _INDEXED.fullmatch(key)):
            place = int(match["place"] or match["older"])
            _place(indexed.setdefault(place, {}), match["name"], item)
    if indexed:
        return [_closed(indexed[number]) for number in sorted(indexed)]
    return list(_from_events(span["events"], side))


def parsed(value: Any) -> Any:
    """Return the value of a JSON string, or the value itself."""
    if isinstance(value, str):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _listed(attributes: Mapping[str, Any], side: str) -> list[dict[str, Any]]:
    rows = parsed(attributes.get(f"gen_ai.{side}.messages"))
    if not isinstance(rows, list):
        return []
    found = [message for row in rows if isinstance(row, Mapping) for message in _from_parts(row)]
    system = parsed(attributes.get("gen_ai.system_instructions")) if side == INPUT else None
    return [{"role": "system", "content": system}, *found] if system else found


def _from_parts(row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the messages of one row; results of several calls in one row are several messages."""
    parts = row.get("parts")
    if not isinstance(parts, list):
        yield dict(row)
        return
    message: dict[str, Any] = {"role": row.get("role"), "content": []}
    results = []
    for part in parts:
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind == "tool_call":
            call = {"id": part.get("id"), "name": part.get("name"), "arguments": part.get("arguments")}
            message.setdefault("tool_calls", []).append(call)
        elif kind == "tool_call_response":
            said = part.get("response", part.get("result"))
            results.append({"role": "tool", "tool_call_id": part.get("id"), "content": said})
        else:
            message["content"].append(part)
    yield from results
    if message["content"] or message.get("tool_calls") or not results:
        yield message


def _from_events(events: list[tuple[str, Any]], side: str) -> Iterator[dict[str, Any]]:
    for name, facts in events:
        body = _body(facts)
        if _WHOLE.get(name) == side:
            rows = parsed(body.get("gen_ai.prompt" if side == INPUT else "gen_ai.completion"))
            yield from (dict(row) for row in rows if isinstance(row, Mapping)) if isinstance(rows, list) else ()
        elif name in _EVENTS and (name == _CHOICE) == (side == OUTPUT):
            inner = parsed(body.get("message"))
            told = {**body, **inner} if isinstance(inner, Mapping) else {"content": inner, **body}
            calls = parsed(told.get("tool_calls"))
            message = {"role": _EVENTS[name], "content": told.get("content")}
            message |= {"tool_calls": calls} if isinstance(calls, list) else {}
            yield message | ({"tool_call_id": told["id"]} if name == "gen_ai.tool.message" and "id" in told else {})


def _body(facts: Any) -> Mapping[str, Any]:
    """Return what an event says: its attributes, or the JSON body that some exporters put into one of them."""
    inner = parsed(as_mapping(facts).get("gen_ai.event.content"))
    return inner if isinstance(inner, Mapping) else as_mapping(facts)


def _place(message: dict[str, Any], name: str, item: Any) -> None:
    if call := _CALL.fullmatch(name):
        entry = message.setdefault("calls", {}).setdefault(int(call.group(1)), {})
        entry[call.group(2).rpartition(".")[2]] = item
    elif name in ("role", "content", "tool_call_id"):
        message[name] = item
    elif name.endswith(".text"):
        message["content"] = f"{message.get('content') or ''}{item}"
    elif name.endswith("image.url"):
        message["content"] = f"{message.get('content') or ''}[image]"


def _closed(message: dict[str, Any]) -> dict[str, Any]:
    calls = message.pop("calls", {})
    if calls:
        message["tool_calls"] = [calls[number] for number in sorted(calls)]
    return message
