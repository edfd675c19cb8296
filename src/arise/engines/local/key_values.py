"""Where a decoder keeps keys and values: rows of its own for every conversation, and prefixes that many rows share."""

from dataclasses import dataclass

import torch
from torch import Tensor

from arise.engines.local.attention import KEY_BLOCK, Reach, reach, rounded
from arise.engines.local.invariance import ROW_BLOCK


class KeyValues:
    """One tensor of places that grows: layers x places x heads x positions x width.

    The keys of all heads come before the values of all heads, and one head's lie side by side: attention reads them in
    one sweep.
    """

    def __init__(self, layers: int, kv_heads: int, head: int, dtype: torch.dtype, device: torch.device) -> None:
        self.tensor = torch.zeros(layers, ROW_BLOCK, 2 * kv_heads, KEY_BLOCK, head, dtype=dtype, device=device)
        self._most = (ROW_BLOCK, KEY_BLOCK)

    def empty(self) -> None:
        """Forget everything; room that was not needed since the last time is given back."""
        layers, places, heads, length, head = self.tensor.shape
        needed = rounded(self._most[0], ROW_BLOCK), rounded(self._most[1], KEY_BLOCK)
        self._most = (ROW_BLOCK, KEY_BLOCK)
        if 2 * needed[0] * needed[1] < places * length:
            self.tensor = self.tensor.new_zeros(layers, needed[0], heads, needed[1], head)

    def grow(self, places: int, length: int) -> None:
        """Make room; each direction grows only when it must: both at once would square the memory."""
        self._most = max(places, self._most[0]), max(length, self._most[1])
        layers, old_places, heads, old_length, head = self.tensor.shape
        if places <= old_places and length <= old_length:
            return
        new_places = old_places if places <= old_places else rounded(places, ROW_BLOCK)
        new_length = old_length if length <= old_length else rounded(length + length // 4, KEY_BLOCK)
        grown = self.tensor.new_zeros(layers, new_places, heads, new_length, head)
        grown[:, :old_places, :, :old_length] = self.tensor
        self.tensor = grown

    def write(self, place: int, saved: Tensor, length: int) -> None:
        """Fill a place with the first `length` positions of what `read` gave."""
        self.grow(place + 1, length)
        self.tensor[:, place, :, :length] = saved[:, :, :length]

    def read(self, place: int, length: int) -> Tensor:
        """A copy of the first positions of a place."""
        return self.tensor[:, place, :, :length].clone()

    def move(self, source: int, target: int, length: int) -> None:
        """Copy the first positions of one place to another."""
        self.tensor[:, target, :, :length] = self.tensor[:, source, :, :length]


@dataclass(frozen=True)
class Sharing:
    """Which rows of a forward go on from which shared prefix."""

    member_GM: Tensor
    """For each prefix the rows that share it, filled up with row 0."""
    home_R: Tensor
    """Where each row stands in that table, read line by line."""
    reach: Reach
    alone_R: Tensor | None
    """Rows that share nothing, where there are any."""


class SharedPrefixes:
    """Prefixes held once, however many rows go on from them: decoding reads them once for all of these rows."""

    def __init__(self, key_values: KeyValues) -> None:
        self._key_values = key_values
        self._held: list[Tensor] = []
        self._place_of_row: dict[int, int] = {}
        self._sharing: dict[tuple[int, int], Sharing | None] = {}

    @property
    def tensor(self) -> Tensor:
        """Layers x prefixes x heads x positions x width."""
        return self._key_values.tensor[:, : len(self._held)]

    def clear(self) -> None:
        """Forget all prefixes and rows."""
        self._key_values.empty()
        self._held, self._place_of_row, self._sharing = [], {}, {}

    def attach(self, row: int, prefix: Tensor | None) -> None:
        """Let a row go on from a prefix that `KeyValues.read` gave, or from nothing."""
        self._sharing = {}
        self._place_of_row.pop(row, None)
        if prefix is None:
            return
        place = next((place for place, held in enumerate(self._held) if held is prefix), None)
        if place is None:
            in_use = set(self._place_of_row.values())
            place = next((place for place in range(len(self._held)) if place not in in_use), len(self._held))
            self._held[place : place + 1] = [prefix]
            self._key_values.write(place, prefix, prefix.shape[2])
        self._place_of_row[row] = place

    def move(self, source: int, target: int) -> None:
        """Let one row stand for another."""
        self.attach(target, self.of(source))
        self.attach(source, None)

    def of(self, row: int) -> Tensor | None:
        """The prefix that a row goes on from."""
        place = self._place_of_row.get(row)
        return None if place is None else self._held[place]

    def length(self, row: int) -> int:
        """How many tokens of a row are in its shared prefix."""
        prefix = self.of(row)
        return 0 if prefix is None else prefix.shape[2]

    def sharing(self, first: int, rows: int, near: int) -> Sharing | None:
        """Who shares what among some neighbouring rows; None when nobody shares anything. `near` is `reach`'s."""
        if (first, rows) not in self._sharing:
            self._sharing[first, rows] = self._find_sharing(first, rows, near)
        return self._sharing[first, rows]

    def _close_gaps(self) -> None:
        """Let go of prefixes that no row uses once they are the most: attention reads every one that is held."""
        used = sorted(set(self._place_of_row.values()))
        if 2 * len(used) > len(self._held):
            return
        for target, source in enumerate(used):
            if target != source:
                self._key_values.move(source, target, self._held[source].shape[2])
        self._held = [self._held[place] for place in used]
        self._place_of_row = {row: used.index(place) for row, place in self._place_of_row.items()}
        self._sharing = {}

    def _find_sharing(self, first: int, rows: int, near: int) -> Sharing | None:
        self._close_gaps()
        members: list[list[int]] = [[] for _ in self._held]
        alone = [True] * rows
        for row in range(rows):
            place = self._place_of_row.get(first + row)
            if place is not None:
                members[place].append(row)
                alone[row] = False
        if all(alone):
            return None
        most = max(map(len, members))
        home = [0] * rows
        for place, group in enumerate(members):
            for seat, row in enumerate(group):
                home[row] = place * most + seat
        device, dtype = self.tensor.device, self.tensor.dtype
        last = torch.tensor([[prefix.shape[2] - 1] for prefix in self._held], device=device)
        whole = reach(last, dtype, near)
        self._key_values.grow(len(self._held), whole.keys)
        return Sharing(
            member_GM=torch.tensor([group + [0] * (most - len(group)) for group in members], device=device),
            home_R=torch.tensor(home, device=device),
            reach=whole,
            alone_R=torch.tensor(alone, device=device) if any(alone) else None,
        )
