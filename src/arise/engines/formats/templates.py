"""Render messages and tools with a Hugging Face chat template, adapting to the roles it supports.

A system message that the template does not support is merged into the user's message; tools that it does not support
are described in the system message (`plain_protocol`).
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from arise.ports import FormatError
from arise.types import FunctionCall, Message, ToolSpec

MARK = "\ue000mark\ue001"
"""Placeholder for a text while a template is analysed."""

PROBE_TOOL = ToolSpec(
    "probe_tool",
    "probe description",
    {
        "type": "object",
        "properties": {"text": {"type": "string", "description": "A text."}},
        "required": ["text"],
    },
)
PROBE_CALL = FunctionCall("call00000", PROBE_TOOL.name, {"text": "one\ntwo"})

PROTOCOL = """You can call these tools:
{tools}

To call a tool, write a block like this, with the tool's name and its arguments as JSON:
<tool_call>
{{"name": "tool_name", "arguments": {{"argument": "value"}}}}
</tool_call>
{fence}You may write several blocks. End your message after the last one; the results come in the next message."""
FENCE = """To run a shell command you may write a fenced block instead:
```bash
command
```
"""


def tool_dict(tool: ToolSpec) -> dict[str, Any]:
    """Return a tool in the format of chat templates and OpenAI-compatible servers."""
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": function}


@dataclass(frozen=True)
class _Shown:
    """Features that a template supports; before probing, everything except tools."""

    system_first: bool = True
    system_later: bool = True
    user_after_user: bool = True
    user_after_tool: bool = True
    json_arguments: bool = False
    """Whether it expects the arguments of a call as JSON text."""
    tools: bool = False


def message_dict(message: Message, *, json_arguments: bool = False) -> dict[str, Any]:
    """Return a message as chat templates and OpenAI-compatible servers expect it; servers need JSON text arguments."""
    entry: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.reasoning:
        entry["reasoning_content"] = message.reasoning
    if message.calls:
        entry["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": dict(call.arguments)}}
            for call in message.calls
        ]
    if json_arguments:
        for call in entry.get("tool_calls", ()):
            call["function"]["arguments"] = json.dumps(call["function"]["arguments"], ensure_ascii=False)
    if message.role == "tool":
        entry |= {"tool_call_id": message.call_id, "name": message.name}
    return entry


class ChatTemplate:
    """Render conversations as text; the constructor probes once what the template supports."""

    def __init__(self, tokenizer: Any, options: Mapping[str, Any] | None = None) -> None:
        if not getattr(tokenizer, "chat_template", None):
            raise FormatError(
                "the tokenizer has no chat template: use an instruction-tuned model, "
                "or put a chat_template.jinja into the model's folder"
            )
        self._tokenizer, self._options = tokenizer, dict(options or {})
        self.source = str(tokenizer.chat_template)
        self._short_ids = "9" in self.source and "length" in self.source  # Mistral requires ids of nine characters
        self._shown = _Shown()
        self.base = self._base()
        self._shown = replace(self._shown, json_arguments=not self._shows(*self.base, _CALLING, _RESULT))
        self._shown = _Shown(
            system_first=self._shows(Message("system", "rule"), Message("user", MARK)),
            system_later=self._shows(*self.base, _ANSWER, Message("system", MARK), _ASKED),
            user_after_user=self._shows(*self.base, _ANSWER, _ASKED, Message("user", MARK)),
            user_after_tool=self._shows(*self.base, _CALLING, _RESULT, Message("user", MARK)),
            json_arguments=self._shown.json_arguments,
            tools=self._knows_tools(),
        )

    @property
    def native(self) -> bool:
        """Return whether the template itself renders tools, calls and results."""
        return self._shown.tools

    def without_tools(self) -> None:
        """Use the plain protocol for tools, calls and results from now on."""
        self._shown = replace(self._shown, tools=False)

    def render(self, messages: Sequence[Message], tools: Sequence[ToolSpec] = (), *, answer: bool) -> str:
        """Return the text of a conversation; with `answer`, end it with the opening of the next assistant turn."""
        adapted = self._adapted(messages, tools)
        shown = [tool_dict(tool) for tool in tools] if tools and self.native else None
        return self._apply([self._dict(message) for message in adapted], shown, answer)

    def _apply(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None, answer: bool) -> str:
        from jinja2 import TemplateError

        try:
            text = self._tokenizer.apply_chat_template(
                messages, tools=tools, tokenize=False, add_generation_prompt=answer, **self._options
            )
        except (TemplateError, TypeError, KeyError, AttributeError, ValueError) as error:
            roles = ", ".join(message["role"] for message in messages)
            reason = str(error) or type(error).__name__
            raise FormatError(
                f"the chat template cannot show messages of {roles} ({reason}): set another template"
            ) from None
        return str(text)

    def _dict(self, message: Message) -> dict[str, Any]:
        calls = tuple(replace(call, id=self._id(call.id)) for call in message.calls)
        known = replace(message, calls=calls, call_id=self._id(message.call_id) if message.call_id else "")
        entry = message_dict(known, json_arguments=self._shown.json_arguments)
        return entry | ({"thinking": message.reasoning} if message.reasoning else {})

    def _id(self, given: str) -> str:
        if not self._short_ids or (len(given) == 9 and given.isalnum()):
            return given
        return hashlib.sha256(given.encode()).hexdigest()[:9]

    def _adapted(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> list[Message]:
        """Convert a conversation to roles that the template supports."""
        shown = self._shown
        adapted = list(messages) if shown.tools else in_plain_text(messages, tools)
        if adapted and adapted[0].role == "system" and not shown.system_first:
            adapted[0] = replace(adapted[0], role="user")
        if not shown.system_later:
            adapted = [*adapted[:1], *(_as_user(message) for message in adapted[1:])]
        if not shown.user_after_tool:
            adapted = _joined(adapted, lambda before, after: before.role == "tool" and after.role == "user")
        if not shown.user_after_user:
            adapted = _joined(adapted, lambda before, after: before.role == after.role == "user")
        return adapted

    def _base(self) -> tuple[Message, ...]:
        """Return the shortest conversation that can be answered; some templates require a system message first."""
        reason = ""
        for base in ((_ASKED,), (Message("system", "rule"), _ASKED)):
            try:
                if MARK in self.render([*base, Message("assistant", MARK)], answer=False):
                    return base
            except FormatError as error:
                reason = reason or str(error)
        raise FormatError(reason or "the chat template drops the assistant's messages: set another template")

    def _shows(self, *messages: Message) -> bool:
        try:
            text = self._apply([self._dict(message) for message in messages], None, answer=False)
        except FormatError:
            return False
        return MARK in text

    def _knows_tools(self) -> bool:
        """Return whether tools, calls and results all appear in the rendered text."""
        messages = [self._dict(m) for m in (*self.base, replace(_CALLING, calls=(PROBE_CALL,)), _RESULT)]
        try:
            text = self._apply(messages, [tool_dict(PROBE_TOOL)], answer=True)
        except FormatError:
            return False
        return MARK in text and PROBE_TOOL.description in text and text.count(PROBE_TOOL.name) > 1


_ASKED = Message("user", "hello")
_ANSWER = Message("assistant", "fine")
_CALLING = Message("assistant", calls=(PROBE_CALL,))
_RESULT = Message("tool", MARK, call_id=PROBE_CALL.id, name=PROBE_TOOL.name)


def _as_user(message: Message) -> Message:
    return replace(message, role="user") if message.role == "system" else message


def _joined(messages: Sequence[Message], together: Callable[[Message, Message], bool]) -> list[Message]:
    joined = list[Message]()
    for message in messages:
        if joined and together(joined[-1], message):
            joined[-1] = replace(joined[-1], text=f"{joined[-1].text}\n\n{message.text}")
        else:
            joined.append(message)
    return joined


def protocol(tools: Sequence[ToolSpec]) -> str:
    """Return the description of tools for the system message, for templates without tool support."""
    lines = "\n".join(json.dumps(tool_dict(tool)["function"], ensure_ascii=False) for tool in tools)
    return PROTOCOL.format(tools=lines, fence=FENCE if any(tool.name == "bash" for tool in tools) else "")


def plain_call(call: FunctionCall) -> str:
    """Write a call in the plain protocol."""
    body = json.dumps({"name": call.name, "arguments": dict(call.arguments)}, ensure_ascii=False)
    return f"<tool_call>\n{body}\n</tool_call>"


def in_plain_text(messages: Sequence[Message], tools: Sequence[ToolSpec]) -> list[Message]:
    """Move tools into the system message, write calls as text, and join the results of a turn in one user message."""
    plain = list[Message]()
    for message in messages:
        if message.role == "tool":
            text = f"<tool_response>\n{message.text}\n</tool_response>"
            before = plain[-1] if plain else None
            if before is not None and before.role == "user" and before.name == "tools":
                plain[-1] = replace(before, text=f"{before.text}\n{text}")
            else:
                plain.append(Message("user", text, name="tools"))
        elif message.calls:
            said = "\n".join([*([message.text] if message.text else []), *map(plain_call, message.calls)])
            plain.append(replace(message, text=said, calls=()))
        else:
            plain.append(message)
    if tools:
        first = plain[0] if plain and plain[0].role == "system" else None
        system = f"{first.text}\n\n{protocol(tools)}" if first and first.text else protocol(tools)
        plain = [Message("system", system), *plain[bool(first) :]]
    return plain
