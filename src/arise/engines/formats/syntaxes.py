"""Tool-call syntaxes of model families as data: what opens a call, and how to parse it."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from arise.types import FunctionCall, ToolSpec

Calls = tuple[list[FunctionCall], str]
"""Calls in order, and the text between and after them."""

SHELLS = ("bash", "sh", "shell")


class MalformedCallError(ValueError):
    """A call that was opened but cannot be parsed; the message gives the reason."""


@dataclass(frozen=True)
class CallSyntax:
    """One call syntax; `starts` open a call only at the beginning of a reply."""

    name: str
    opens: tuple[str, ...]
    read: Callable[[str, Sequence[ToolSpec]], Calls]
    starts: tuple[str, ...] = ()


def call_id(number: int) -> str:
    """Return the id of a reply's call: nine letters and digits, which every chat template accepts."""
    return f"call{number:05d}"


def tool_call_blocks(text: str, tools: Sequence[ToolSpec]) -> Calls:
    """Parse `<tool_call>` blocks: JSON (Hermes, Qwen), `<function=...>` (Qwen3.5), `<arg_key>` (GLM)."""
    return _blocks(text, "<tool_call>", "</tool_call>", tools)


def plain_protocol(text: str, tools: Sequence[ToolSpec]) -> Calls:
    """Parse `<tool_call>` blocks, and fenced shell blocks as calls of a tool `bash` with a `command`."""
    if not _has_shell(tools):
        return tool_call_blocks(text, tools)
    calls, rest = list[FunctionCall](), list[str]()
    while found := _FENCE_OR_BLOCK.search(text):
        rest.append(text[: found.start()])
        if found[0] == "<tool_call>":
            end = _block_end(text, found.end(), "</tool_call>", tools)
            name, arguments = _body(text[found.end() : end], tools)
            close = end + len("</tool_call>")
        else:
            closed = _FENCE_END.search(text, found.end())
            if closed is None:
                raise MalformedCallError("the ```bash block has no closing ``` line")
            name, arguments = "bash", {"command": text[found.end() : closed.start()]}
            close = closed.end()
        calls.append(FunctionCall(call_id(len(calls)), name, arguments, text[found.start() : close]))
        text = text[close:]
    return calls, "".join([*rest, text])


_FENCE_OR_BLOCK = re.compile(r"```(?:bash|shell|sh)[ \t]*\n|<tool_call>")
_FENCE_END = re.compile(r"\n?```")


def llama_calls(text: str, _tools: Sequence[ToolSpec]) -> Calls:
    """Parse Llama 3 calls: JSON objects after `<|python_tag|>` or alone; JSON without a tool name is text."""
    body = text.strip()
    tagged = body.startswith("<|python_tag|>")
    body, calls = body.removeprefix("<|python_tag|>").strip(), list[FunctionCall]()
    while body:
        try:
            value, end = _JSON.raw_decode(body)
        except ValueError as error:
            if tagged or body.startswith('{"name"'):
                raise MalformedCallError(f"the call is not valid JSON ({error})") from None
            return [], text
        if not (isinstance(value, Mapping) and "name" in value) and not tagged:
            return [], text
        name, arguments = _from_json(value)
        calls.append(FunctionCall(call_id(len(calls)), name, arguments, body[:end]))
        body = body[end:].lstrip("; \n\t")
    return calls, ""


def mistral_calls(text: str, _tools: Sequence[ToolSpec]) -> Calls:
    """Parse Mistral calls: `[TOOL_CALLS]` and a JSON list, or `[TOOL_CALLS]name[ARGS]{...}` for each call."""
    body = text.strip().removeprefix("[TOOL_CALLS]").strip()
    calls = list[FunctionCall]()
    if body.startswith(("[", "{")):
        value, end = _decoded(body)
        for item in value if isinstance(value, list) else [value]:
            calls.append(FunctionCall(call_id(len(calls)), *_from_json(item), json.dumps(item)))
        return calls, body[end:].strip()
    while body:
        name, found, rest = body.partition("[ARGS]")
        if not found:
            raise MalformedCallError("[TOOL_CALLS] is followed by neither a JSON list nor name[ARGS]{...}")
        value, end = _decoded(rest.lstrip())
        raw, body = body, rest.lstrip()[end:].strip().removeprefix("[TOOL_CALLS]").strip()
        name = re.sub(r"\[CALL_ID\].*", "", name).strip()
        calls.append(FunctionCall(call_id(len(calls)), name, _arguments(value), raw.removesuffix(body)))
    return calls, ""


def deepseek_calls(text: str, _tools: Sequence[ToolSpec]) -> Calls:
    """Parse DeepSeek: `<｜tool▁call▁begin｜>function<｜tool▁sep｜>name` and fenced JSON, or name, separator, JSON."""
    calls, rest = list[FunctionCall](), text
    for mark in ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"):
        rest = rest.replace(mark, "")
    leftover = list[str]()
    while "<｜tool▁call▁begin｜>" in rest:
        before, _, rest = rest.partition("<｜tool▁call▁begin｜>")
        body, closed, rest = rest.partition("<｜tool▁call▁end｜>")
        head, found, tail = body.partition("<｜tool▁sep｜>")
        if not (closed and found):
            raise MalformedCallError("a call lacks <｜tool▁sep｜> or <｜tool▁call▁end｜>")
        name, _, fenced = tail.partition("\n") if head.strip() == "function" else (head, "", tail)
        value, _ = _decoded(re.sub(r"^```(?:json)?\n?|\n?```$", "", fenced.strip()))
        calls.append(FunctionCall(call_id(len(calls)), name.strip(), _arguments(value), body))
        leftover.append(before)
    return calls, "".join([*leftover, rest])


