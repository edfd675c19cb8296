"""Text from a run as a person may see it, in a terminal or on a page: nothing in it can hide, reorder or command."""

import re

_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")
"""Characters that move the cursor, change colours, hide or reorder text, or are no characters."""


def visible(text: str) -> str:
    """What is not meant to be seen is shown as an escape."""
    return _UNSEEN.sub(lambda found: found.group().encode("unicode_escape").decode(), text)
