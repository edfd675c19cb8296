"""OpenTelemetry spans: GenAI semantic conventions and OpenInference, as OTLP JSON, JSON Lines, or nested exports."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from arise.analyze.conversation import Conversation
from arise.analyze.files import Unreadable, as_mapping, lines, load, mentions
from arise.analyze.found import Found, Item, Options, Outcome, Skipped, Triage
from arise.analyze.messages import add_message

_INDEXED = re.compile(r"llm\.(input|output)_messages\.(\d+)\.message\.(.+)")
_CALL = re.compile(r"tool_calls\.(\d+)\.tool_call\.(id|function\.name|function\.arguments)")
_CHAT = {"chat", "generate_content", "text_completion"}
Span = dict[str, Any]


class SpansReader:
    """Read one attempt per conversation id, session id or trace id; every model call is a turn."""

    name = "otel-spans"

    def detect(self, path: Path) -> bool:
        if not path.is_file() or path.suffix not in (".json", ".jsonl"):
            return False
        known = mentions(path, "gen_ai.") or mentions(path, "openinference") or mentions(path, "llm.input_messages")
        named = any(mentions(path, word) for word in ('"spanId"', '"span_id"', '"resourceSpans"', '"context"'))
        return (known and named) or mentions(path, '"resourceSpans"') or mentions(path, '"child_spans"', '"trace_id"')

    def read(self, path: Path, options: Options) -> Iterator[Item]:
        spans: list[Span] = []
        if path.suffix == ".json":
            try:
                spans = list(_flat(load(path)))
            except Unreadable as error:
                yield Skipped(str(path), str(error))
        else:
            for number, row in lines(path):
                if isinstance(row, Unreadable):
                    yield Skipped(f"{path}:{number}", str(row))
                else:
                    spans += _flat(row)
        groups: dict[str, list[Span]] = {}
        sessions = _sessions(spans)
        for span in spans:
            trace = str(span["trace"])
            groups.setdefault(sessions.get(trace, trace), []).append(span)
        for key, group in groups.items():
            place = str(path) if len(groups) == 1 else f"{path}#{key}"
            yield self._attempt(key, group, place, options)

    def _attempt(self, key: str, spans: list[Span], place: str, options: Options) -> Item:
        into, model = Conversation(), ""
        calls = [span for span in spans if _is_model_call(span)]
        histories: list[list[str]] = []
        for span in sorted(calls, key=lambda span: span["start"]):
            attributes = span["attributes"]
            asked, said = _messages(attributes, "input"), _messages(attributes, "output")
            if not asked and not said:
                into.note("model calls without content")
                continue
            model = model or str(_first(attributes, "gen_ai.response.model", "gen_ai.request.model", "llm.model_name"))
            for message in _new(asked, histories):
                add_message(into, message)
            for message in said or [{"role": "assistant", "content": ""}]:
                add_message(into, {**message, "role": "assistant"})
            histories.append([_digest(message) for message in (*asked, *said)])
        if not into.drafts:
            return Skipped(place, "spans without message content: content capture was off")
        return Found(
            into.trajectory(key, key), into.task(key, options.instructions),
            Outcome(Triage.MISSING, reason="spans carry no verdict"), place, self.name, model=model, notes=into.notes,
        )  # fmt: skip


def model_spans(path: Path) -> list[str]:
    """Return the ids of spans that become turns, in order, to map labels on spans to turns."""
    spans = sorted((s for s in _flat(load(path)) if _is_model_call(s)), key=lambda span: span["start"])
    return [str(s["id"]) for s in spans if _messages(s["attributes"], "input") or _messages(s["attributes"], "output")]


def _flat(value: Any) -> Iterator[Span]:
    """Yield all spans of a document, including children, in one format."""
    if isinstance(value, list):
        for item in value:
            yield from _flat(item)
    elif isinstance(value, Mapping):
        if "resourceSpans" in value:
            for resource in value["resourceSpans"]:
                for scope in resource.get("scopeSpans") or resource.get("instrumentationLibrarySpans") or ():
                    yield from _flat(scope.get("spans") or [])
        elif isinstance(value.get("spans"), list):
            yield from _flat(value["spans"])
        elif any(key in value for key in ("spanId", "span_id", "context")):
            yield _span(value)
            yield from _flat(value.get("child_spans") or [])


def _span(row: Mapping[str, Any]) -> Span:
    context = as_mapping(row.get("context"))
    attributes = row.get("attributes", row.get("span_attributes"))
    if isinstance(attributes, list):  # OTLP: [{"key": ..., "value": {"stringValue": ...}}]
        attributes = {pair.get("key"): _value(pair.get("value")) for pair in attributes if isinstance(pair, Mapping)}
    trace = _first(row, "traceId", "trace_id") or context.get("trace_id") or ""
    return {
        "id": _first(row, "spanId", "span_id") or context.get("span_id") or "",
        "trace": trace,
        "start": str(_first(row, "startTimeUnixNano", "start_time", "timestamp", "start_timestamp")).rjust(30),
        "attributes": attributes if isinstance(attributes, Mapping) else {},
    }


def _value(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    if "arrayValue" in value:
        return [_value(item) for item in value["arrayValue"].get("values") or ()]
    return next(iter(value.values()), None)


def _sessions(spans: list[Span]) -> dict[str, str]:
    """Map each trace to its conversation, if one is named."""
    found = {}
    for span in spans:
        name = _first(span["attributes"], "gen_ai.conversation.id", "session.id")
        if name:
            found[str(span["trace"])] = str(name)
    return found


def _is_model_call(span: Span) -> bool:
    attributes = span["attributes"]
    return (
        attributes.get("gen_ai.operation.name") in _CHAT
        or attributes.get("openinference.span.kind") == "LLM"
        or any(key.startswith(("llm.input_messages", "llm.output_messages")) for key in attributes)
    )


def _messages(attributes: Mapping[str, Any], side: str) -> list[dict[str, Any]]:
    """Return the messages of one side of a call in OpenAI's format."""
    value = attributes.get(f"gen_ai.{side}.messages")
    if value is not None:
        try:
            rows = json.loads(value) if isinstance(value, str) else value
        except ValueError:
            return []
        found = [_from_parts(row) for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []
        system = attributes.get("gen_ai.system_instructions")
        return [{"role": "system", "content": system}, *found] if system and side == "input" else found
    indexed: dict[int, dict[str, Any]] = {}
    for key, item in attributes.items():
        if (match := _INDEXED.fullmatch(key)) and match.group(1) == side:
            _place(indexed.setdefault(int(match.group(2)), {}), match.group(3), item)
    return [_closed(indexed[number]) for number in sorted(indexed)]


def _from_parts(row: Mapping[str, Any]) -> dict[str, Any]:
    parts = row.get("parts")
    if not isinstance(parts, list):
        return dict(row)
    message: dict[str, Any] = {"role": row.get("role"), "content": []}
    for part in parts:
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind == "tool_call":
            message.setdefault("tool_calls", []).append(
                {"id": part.get("id"), "name": part.get("name"), "arguments": part.get("arguments")}
            )
        elif kind == "tool_call_response":
            message |= {"role": "tool", "tool_call_id": part.get("id")}
            message["content"].append(part.get("response", part.get("result")))
        else:
            message["content"].append(part)
    return message


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


def _new(asked: list[dict[str, Any]], histories: list[list[str]]) -> list[dict[str, Any]]:
    """Return messages not seen in earlier calls of this history, since every span repeats its history."""
    digests = [_digest(message) for message in asked]
    best = 0
    for history in reversed(histories[-64:]):
        shared = 0
        for one, other in zip(digests, history, strict=False):
            if one != other:
                break
            shared += 1
        best = max(best, shared)
    return [message for message in asked[best:] if str(message.get("role")).lower() not in ("assistant", "model")]


def _digest(message: Mapping[str, Any]) -> str:
    role = "assistant" if message.get("role") in (None, "model") else str(message.get("role"))
    return f"{role}:{hash(str(message.get('content')))}:{len(message.get('tool_calls') or ())}"


def _first(values: Mapping[str, Any], *names: str) -> Any:
    return next((values[name] for name in names if values.get(name)), "")
