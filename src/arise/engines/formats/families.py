"""Formats of the model families supported by the package `renderers` (extra `formats`).

The package renders and parses each family token by token, and extends conversations without re-rendering sampled
tokens. This module adds what it lacks: protection of message texts, and detection of the end of a sampled turn from ids
alone.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib.util import find_spec
from typing import Any

from arise.engines.formats.reading import reply_of
from arise.engines.formats.safe_text import SafeText
from arise.engines.formats.syntaxes import call_id
from arise.engines.formats.templates import message_dict, tool_dict
from arise.ports import FormatError, StreamReader
from arise.types import FunctionCall, Message, Reply, StreamEvent, ToolSpec


def families() -> list[str]:
    """Return the names that `model.format` accepts; empty if the extra is not installed."""
    if find_spec("renderers") is None or find_spec("httpx") is None:
        return []
    from renderers import base  # takes 1.3 s, so import it only when a family is requested

    base._populate_registry()
    return sorted(set(base.RENDERER_REGISTRY) - {"default"})


def family_of(tokenizer: Any) -> str:
    """Return the family of a model with a well-known name, else ""; a fine-tune may have another template."""
    name = str(getattr(tokenizer, "name_or_path", ""))
    if "/" not in name or name.startswith(("/", ".", "~")) or not families():
        return ""
    from renderers.base import MODEL_RENDERER_MAP

    return str(MODEL_RENDERER_MAP.get(name, ""))


def family_format(name: str, tokenizer: Any, options: Mapping[str, Any] | None = None) -> "FamilyFormat":
    """Create the format of a family for a tokenizer; refuse a tokenizer of another family."""
    from renderers.base import create_renderer
    from renderers.configs import _config_class_for

    safe = SafeText(tokenizer)
    try:
        settings = _config_class_for(name)(**(dict(options or {}) | {"thinking_retention": "all"}))
        return FamilyFormat(create_renderer(SafeTokenizer(safe), settings), safe)
    except (AssertionError, ValueError, TypeError, KeyError, AttributeError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise FormatError(
            f"model.format = {name!r} does not fit this tokenizer ({reason}): use 'generic' or its own family"
        ) from None


class SafeTokenizer:
    """The tokenizer interface that renderers need; protected texts never become control tokens."""

    def __init__(self, safe: SafeText) -> None:
        self._safe = safe
        own = safe.tokenizer
        self.name_or_path = str(own.name_or_path)
        self.unk_token_id, self.eos_token_id = own.unk_token_id, own.eos_token_id

    def encode(self, text: str, *_: Any, **__: Any) -> list[int]:
        """Return the ids of a text, encoding the pieces between cuts separately."""
        return self._safe.encode(text)

    def decode(self, token_ids: Any, *_: Any, **options: Any) -> str:
        """Return the text of ids."""
        return str(self._safe.tokenizer.decode(token_ids, **options))

    def convert_tokens_to_ids(self, tokens: Any) -> Any:
        """Return the ids of named tokens."""
        return self._safe.tokenizer.convert_tokens_to_ids(tokens)


class FamilyFormat:
    """Implement `ports.Format` with a renderer of the package."""

    notice = ""

    def __init__(self, renderer: Any, safe: SafeText) -> None:
        self._renderer, self.safe = renderer, safe
        self._stops = frozenset(int(i) for i in renderer.get_stop_token_ids())

    @property
    def stop_ids(self) -> frozenset[int]:
        """Return the tokens that end an assistant turn."""
        return self._stops

    def prompt(self, messages: Sequence[Message], tools: Sequence[ToolSpec] = ()) -> list[int]:
        """Return the ids of a whole conversation, up to the opening of the next assistant turn."""
        return self._render(messages, tools, answer=True)

    def extend(
        self, ids: Sequence[int], messages: Sequence[Message], tools: Sequence[ToolSpec] = ()
    ) -> list[int] | None:
        """Extend the ids with the family's own bridge; return None if it refuses."""
        if not ids or not messages:
            return None
        start = self._last_turn(ids)
        bridged = self._renderer.bridge_to_next_turn(
            list(ids[:start]), list(ids[start:]), self._dicts(messages), tools=self._tools(tools)
        )
        longer = None if bridged is None else list(map(int, bridged.token_ids))
        return longer if longer is not None and longer[: len(ids)] == list(ids) else None

    def _last_turn(self, ids: Sequence[int]) -> int:
        """Return where the last assistant turn begins, after its opening."""
        size = len(self._opening)
        for start in range(len(ids) - size, 0, -1):
            if list(ids[start : start + size]) == self._opening:
                return start + size
        return len(ids) - 1

    @cached_property
    def _opening(self) -> list[int]:
        base = [Message("user", "hello")]
        return self._render(base, (), answer=True)[len(self._render(base, (), answer=False)) :]

    def answer(self, message: Message, tools: Sequence[ToolSpec] = ()) -> list[int]:
        """Return the ids of an assistant turn in the family's format, including its end."""
        base = [Message("user", "hello")]
        opening = self._render(base, tools, answer=True)
        whole = self._render([*base, message], tools, answer=False)
        shared = next((n for n, (a, b) in enumerate(zip(opening, whole, strict=False)) if a != b), len(opening))
        said = whole[shared:]
        ends = [n for n, i in enumerate(said) if i in self._stops]
        # If a family writes no end of turn, the next role's token ends it.
        role = "observation" if message.calls else "user"
        fallback = sorted(self._stops, key=lambda i: (role not in self.safe.decode([i]), i))[0]
        return said[: ends[0] + 1] if ends else [*said, fallback]

    def read(self, ids: Sequence[int], tools: Sequence[ToolSpec] = (), prompt: Sequence[int] = ()) -> Reply:
        """Parse a finished turn."""
        return reply_of(self.stream(tools, prompt), ids)

    def stream(self, tools: Sequence[ToolSpec] = (), prompt: Sequence[int] = ()) -> StreamReader:
        """Return a reader that emits all events at the end, because the package has no streaming parser."""
        return _FamilyReader(self, tools, list(prompt))

    def parse(self, ids: Sequence[int], tools: Sequence[ToolSpec], prompt: Sequence[int]) -> list[StreamEvent]:
        """Return the events of a whole turn."""
        found = self._renderer.parse_response(list(ids), tools=self._tools(tools), prompt_ids=list(prompt) or None)
        reasoning = StreamEvent("reasoning", (found.reasoning_content or "").strip())
        broken = [call for call in found.tool_calls if call.status not in ("ok", "unknown_tool") or not call.name]
        if broken:
            reason = f"{str(broken[0].status).replace('_', ' ')}: {broken[0].raw.strip()[:80]}"
            said = [reasoning, StreamEvent("text", self.text(ids)), StreamEvent("malformed", reason)]
        else:
            calls = [
                FunctionCall(
                    call_id(n), call.name, call.arguments if isinstance(call.arguments, dict) else {}, call.raw
                )
                for n, call in enumerate(found.tool_calls)
            ]
            text = StreamEvent("text", (found.content or "").strip())
            said = [reasoning, text, *(StreamEvent("call", call=call) for call in calls)]
        return [event for event in said if event.text or event.call]

    def count(self, text: str) -> int:
        """Return the number of tokens of a text inside a message."""
        return len(self.safe.encode(self.safe.protect(text)))

    def text(self, ids: Sequence[int]) -> str:
        """Return a turn as text, without the token that ends it."""
        return self.safe.decode([i for i in ids if i not in self._stops]).strip()

    def _render(self, messages: Sequence[Message], tools: Sequence[ToolSpec], *, answer: bool) -> list[int]:
        try:
            ids = self._renderer.render_ids(
                self._dicts(messages), tools=self._tools(tools), add_generation_prompt=answer
            )
        except (ValueError, TypeError, KeyError) as error:
            roles = ", ".join(message.role for message in messages)
            raise FormatError(f"the format cannot show messages of {roles} ({error})") from None
        return list(map(int, ids))

    def _tools(self, tools: Sequence[ToolSpec]) -> list[dict[str, Any]] | None:
        return [tool_dict(self.safe.protect_tool(tool)) for tool in tools] or None

    def _dicts(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        return [message_dict(self.safe.protect_message(message)) for message in messages]


class _FamilyReader:
    def __init__(self, chat: FamilyFormat, tools: Sequence[ToolSpec], prompt: list[int]) -> None:
        self._chat, self._tools, self._prompt = chat, tools, prompt
        self._ids: list[int] = []

    def feed(self, ids: Sequence[int]) -> list[StreamEvent]:
        self._ids += ids
        return []

    def end(self) -> list[StreamEvent]:
        return self._chat.parse(self._ids, self._tools, self._prompt)
