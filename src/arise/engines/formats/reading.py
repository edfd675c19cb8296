"""Parse assistant turns from generated tokens, whole or streamed, into reasoning, text and calls."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from arise.engines.formats.syntaxes import CallSyntax, MalformedCallError, call_id
from arise.ports import StreamReader
from arise.types import FunctionCall, Reply, StreamEvent, ToolSpec

REASONING_TAGS = (("<think>", "</think>"), ("[THINK]", "[/THINK]"))

Decode = Callable[[Sequence[int]], str]


@dataclass(frozen=True)
class Grammar:
    """The syntax of calls and reasoning; `opened` if the prompt already opened the reasoning."""

    syntax: CallSyntax
    tags: tuple[str, str] = REASONING_TAGS[0]
    opened: bool = False


def reply_of(reader: StreamReader, ids: Sequence[int]) -> Reply:
    """Return the whole reply, built from the same events as a stream."""
    events = [*reader.feed(ids), *reader.end()]
    return Reply(
        "".join(event.text for event in events if event.kind == "text"),
        "".join(event.text for event in events if event.kind == "reasoning"),
        tuple(event.call for event in events if event.call is not None),
        "".join(event.text for event in events if event.kind == "malformed"),
    )


class Detokenizer:
    """Decode ids incrementally; hold back incomplete characters."""

    def __init__(self, decode: Decode, ignore: frozenset[int]) -> None:
        self._decode, self._ignore = decode, ignore
        self._ids: list[int] = []
        self._known = self._done = 0

    def feed(self, ids: Sequence[int], *, last: bool = False) -> str:
        """Return the text that is now complete."""
        self._ids += [i for i in ids if i not in self._ignore]
        before = self._decode(self._ids[self._known : self._done])
        now = self._decode(self._ids[self._known :])
        if len(now) <= len(before) or (now.endswith("\ufffd") and not last):
            return ""
        self._known, self._done = self._done, len(self._ids)
        return now[len(before) :]


class ReplyReader:
    """Parse by a `Grammar`; emit text once no call can begin in it, and all calls at the end."""

    def __init__(self, grammar: Grammar, tools: Sequence[ToolSpec], text: Detokenizer) -> None:
        self._grammar, self._tools, self._detokenizer = grammar, tools, text
        self._opens = grammar.syntax.opens if tools else ()
        self._starts = grammar.syntax.starts if tools else ()
        self._state = "reasoning" if grammar.opened else "start"
        self._pending = ""
        self._held = {"text": "", "reasoning": ""}
        self._begun = {"text": False, "reasoning": False}

    def feed(self, ids: Sequence[int]) -> list[StreamEvent]:
        """Return the events that these ids determine."""
        self._pending += self._detokenizer.feed(ids)
        return self._advance(last=False)

    def end(self) -> list[StreamEvent]:
        """Return the remaining text, then the calls or the reason why they cannot be parsed."""
        self._pending += self._detokenizer.feed((), last=True)
        events = self._advance(last=True)
        if self._state != "calls":
            return events
        raw, self._pending = self._pending, ""
        try:
            calls, rest = self._grammar.syntax.read(raw, self._tools)
        except MalformedCallError as error:
            return [*events, *self._say("text", raw), StreamEvent("malformed", str(error))]
        return [*events, *self._say("text", rest), *(StreamEvent("call", call=call) for call in calls)]

    def _advance(self, last: bool) -> list[StreamEvent]:
        events = list[StreamEvent]()
        before = ""
        while before != self._state:
            before = self._state
            if self._state == "start":
                self._begin(last)
            elif self._state == "reasoning":
                events += self._reason(last)
            elif self._state == "text":
                events += self._speak(last)
        return events

    def _begin(self, last: bool) -> None:
        """Decide whether the reply starts with reasoning, once enough of it has arrived."""
        opening, text = self._grammar.tags[0], self._pending.lstrip()
        if text.startswith(opening):
            self._state, self._pending = "reasoning", text[len(opening) :]
        elif last or not opening.startswith(text):
            self._state = "text"

    def _reason(self, last: bool) -> list[StreamEvent]:
        head, found, tail = self._pending.partition(self._grammar.tags[1])
        if found:
            self._state, self._pending = "text", tail
            return self._say("reasoning", head)
        return self._say("reasoning", self._take(len(head) if last else _certain(head, [self._grammar.tags[1]])))

    def _speak(self, last: bool) -> list[StreamEvent]:
        text = self._pending
        if not self._begun["text"]:
            start = text.lstrip()
            if start.startswith(self._starts) if self._starts else False:
                self._state = "calls"
                return []
        places = [place for place in (text.find(opening) for opening in self._opens) if place >= 0]
        if places:
            self._state = "calls"
            return self._say("text", self._take(min(places)))
        return self._say("text", self._take(len(text) if last else _certain(text, self._opens)))

    def _take(self, length: int) -> str:
        taken, self._pending = self._pending[:length], self._pending[length:]
        return taken

    def _say(self, kind: Any, text: str) -> list[StreamEvent]:
        """Return an event, stripping whitespace at the start and end of the whole text."""
        text = self._held[kind] + text if self._begun[kind] else text.lstrip()
        said = text.rstrip()
        if not said:
            self._held[kind] = text if self._begun[kind] else ""
            return []
        self._begun[kind], self._held[kind] = True, text[len(said) :]
        return [StreamEvent(kind, said)]


def _certain(text: str, openings: Sequence[str]) -> int:
    """Return the length of the text before a suffix that may begin one of `openings`."""
    longest = max(map(len, openings), default=1) - 1
    for size in range(min(longest, len(text)), 0, -1):
        if any(opening.startswith(text[-size:]) for opening in openings):
            return len(text) - size
    return len(text)


class TemplateReader:
    """Parse with the tokenizer's own response template, once the reply is complete."""

    def __init__(self, tokenizer: Any, prefix: str, tools: Sequence[dict[str, Any]], text: Detokenizer) -> None:
        self._tokenizer, self._prefix, self._tools, self._detokenizer = tokenizer, prefix, tools, text
        self._text = ""

    def feed(self, ids: Sequence[int]) -> list[StreamEvent]:
        """Store the ids; the template is applied at the end."""
        self._text += self._detokenizer.feed(ids)
        return []

    def end(self) -> list[StreamEvent]:
        """Return the events of the whole reply."""
        from transformers.utils.chat_parsing import parse_response

        raw = self._text + self._detokenizer.feed((), last=True)
        try:
            message = parse_response(
                raw, self._tokenizer.response_template, prefix=self._prefix, tools=list(self._tools) or None
            )
            calls = [_function_call(n, call) for n, call in enumerate(message.get("tool_calls") or [])]
        except (ValueError, KeyError, TypeError) as error:
            return [StreamEvent("text", raw), StreamEvent("malformed", str(error).splitlines()[0])]
        reasoning = next((message[key] for key in ("thinking", "reasoning_content", "reasoning") if key in message), "")
        said = [("reasoning", str(reasoning or "").strip()), ("text", str(message.get("content") or "").strip())]
        events = [StreamEvent(kind, text) for kind, text in said if text]  # type: ignore[arg-type]
        return [*events, *(StreamEvent("call", call=call) for call in calls)]


def _function_call(number: int, call: dict[str, Any]) -> FunctionCall:
    function = call.get("function", call)
    arguments = function.get("arguments", {})
    if not isinstance(function.get("name"), str) or not isinstance(arguments, dict):
        raise ValueError("a call without a name or without a JSON object of arguments")
    return FunctionCall(call_id(number), function["name"], arguments)
