"""The format of any model with a Hugging Face chat template.

A conversation is extended with the text that the template writes after a placeholder for the sampled turn. The
placeholder never reaches the ids, so sampled ids are unchanged. The constructor checks that this is possible.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from arise.engines.formats.reading import (
    REASONING_TAGS,
    Detokenizer,
    Grammar,
    ReplyReader,
    TemplateReader,
    reply_of,
)
from arise.engines.formats.safe_text import SafeText
from arise.engines.formats.syntaxes import PLAIN, SYNTAXES, CallSyntax
from arise.engines.formats.templates import MARK, PROBE_CALL, PROBE_TOOL, ChatTemplate, tool_dict
from arise.ports import FormatError, StreamReader
from arise.types import FunctionCall, Message, Reply, ToolSpec

_BEFORE = "x"
"""A placeholder answer, used to render the text that follows an answer."""


class GenericFormat:
    """Implement `ports.Format` for one tokenizer; `notice` describes peculiarities of its template."""

    def __init__(self, tokenizer: Any, options: Mapping[str, Any] | None = None) -> None:
        self._tokenizer = tokenizer
        self._template = ChatTemplate(tokenizer, options)
        self.safe = SafeText(tokenizer)
        self._stop_after = self._turn_ends()
        eos = tokenizer.eos_token_id
        self._stops = frozenset(self._stop_after.values()) | frozenset([] if eos is None else [eos])
        self._require_extensible()
        self._syntax = self._call_syntax()
        self.notice = "" if self._syntax is not PLAIN else _PLAIN_NOTICE

    @property
    def stop_ids(self) -> frozenset[int]:
        """Return the tokens that end an assistant turn."""
        return self._stops

    def prompt(self, messages: Sequence[Message], tools: Sequence[ToolSpec] = ()) -> list[int]:
        """Return the ids of a whole conversation, up to the opening of the next assistant turn."""
        text = self._template.render(self._protected(messages), self._protected_tools(tools), answer=True)
        return self.safe.encode(text)

    def extend(
        self,
        ids: Sequence[int],
        messages: Sequence[Message],
        tools: Sequence[ToolSpec] = (),  # noqa: ARG002 - they stand at the beginning already
    ) -> list[int] | None:
        """Append to `ids` the end of the sampled turn if missing, the messages, and the assistant's opening."""
        if not messages or not ids or any(message.role == "assistant" for message in messages):
            return None
        text = self._behind_an_answer(self._protected(messages))
        added = None if text is None else self.safe.encode_after(_BEFORE, text)
        if not added:
            return None
        return [*ids, *added[ids[-1] == added[0] and ids[-1] in self._stops :]]

    def answer(self, message: Message, tools: Sequence[ToolSpec] = ()) -> list[int]:
        """Return the ids of an assistant turn in the template's format, including its end."""
        said, shown = self.safe.protect_message(message), self._protected_tools(tools)
        whole = self._template.render([*self._template.base, said], shown, answer=False)
        opening = self._template.render(self._template.base, shown, answer=True)
        body = self._said(whole, opening, said.reasoning)
        body, end = self._until_stop(body)
        ids = self.safe.encode_after(opening, body)
        default = self._stop_after.get("tool" if message.calls else "user", next(iter(self._stops)))
        return [*(self.safe.encode(body) if ids is None else ids), default if end is None else end]

    def _said(self, whole: str, opening: str, reasoning: str) -> str:
        """Return the part of a rendered conversation that the model writes in its last turn."""
        first, last = self._reasoning_tags
        if whole.startswith(opening) or not opening.rstrip().endswith(first):
            return whole[_shared(whole, opening) :]
        # The prompt opens reasoning that the template removes from earlier turns.
        return f"{reasoning}\n{last}\n\n{whole[opening.rindex(first) :]}"

    def read(self, ids: Sequence[int], tools: Sequence[ToolSpec] = (), prompt: Sequence[int] = ()) -> Reply:
        """Parse a finished turn."""
        return reply_of(self.stream(tools, prompt), ids)

    def stream(self, tools: Sequence[ToolSpec] = (), prompt: Sequence[int] = ()) -> StreamReader:
        """Return a streaming reader for one turn after `prompt`."""
        text, before = Detokenizer(self.safe.decode, self._stops), self._opening
        if prompt:
            before = self.safe.decode(prompt[-32:])
        if self._syntax is not PLAIN and getattr(self._tokenizer, "response_template", None):
            return TemplateReader(self._tokenizer, before, [tool_dict(tool) for tool in tools], text)
        tags = self._reasoning_tags
        return ReplyReader(Grammar(self._syntax, tags, before.rstrip().endswith(tags[0])), tools, text)

    def count(self, text: str) -> int:
        """Return the number of tokens of a text inside a message."""
        return len(self.safe.encode(self.safe.protect(text)))

    def text(self, ids: Sequence[int]) -> str:
        """Return a turn as text, without the token that ends it."""
        return self.safe.decode([i for i in ids if i not in self._stops]).strip()

    @cached_property
    def _reasoning_tags(self) -> tuple[str, str]:
        return next((tags for tags in REASONING_TAGS if tags[1] in self._template.source), REASONING_TAGS[0])

    @cached_property
    def _opening(self) -> str:
        return self._template.render(self._template.base, answer=True)

    def _protected(self, messages: Sequence[Message]) -> list[Message]:
        return [self.safe.protect_message(message) for message in messages]

    def _protected_tools(self, tools: Sequence[ToolSpec]) -> list[ToolSpec]:
        return [self.safe.protect_tool(tool) for tool in tools]

    def _behind_an_answer(self, messages: Sequence[Message]) -> str | None:
        """Return what the template writes after an assistant turn, or None if it cannot render these messages."""
        for stand_in in _stand_ins(messages):
            try:
                text = self._template.render([*self._template.base, stand_in, *messages], answer=True)
            except FormatError:
                continue
            _, found, after = text.partition(MARK)
            place = self.safe.find_control(after, among=self._stops if stand_in.calls else None)
            if found and place is not None:
                return after[place:]
        return None

    def _turn_ends(self) -> dict[str, int]:
        """Return the control token after an answer, by the next role; for GLM it is the next role's own token."""
        ends = dict[str, int]()
        for role in ("user", "tool"):
            follower = Message("user", "hello") if role == "user" else Message("tool", "hello", name=PROBE_TOOL.name)
            try:
                text = self._template.render([*self._template.base, Message("assistant", MARK), follower], answer=True)
            except FormatError:
                continue
            _, found, after = text.partition(MARK)
            end = self.safe.first_control(self.safe.encode(after.partition("hello")[0])) if found else None
            if end is not None:
                ends[role] = end
        if "user" not in ends:
            raise FormatError(
                "the chat template cannot be continued behind a sampled answer: no control token stands between an "
                "answer and the next user message; use a model whose template ends turns with a special token"
            )
        return ends

    def _require_extensible(self) -> None:
        """Refuse a tokenizer whose ids after an answer depend on the answer."""
        messages = [Message("user", "hello")]
        text = self._behind_an_answer(messages)
        base = [*self._template.base, Message("assistant", MARK), *messages]
        before, _, after = self._template.render(base, answer=True).partition(MARK)
        whole, start = self.safe.encode(before + _BEFORE + after), self.safe.encode(before + _BEFORE)
        added = None if text is None else self.safe.encode_after(_BEFORE, text)
        closing = after[: len(after) - len(text or "")]
        same = added is not None and start + self.safe.encode(closing) + added == whole
        if not (added and same and added[0] in self.safe.control_ids):
            raise FormatError(
                "the tokenizer cannot continue a conversation behind sampled tokens: the tokens after an answer "
                "depend on the answer's own; use another tokenizer or chat template"
            )

    def _until_stop(self, text: str) -> tuple[str, int | None]:
        """Return a turn's text up to the token that ends it, and that token."""
        place = self.safe.find_control(text, among=self._stops)
        return (text, None) if place is None else (text[:place], self.safe.encode(text[place:])[0])

    def _call_syntax(self) -> CallSyntax:
        """Return the call syntax of the template: the one that parses a rendered call back."""
        if self._template.native:
            for syntax in SYNTAXES:
                self._syntax = syntax
                found = self.read(self.answer(Message("assistant", calls=(PROBE_CALL,)), [PROBE_TOOL]), [PROBE_TOOL])
                if [(call.name, dict(call.arguments)) for call in found.calls] == [
                    (PROBE_CALL.name, dict(PROBE_CALL.arguments))
                ]:
                    return syntax
            self._template.without_tools()
        return PLAIN


_PLAIN_NOTICE = (
    "the chat template shows no tools: they are described in the system message, and calls are read from "
    "<tool_call> blocks and ```bash fences"
)


def _shared(one: str, other: str) -> int:
    """Return the length of the common prefix of two texts."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _stand_ins(messages: Sequence[Message]) -> list[Message]:
    """Return placeholder turns for the sampled one; some templates require a call before tool results."""
    results = [message for message in messages if message.role == "tool"]
    text = Message("assistant", MARK)
    if not results:
        return [text]
    calls = [FunctionCall(result.call_id, result.name or "tool", {"text": "x"}) for result in results]
    calls[-1] = FunctionCall(calls[-1].id, calls[-1].name, {"text": MARK})
    return [Message("assistant", calls=tuple(calls)), text]
