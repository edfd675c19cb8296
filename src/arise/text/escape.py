"""Escape control, invisible and reordering characters in untrusted text."""

import re

_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")
"""Characters that move the cursor, change colours, hide or reorder text, or are no characters."""


def visible(text: str) -> str:
    """Replace every invisible or control character by a visible escape."""
    return _UNSEEN.sub(lambda found: found.group().encode("unicode_escape").decode(), text)
