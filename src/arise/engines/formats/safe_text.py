"""Encode message texts such that they never contain control tokens.

Inside a message, every string that the tokenizer would read as a control token gets an invisible cut after its first
character. Chat templates and other renderers preserve the cut, and the text is then encoded piece by piece between
cuts. A text without such strings is encoded in one pass, exactly as by the tokenizer itself.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from arise.types import FunctionCall, Message, ToolSpec

CUT = "\ufdd0"
"""A noncharacter code point. If a text already contains it, it is treated as a cut and produces no token."""

_MARKUP = re.compile(r"<[|｜].*[|｜]>|<[|｜][^<>]*>|<[^<>]*[|｜]>|\[/?[A-Z_]+\]", re.DOTALL)


class SafeText:
    """One tokenizer that distinguishes the template's control tokens from the text of messages."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        added: dict[int, Any] = tokenizer.added_tokens_decoder
        control = {i: token.content for i, token in added.items() if self._is_control(token)}
        # The token for unknown characters also occurs in ordinary text.
        self.control_ids = frozenset(control) - {tokenizer.unk_token_id}
        literals = sorted(set(control.values()), key=len, reverse=True)
        self._literals = re.compile("|".join(map(re.escape, literals)) or r"(?!)")
        backend = getattr(tokenizer, "backend_tokenizer", None)
        folds = any(added[i].normalized for i in control)
        self._normalises = folds and getattr(backend, "normalizer", None) is not None

    def _is_control(self, token: Any) -> bool:
        """Return whether a token is special or frames turns; `<tool_call>` is not special for every tokenizer."""
        if token.special or _MARKUP.fullmatch(token.content):
            return True
        template = self.tokenizer.chat_template
        source = template if isinstance(template, str) else str(template)
        return bool(token.content.strip()) and len(token.content) > 1 and token.content in source

    def protect(self, text: str) -> str:
        """Cut every control string in a text, so that it is safe inside any input of `encode`."""
        cut = self._literals.sub(lambda found: found[0][0] + CUT + found[0][1:], text)
        while cut != text:  # control strings can overlap
            text, cut = cut, self._literals.sub(lambda found: found[0][0] + CUT + found[0][1:], cut)
        # A normaliser may map other characters to those of a control string.
        if self._normalises and not self.control_ids.isdisjoint(self.encode(cut)):
            return CUT.join(cut.replace(CUT, ""))
        return cut

    def protect_value(self, value: object) -> Any:
        """Protect every string of a JSON value."""
        if isinstance(value, str):
            return self.protect(value)
        if isinstance(value, Mapping):
            return {self.protect(str(key)): self.protect_value(item) for key, item in value.items()}
        if isinstance(value, Sequence):
            return [self.protect_value(item) for item in value]
        return value

    def protect_message(self, message: Message) -> Message:
        """Protect all texts of a message."""
        calls = tuple(
            FunctionCall(call.id, self.protect(call.name), self.protect_value(call.arguments)) for call in message.calls
        )
        text, reasoning = self.protect(message.text), self.protect(message.reasoning)
        return replace(message, text=text, reasoning=reasoning, calls=calls, name=self.protect(message.name))

    def protect_tool(self, tool: ToolSpec) -> ToolSpec:
        """Protect the name, description and schema of a tool."""
        return ToolSpec(self.protect(tool.name), self.protect(tool.description), self.protect_value(tool.parameters))

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text; control strings become control tokens unless they are cut."""
        ids = list[int]()
        for piece in text.split(CUT):
            if piece:
                ids += self.tokenizer(piece, add_special_tokens=False)["input_ids"]
        return ids

    def encode_after(self, before: str, text: str) -> list[int] | None:
        """Return the ids that `text` adds after `before`, or None if a token crosses the boundary."""
        known, whole = self.encode(before), self.encode(before + text)
        return whole[len(known) :] if whole[: len(known)] == known else None

    def find_control(self, text: str, among: Collection[int] | None = None) -> int | None:
        """Return the position of the first uncut control string; `among` limits the search to these ids."""
        for found in self._literals.finditer(text):
            if among is None or self.tokenizer.convert_tokens_to_ids(found[0]) in among:
                return found.start()
        return None

    def first_control(self, ids: Sequence[int]) -> int | None:
        """Return the first control token in `ids`."""
        return next((i for i in ids if i in self.control_ids), None)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids, including control tokens."""
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False))
