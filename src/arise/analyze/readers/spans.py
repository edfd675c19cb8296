"""OpenTelemetry spans: GenAI semantic conventions and OpenInference, as OTLP JSON, JSON Lines, or nested exports."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from arise.analyze.conversation import Conversation
from arise.analyze.files import Unreadable, as_mapping, lines, load, mentions
from arise.analyze.found import Found, Item, Options, Outcome, Skipped, Triage
from arise.analyze.messages import add_message
from arise.analyze.readers.span_messages import EVENT_NAMES, INPUT, OUTPUT, Span, is_model_call, messages_of


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
        spans = _merged(spans)
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
        calls = [span for span in spans if is_model_call(span)]
        histories: list[list[str]] = []
        for span in sorted(calls, key=lambda span: span["start"]):
            attributes = span["attributes"]
            asked, said = messages_of(span, INPUT), messages_of(span, OUTPUT)
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
    spans = sorted((s for s in _flat(load(path)) if is_model_call(s)), key=lambda span: span["start"])
    return [str(s["id"]) for s in spans if messages_of(s, INPUT) or messages_of(s, OUTPUT)]


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
        elif "resourceLogs" in value:
            for resource in value["resourceLogs"]:
                for scope in resource.get("scopeLogs") or ():
                    yield from _flat(scope.get("logRecords") or [])
        elif isinstance(value.get("spans"), list):
            yield from _flat(value["spans"])
        elif any(key in value for key in ("spanId", "span_id", "context")):
            yield _span(value)
            yield from _flat(value.get("child_spans") or [])


def _span(row: Mapping[str, Any]) -> Span:
    context = as_mapping(row.get("context"))
    attributes = _attributes(row.get("attributes", row.get("span_attributes")))
    trace = _first(row, "traceId", "trace_id") or context.get("trace_id") or ""
    return {
        "id": _first(row, "spanId", "span_id") or context.get("span_id") or "",
        "trace": trace,
        "start": str(_first(row, "startTimeUnixNano", "start_time", "timestamp", "start_timestamp",
                            "timeUnixNano", "observedTimeUnixNano")).rjust(30),
        "attributes": attributes,
        "events": list(_events(row, attributes)),
    }  # fmt: skip


def _events(row: Mapping[str, Any], attributes: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield name and content of the events of a span; a log record is one event of the span it names."""
    for event in row.get("events") or ():
        if isinstance(event, Mapping):
            yield str(event.get("name")), _attributes(event.get("attributes"))
    name = _first(row, "eventName", "event_name") or attributes.get("event.name")
    if name in EVENT_NAMES:
        body = _value(row.get("body"))
        yield str(name), {**attributes, **body} if isinstance(body, Mapping) else attributes


def _merged(spans: list[Span]) -> list[Span]:
    """Join log records with the span they belong to, or with each other where the span is in another file."""
    found: dict[tuple[str, str], Span] = {}
    for place, span in enumerate(spans):
        key = (str(span["trace"]), str(span["id"] or place))
        if key in found:
            known = found[key]
            known["attributes"] = {**span["attributes"], **known["attributes"]}
            known["events"] += span["events"]
            known["start"] = min(known["start"], span["start"])
        else:
            found[key] = span
    return list(found.values())


def _attributes(value: Any) -> dict[str, Any]:
    """Return attributes as a mapping; OTLP lists them as `[{"key": ..., "value": {"stringValue": ...}}]`."""
    if isinstance(value, list):
        return {str(pair.get("key")): _value(pair.get("value")) for pair in value if isinstance(pair, Mapping)}
    return dict(as_mapping(value))


def _value(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    if "arrayValue" in value:
        return [_value(item) for item in value["arrayValue"].get("values") or ()]
    if "kvlistValue" in value:
        return _attributes(value["kvlistValue"].get("values") or [])
    kinds = {"stringValue", "intValue", "doubleValue", "boolValue", "bytesValue"}
    return next(iter(value.values())) if len(value) == 1 and value.keys() <= kinds else dict(value)


def _sessions(spans: list[Span]) -> dict[str, str]:
    """Map each trace to its conversation, if one is named."""
    found = {}
    for span in spans:
        name = _first(span["attributes"], "gen_ai.conversation.id", "session.id")
        if name:
            found[str(span["trace"])] = str(name)
    return found


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
