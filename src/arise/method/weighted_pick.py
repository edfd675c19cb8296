"""Weighted draws without replacement from a large set, without touching the whole set at each draw."""

import numpy as np
from numpy.typing import NDArray

from arise.method.arrays import Floats


class WeightedPick:
    """`items` (sorted positions) with positive weights; `draw` chooses in proportion among those not yet removed."""

    def __init__(self, items: NDArray[np.intp], weights: Floats) -> None:
        self._items, self._weights = items, weights
        self._removed: set[int] = set()
        self._cumulative = np.cumsum(weights)
        self._mass = float(self._cumulative[-1]) if len(items) else 0.0
        self.left = len(items)

    def remove(self, item: int) -> None:
        """Remove `item`; ignore it if it is not there."""
        place = int(np.searchsorted(self._items, item))
        if place < len(self._items) and self._items[place] == item and item not in self._removed:
            self._removed.add(item)
            self._mass -= float(self._weights[place])
            self.left -= 1

    def draw(self, random: np.random.Generator) -> tuple[int, float]:
        """Return one item and its probability; the caller removes it."""
        if self.left < 1:
            raise ValueError("nothing is left to draw from")
        if 2.0 * self._mass < self._cumulative[-1]:
            self._forget_removed()
        # Redrawing what was removed is the same as renormalising, and takes two tries on average at most.
        while True:
            target = random.random() * self._cumulative[-1]
            place = min(int(np.searchsorted(self._cumulative, target, side="right")), len(self._items) - 1)
            item = int(self._items[place])
            if item not in self._removed:
                return item, float(self._weights[place]) / self._mass

    def _forget_removed(self) -> None:
        keep = ~np.isin(self._items, list(self._removed))
        self._items, self._weights = self._items[keep], self._weights[keep]
        self._removed = set()
        self._cumulative = np.cumsum(self._weights)
        self._mass = float(self._cumulative[-1])
