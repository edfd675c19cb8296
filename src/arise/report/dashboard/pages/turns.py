"""Turns as a page shows them: their texts, shortened, with the remarks attached to them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from arise.types import ToolCall, Turn

TURNS_ON_PAGE = 40
CHARS_ON_PAGE, CHARS_OF_TEXT = 120_000, 4_000
Written = Callable[[ToolCall], str]


@dataclass(frozen=True)
class Text:
    """The part of a text that a page shows; `quote` is the passage in it that a finding cites."""

    kind: str
    text: str
    length: int
    error: bool = False
    quote: str = ""

    @property
    def cut(self) -> bool:
        return len(self.text) < self.length

    @property
    def marked(self) -> tuple[str, str, str]:
        """Return the text before the quote, the quote, and the text after it."""
        return self.text.partition(self.quote) if self.quote else (self.text, "", "")


@dataclass(frozen=True)
class Pin:
    """A remark at a turn; `verdict` is that of the rubric `who`, or empty for a remark of the judge."""

    verdict: str
    who: str
    text: str
    name: str = ""
    """How the rubric is called, if not by its id."""


@dataclass(frozen=True)
class Shown:
    """A turn on the page: its texts, its trained tokens, and the notes attached to it."""

    number: int
    texts: Sequence[Text]
    trained: int | None = None
    pins: Sequence[Pin] = ()


def arguments_of(call: ToolCall) -> str:
    """Return the arguments of a call as text, or its command alone."""
    return str(call.arguments.get("command") if set(call.arguments) == {"command"} else call.arguments)


def texts_of(turn: Turn, written: Written = arguments_of) -> list[tuple[str, str, bool]]:
    """Return (kind, text, error) in chronological order."""
    found = [("reasoning", turn.reasoning, False)] if turn.reasoning else []
    found.append(("agent", turn.text, False))
    for call in turn.calls:
        given = written(call)
        if given not in turn.text:
            found.append((f"call {call.name}", given, False))
    return [*found, *(("observation", o.text, o.error) for o in turn.observations)]


def turns_from(
    turns: Sequence[Turn], first: int, quotes: Callable[[int], str] = lambda _: "", written: Written = arguments_of
) -> list[Shown]:
    """Return as many of these turns as fit on a page; a long text is cut and links to the rest."""
    found: list[Shown] = []
    size = 0
    for number, turn in enumerate(turns, start=first):
        quote = quotes(number)
        texts = [_cut(kind, text, error, quote) for kind, text, error in texts_of(turn, written)]
        size += sum(len(text.text) for text in texts)
        if found and size > CHARS_ON_PAGE:
            break
        found.append(Shown(number, texts))
    return found


def _cut(kind: str, text: str, error: bool, quote: str) -> Text:
    """Cut a long text; one that holds the quote is cut around it."""
    at = text.find(quote) if quote else -1
    start = max(0, at - CHARS_OF_TEXT // 4) if at + len(quote) > CHARS_OF_TEXT else 0
    return Text(kind, text[start : start + CHARS_OF_TEXT], len(text), error, quote if at >= 0 else "")


def piece_of(turn: Turn, number: int, part: int, written: Written = arguments_of) -> Shown:
    """Return one piece of a long turn."""
    texts = texts_of(turn, written)
    share = CHARS_ON_PAGE // len(texts)
    start = part * share
    return Shown(
        number,
        [
            Text(kind, text[start : start + share], len(text) - start, error)
            for kind, text, error in texts
            if len(text) > start
        ],
    )