SYNTAXES = (
    CallSyntax("tool_call", ("<tool_call>",), tool_call_blocks),
    CallSyntax("mistral", ("[TOOL_CALLS]",), mistral_calls),
    CallSyntax("deepseek", ("<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>"), deepseek_calls),
    CallSyntax("llama", ("<|python_tag|>",), llama_calls, starts=("{",)),
)
PLAIN = CallSyntax("plain", ("<tool_call>", *(f"```{shell}" for shell in SHELLS)), plain_protocol)

_JSON = json.JSONDecoder(strict=False)  # models write raw line breaks inside JSON strings


def _decoded(text: str) -> tuple[object, int]:
    try:
        return _JSON.raw_decode(text)
    except ValueError as error:
        raise MalformedCallError(f"the call is not valid JSON ({error})") from None


def _blocks(text: str, opening: str, closing: str, tools: Sequence[ToolSpec]) -> Calls:
    calls, rest = list[FunctionCall](), list[str]()
    while opening in text:
        before, _, text = text.partition(opening)
        end = _block_end(text, 0, closing, tools)
        calls.append(FunctionCall(call_id(len(calls)), *_body(text[:end], tools), text[:end]))
        rest.append(before)
        text = text[end + len(closing) :]
    return calls, "".join([*rest, text])


def _block_end(text: str, start: int, closing: str, tools: Sequence[ToolSpec]) -> int:
    """Return where the block ends; an argument may contain the closing string itself."""
    place, first = text.find(closing, start), None
    if place < 0:
        raise MalformedCallError(f"the call has no {closing}")
    while place >= 0:
        try:
            _body(text[start:place], tools)
        except MalformedCallError as error:
            first = first or error
            place = text.find(closing, place + 1)
        else:
            return place
    assert first is not None
    raise first


def _body(body: str, tools: Sequence[ToolSpec]) -> tuple[str, Mapping[str, object]]:
    """Parse the name and arguments of one block in any of the three forms."""
    text = body.strip()
    if text.startswith("{"):
        value, end = _decoded(text)
        if text[end:].strip():
            raise MalformedCallError(f"there is more than one JSON object in the call: {text[end:].strip()[:40]!r}")
        return _from_json(value)
    if found := re.match(r"<function=([^>\n]+)>(.*)</function>\s*$", text, re.DOTALL):
        pairs = re.findall(r"<parameter=([^>\n]+)>\n?(.*?)\n?</parameter>", found[2], re.DOTALL)
        return found[1].strip(), _typed(found[1].strip(), pairs, tools)
    if found := re.match(r"([\w.:-]+)\s*(?=<arg_key>|$)", text):
        pairs = re.findall(r"<arg_key>(.*?)</arg_key>\s*<arg_value>(.*?)</arg_value>", text, re.DOTALL)
        if text.count("<arg_key>") != len(pairs):
            raise MalformedCallError("an <arg_key> of the call has no <arg_value>")
        return found[1], _typed(found[1], pairs, tools)
    raise MalformedCallError('the call is neither {"name": ..., "arguments": {...}} nor <function=name>...</function>')


def _from_json(value: object) -> tuple[str, Mapping[str, object]]:
    if isinstance(value, Mapping) and isinstance(value.get("function"), Mapping):
        value = value["function"]
    if not isinstance(value, Mapping) or not isinstance(value.get("name"), str):
        raise MalformedCallError('the call has no "name"')
    given: object = next((value[key] for key in ("arguments", "parameters") if key in value), {})
    return value["name"], _arguments(given)


def _arguments(given: object) -> Mapping[str, object]:
    if isinstance(given, str):
        given, _ = _decoded(given)
    if not isinstance(given, Mapping):
        raise MalformedCallError("the arguments of the call are not a JSON object")
    return given


def _typed(name: str, pairs: Sequence[tuple[str, str]], tools: Sequence[ToolSpec]) -> dict[str, object]:
    """Convert arguments written as plain text to the types in the tool's schema."""
    schema = next((tool.parameters for tool in tools if tool.name == name), {})
    properties = schema.get("properties")
    known = properties if isinstance(properties, Mapping) else {}
    return {key.strip(): _value(text, known.get(key.strip())) for key, text in pairs}


def _value(text: str, schema: object) -> object:
    wanted = schema.get("type") if isinstance(schema, Mapping) else None
    if wanted in (None, "string"):
        return text
    try:
        return json.loads(text.strip() if wanted != "boolean" else text.strip().lower())
    except ValueError:
        return text


def _has_shell(tools: Sequence[ToolSpec]) -> bool:
    return any(tool.name == "bash" and "command" in str(tool.parameters) for tool in tools)
