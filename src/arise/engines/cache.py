"""What a later turn, or another rollout of the same task, need not compute again: saved prefixes, bounded in bytes."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

IdArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Prefix:
    """Token ids with their keys and values, in whatever form the decoder saves them."""

    ids: IdArray
    saved: Any
    nbytes: int


class PrefixStore:
    """Least-recently-used prefixes: one for each conversation, one for each opening prompt."""

    def __init__(self, max_bytes: int, exact_only: bool) -> None:
        self._max_bytes, self._exact_only = max_bytes, exact_only
        self._prefixes: OrderedDict[str | bytes, Prefix] = OrderedDict()
        self._nbytes = 0

    def keep(self, key: str | bytes, prefix: Prefix) -> None:
        """Remember a prefix under a conversation's key (str) or a prompt's bytes; the oldest make room."""
        self._drop(key)
        self._prefixes[key] = prefix
        self._nbytes += prefix.nbytes
        while self._nbytes > self._max_bytes:
            self._drop(next(iter(self._prefixes)))

    def longest(self, conversation: str, ids: IdArray) -> tuple[Prefix | None, int]:
        """The saved prefix that covers most of `ids`, and how many tokens; the last token is never covered."""
        own = self._prefixes.get(conversation) if conversation else None
        if own is not None and (shared := shared_length(own.ids, ids[:-1])) == len(own.ids):
            self._prefixes.move_to_end(conversation)
            return own, shared
        best_key, best = None, 0
        for key, prefix in self._prefixes.items():
            if isinstance(key, bytes) and (shared := self._usable(prefix, ids)) > best:
                best_key, best = key, shared
        if best_key is None:
            return None, 0
        self._prefixes.move_to_end(best_key)
        return self._prefixes[best_key], best

    def _usable(self, prefix: Prefix, ids: IdArray) -> int:
        shared = shared_length(prefix.ids, ids[:-1])
        return 0 if self._exact_only and not shared == len(prefix.ids) == len(ids) - 1 else shared

    def holds(self, key: str | bytes) -> bool:
        """Whether a prefix is kept under this key."""
        return key in self._prefixes

    def clear(self) -> None:
        """Forget everything: the weights changed."""
        self._prefixes.clear()
        self._nbytes = 0

    def _drop(self, key: str | bytes) -> None:
        dropped = self._prefixes.pop(key, None)
        self._nbytes -= dropped.nbytes if dropped else 0


def shared_length(a: IdArray, b: IdArray) -> int:
    """How many leading tokens two sequences have in common."""
    length = min(len(a), len(b))
    different = np.flatnonzero(a[:length] != b[:length])
    return int(different[0]) if len(different) else length
