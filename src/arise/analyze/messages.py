"""Convert chat messages in OpenAI's format, and its many variants, to a conversation."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from arise.analyze.conversation import Conversation
from arise.analyze.items import RESULTS, add_item, is_item
from arise.analyze.keystrokes import keystrokes_of

SYSTEM, PERSON = {"system", "developer"}, {"user", "human"}
TOOL = {"tool", "function", "ipython", "tool_result", "tool-response", "tool_response"}
ECHO = {"tool-call", "tool_call"}
"""Messages that repeat the call of the previous message."""
AGENT = {"assistant", "ai", "agent", "model", "gpt", "bot"}
TERMINAL = "terminal"
"""The tool that replies with keystrokes use."""
_FENCE = re.compile(r"```(?:mswea_bash_command|bash|sh|shell)\s*\n(.*?)\n?```", re.DOTALL)
_CODE = re.compile(r"\bCode:\s*\n```(?:py|python)\s*\n(.*?)\n?```", re.DOTALL)
"""The action of a code agent: `Code:` and a block of Python."""
_OBSERVED = re.compile(r"\s*(?:Call id: \S+\s*)?(?:Observation:|\[OUTPUT OF STEP|Error:|Error in code parsing)")
_EXECUTOR = re.compile(r"terminal|executor|interpreter|tool", re.IGNORECASE)
_RETURNED = re.compile(r"<returncode>\s*(-?\d+)\s*</returncode>")


def role_of(message: Mapping[str, Any]) -> str:
    """Return the role of a message under any of its usual names, in lower case."""
    return str(message.get("role") or message.get("from") or message.get("type") or "").lower()


def content_of(message: Mapping[str, Any]) -> object:
    """Return the content of a message under any of its usual names."""
    for key in ("content", "value", "text", "parts"):
        if message.get(key) is not None:
            return message[key]
    return ""


def is_conversation(value: object) -> bool:
    """Return whether a value is a list of messages with roles."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(item, dict) for item in value[:20])
        and all(role_of(item) and ("content" in item or "value" in item or "tool_calls" in item) for item in value[:20])
    )


def add_messages(into: Conversation, messages: Iterable[object]) -> None:
    """Add messages in order; fenced commands count as calls if their results are in user messages."""
    found = [message for message in messages if isinstance(message, Mapping)]
    fenced = any(
        role_of(m) in PERSON and isinstance(m.get("content"), str) and _RETURNED.search(m["content"][:200])
        for m in found
    )
    items, merge = any(map(is_item, found)), False
    for message in found:
        if message.get("is_demo"):
            into.note("demonstration messages")
        elif items:
            merge = _add_part(into, message, merge=merge)
        else:
            add_message(into, message, fenced=fenced)


def _add_part(into: Conversation, message: Mapping[str, Any], *, merge: bool) -> bool:
    """Add an item of a response, or a message between them; return whether the agent's turn is still open."""
    if message.get("type") in RESULTS:
        into.add_result(message.get("output"), message.get("call_id"), error=message.get("status") == "failed")
    elif is_item(message) or role_of(message) in AGENT:
        return add_item(into, message, merge=merge)
    else:
        add_message(into, message)
    return False


def add_message(into: Conversation, message: Mapping[str, Any], *, fenced: bool = False) -> None:
    """Add one message by its role; an unknown role is treated as one of several named agents."""
    role, content = role_of(message), content_of(message)
    if role in SYSTEM:
        into.add_system(content)
    elif role in ECHO:
        return
    elif role in TOOL:
        _add_result(into, message, content)
    elif role in PERSON:
        _add_person(into, message, content, fenced=fenced)
    else:
        name = "" if role in AGENT else str(message.get("role") or message.get("from") or "")
        _add_agent(into, message, content, name, fenced=fenced)


def _add_result(into: Conversation, message: Mapping[str, Any], content: object) -> None:
    if message.get("requestor") == "user":  # the simulated user has its own tool calls
        into.note("tool results of the user")
        return
    fault = message.get("error")
    error = bool(fault or message.get("is_error") or _code(message))
    if isinstance(fault, Mapping) and not into.text(content):  # Inspect puts the message of a failed tool here
        content = fault.get("message")
    into.add_result(content, message.get("tool_call_id") or message.get("id") or "", error=error)


def _code(message: Mapping[str, Any]) -> int | None:
    """Return the exit code that mini-swe-agent records with a result."""
    extra = message.get("extra")
    code = extra.get("returncode") if isinstance(extra, Mapping) else None
    return code if isinstance(code, int) else None


