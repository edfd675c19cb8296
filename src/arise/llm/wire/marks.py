"""Marks around a model's reasoning, as templates and providers write them."""

import re

_NAMES = "think|thinking|thought|thoughts|reasoning|reflection|analysis|scratchpad"
_TAG = re.compile(
    rf"[<◁]\s*(?P<end>/?)\s*(?:\w{{1,20}}:)?(?:{_NAMES})(?:\s+\w+=[^>]{{0,80}})?\s*[>▷]|\[(?P<end2>/?)think\]",
    re.IGNORECASE,
)
_CHANNEL = re.compile(r"<\|(?:channel\|>\s*(?P<name>\w+)|(?P<mark>begin|end)_of_thought\|>)", re.IGNORECASE)
_MESSAGE = re.compile(r"\s*<\|message\|>")


def marks(text: str) -> list[bool]:
    """Return the marks of reasoning in a text, in their order: True ends it, False begins it."""
    return [ends for _, _, ends in _found(text)]


def after_reasoning(text: str) -> str:
    """Return what follows the last end of reasoning; the whole text if nothing marks one."""
    ends = [end for _, end, closes in _found(text) if closes]
    if not ends:
        return text
    rest = text[ends[-1] :]
    message = _MESSAGE.match(rest)
    return rest[message.end() :] if message else rest


def _found(text: str) -> list[tuple[int, int, bool]]:
    found = [(match.start(), match.end(), bool(match["end"] or match["end2"])) for match in _TAG.finditer(text)]
    for match in _CHANNEL.finditer(text):
        ends = match["name"].lower() == "final" if match["name"] else match["mark"].lower() == "end"
        found.append((match.start(), match.end(), ends))
    return sorted(found)
