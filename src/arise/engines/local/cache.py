"""Prefix cache for later turns and for rollouts of the same task, bounded in bytes."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

IdArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Prefix:
    """Token ids with their keys and values in the decoder's format."""

    ids: IdArray
    saved: Any
    nbytes: int


class PrefixStore:
    """LRU cache of prefixes: one per conversation, one per opening prompt."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._prefixes: OrderedDict[str | bytes, Prefix] = OrderedDict()
        self._nbytes = 0

    def keep(self, key: str | bytes, prefix: Prefix) -> None:
        """Store a prefix under a conversation key (str) or a prompt's bytes; evict the oldest."""
        self._drop(key)
        self._prefixes[key] = prefix
        self._nbytes += prefix.nbytes
        while self._nbytes > self._max_bytes:
            self._drop(next(iter(self._prefixes)))

    def find(self, key: str | bytes) -> Prefix | None:
        """Return the prefix stored under this key."""
        found = self._prefixes.get(key)
        if found is not None:
            self._prefixes.move_to_end(key)
        return found

    def continued(self, conversation: str, ids: IdArray) -> Prefix | None:
        """Return the prefix of a conversation if `ids` continue it."""
        found = self.find(conversation) if conversation else None
        return found if found is not None and shared_length(found.ids, ids[:-1]) == len(found.ids) else None

    def longest(self, ids: IdArray) -> tuple[Prefix | None, int]:
        """Return the stored prompt with the longest common prefix with `ids`, and its length."""
        best, covered = None, 0
        for key, prefix in self._prefixes.items():
            if isinstance(key, bytes) and (shared := shared_length(prefix.ids, ids)) > covered:
                best, covered = key, shared
        return (self.find(best), covered) if best is not None else (None, 0)

    def clear(self) -> None:
        """Drop everything: the weights changed."""
        self._prefixes.clear()
        self._nbytes = 0

    def _drop(self, key: str | bytes) -> None:
        dropped = self._prefixes.pop(key, None)
        self._nbytes -= dropped.nbytes if dropped else 0


def shared_length(a: IdArray, b: IdArray) -> int:
    """Return the length of the common prefix of two sequences."""
    length = min(len(a), len(b))
    different = np.flatnonzero(a[:length] != b[:length])
    return int(different[0]) if len(different) else length
