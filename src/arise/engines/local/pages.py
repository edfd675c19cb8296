"""Keys and values in pages of a few positions, which conversations share until one of them writes."""

import heapq
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

PAGE, ARENA = 16, 64
"""Positions of a page and pages allocated together, as in native/kernel.h."""


def pages_for(positions: int) -> int:
    """Return how many pages hold this many positions."""
    return -(-positions // PAGE)


class Pages:
    """Counted pages; the arrays never move, so the native code may keep their addresses."""

    def __init__(self, heads: int, width: int) -> None:
        self._shape = (heads, ARENA, 2 * PAGE * width)  # heads of all layers
        self._arenas: list[NDArray[np.float32]] = []
        self._uses: list[int] = []
        self._free: list[int] = []
        self.addresses = np.zeros(0, np.uint64)

    @property
    def nbytes(self) -> int:
        """Return the memory of one page."""
        return self._shape[0] * self._shape[2] * 4

    @property
    def in_use(self) -> int:
        """Return how many pages are used."""
        return len(self._uses) - len(self._free)

    def take(self) -> int:
        """Return an empty page for one user; the lowest free one, so that pages in use stay contiguous."""
        page = self._next()
        # Even a weight of zero keeps what is not a number, so nothing of the previous user may stay.
        self._arenas[page // ARENA][:, page % ARENA] = 0.0
        return page

    def _next(self) -> int:
        if not self._free:
            self._grow()
        page = heapq.heappop(self._free)
        self._uses[page] = 1
        return page

    def use(self, pages: Iterable[int]) -> None:
        """Count another user of each page."""
        for page in pages:
            self._uses[page] += 1

    def release(self, pages: Iterable[int]) -> None:
        """Count one user less of each page."""
        for page in pages:
            self._uses[page] -= 1
            if self._uses[page] == 0:
                heapq.heappush(self._free, page)

    def own(self, page: int) -> int:
        """Return the page itself for its only user, or a copy for one of several."""
        if self._uses[page] == 1:
            return page
        copy = self._next()
        self._arenas[copy // ARENA][:, copy % ARENA] = self._arenas[page // ARENA][:, page % ARENA]
        self._uses[page] -= 1
        return copy

    def shrink(self) -> None:
        """Free unused arenas at the end."""
        while self._arenas and not any(self._uses[-ARENA:]):
            self._arenas.pop()
            del self._uses[-ARENA:]
        self._free = [page for page, uses in enumerate(self._uses) if not uses]
        self._note_addresses()

    def _grow(self) -> None:
        begin = len(self._uses)
        self._arenas.append(np.zeros(self._shape, np.float32))
        self._uses += [0] * ARENA
        for page in range(begin, begin + ARENA):
            heapq.heappush(self._free, page)
        self._note_addresses()

    def _note_addresses(self) -> None:
        self.addresses = np.array([arena.ctypes.data for arena in self._arenas], np.uint64)


class SavedPages:
    """The first positions of a conversation; its pages are free again once nothing refers to it."""

    def __init__(self, pool: Pages, pages: tuple[int, ...], length: int) -> None:
        self._pool, self.pages, self.length = pool, pages, length
        pool.use(pages)

    def __del__(self) -> None:
        self._pool.release(self.pages)