def _add_person(into: Conversation, message: Mapping[str, Any], content: object, *, fenced: bool) -> None:
    name = str(message.get("name") or "")
    if name and name.lower() not in PERSON:  # several agents that address each other as users
        if _EXECUTOR.search(name) and into.drafts:
            into.add_result(content)
        else:
            _add_agent(into, message, content, name, fenced=fenced)
        return
    if message.get("tool_calls"):
        into.note("tool calls of the user")
    if fenced and isinstance(content, str) and (returned := _RETURNED.search(content[:200])):
        into.add_result(content, error=returned.group(1) != "0")
        return
    if into.drafts and (sent := into.drafts[-1].calls) and sent[0].name == TERMINAL and not into.drafts[-1].seen:
        into.add_result("\n".join(line for line in into.text(content).split("\n") if line.strip()))
        return
    if _code(message) is not None and into.drafts:  # a result in a non-standard wording
        into.add_result(content, error=_code(message) != 0)
        return
    if into.drafts and into.drafts[-1].calls and _OBSERVED.match(said := into.text(content)):
        into.add_result(said, error="Error" in said[:200])
        return
    if isinstance(content, list):
        results = [part for part in content if isinstance(part, Mapping) and part.get("type") == "tool_result"]
        for part in results:
            into.add_result(part.get("content"), part.get("tool_use_id"), error=bool(part.get("is_error")))
        content = [part for part in content if part not in results] if results else content
    into.add_user(content)


def _add_agent(into: Conversation, message: Mapping[str, Any], content: object, name: str, *, fenced: bool) -> None:
    reasoning = message.get("reasoning_content") or message.get("reasoning") or ""
    calls: list[tuple[object, object, object]] = []
    if isinstance(content, str) and (typed := keystrokes_of(content)) is not None:
        content, keys = typed
        calls = [(TERMINAL, {"keystrokes": keys}, "")] if keys else []
    if isinstance(content, list):
        reasoning, content, calls = _blocks(content, reasoning)
    into.add_agent(f"{name}: {into.text(content)}" if name else content, reasoning)
    calls += [_call(call) for call in _listed(message.get("tool_calls"))]
    if isinstance(message.get("function_call"), Mapping):
        calls.append(_call(message["function_call"]))
    extra = message.get("extra")
    actions = _listed(extra.get("actions")) if isinstance(extra, Mapping) and not calls else []
    calls += [("bash", {"command": a.get("command", "")}, a.get("tool_call_id")) for a in actions]
    if not calls and (code := _CODE.search(into.text(content))):
        calls.append(("python", {"code": code.group(1)}, ""))
    if fenced and not calls and isinstance(content, str):
        calls += [("bash", {"command": command}, "") for command in _FENCE.findall(content)[:1]]
    for call in calls:
        into.add_call(*call)


def _blocks(content: Sequence[object], reasoning: object) -> tuple[object, list[object], list[Any]]:
    """Split Anthropic's and Inspect's content blocks into thinking, text and calls."""
    thoughts, rest, calls = [reasoning] if reasoning else [], [], []
    for part in content:
        kind = part.get("type") if isinstance(part, Mapping) else ""
        if kind in ("thinking", "reasoning", "redacted_thinking"):
            assert isinstance(part, Mapping)
            thoughts.append(part.get("thinking") or part.get("reasoning") or part.get("text") or "")
        elif kind in ("tool_use", "tool_call", "server_tool_use"):
            assert isinstance(part, Mapping)
            calls.append((part.get("name"), part.get("input", part.get("arguments")), part.get("id")))
        else:
            rest.append(part)
    return thoughts, rest, calls


def _call(call: Mapping[str, Any]) -> tuple[object, object, object]:
    """Return name, arguments and id of a call in the format of OpenAI, Inspect, tau2 or Anthropic."""
    function = call.get("function")
    if isinstance(function, Mapping):
        return function.get("name"), function.get("arguments"), call.get("id")
    name = function or call.get("name") or call.get("function_name")
    arguments = next((call[key] for key in ("arguments", "args", "input") if key in call), None)
    return name, arguments, call.get("id") or call.get("tool_call_id")


def _listed(value: object) -> list[Mapping[str, Any]]:
    """Return the objects of a list; verifiers 0.1 writes each call as a string of JSON."""
    items = value if isinstance(value, list) else []
    opened = [_opened(item) if isinstance(item, str) and item.startswith("{") else item for item in items]
    return [item for item in opened if isinstance(item, Mapping)]


def _opened(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
