"""Key-value storage of a decoder: one slot per conversation, and prefixes shared by many rows."""

from dataclasses import dataclass

import torch
from torch import Tensor

from arise.engines.local.attention import KEY_BLOCK, VisibleKeys, rounded, visible_keys
from arise.engines.local.invariance import ROW_BLOCK


class KeyValues:
    """One growing tensor: layers x slots x heads x positions x width.

    Keys of all heads come before values of all heads, and each head is contiguous, so attention reads sequentially.
    """

    def __init__(self, layers: int, kv_heads: int, head: int, dtype: torch.dtype, device: torch.device) -> None:
        self.tensor = torch.zeros(layers, ROW_BLOCK, 2 * kv_heads, KEY_BLOCK, head, dtype=dtype, device=device)
        self._most = (ROW_BLOCK, KEY_BLOCK)

    def empty(self) -> None:
        """Drop everything and release memory not needed since the last call."""
        layers, places, heads, length, head = self.tensor.shape
        needed = rounded(self._most[0], ROW_BLOCK), rounded(self._most[1], KEY_BLOCK)
        self._most = (ROW_BLOCK, KEY_BLOCK)
        if 2 * needed[0] * needed[1] < places * length:
            self.tensor = self.tensor.new_zeros(layers, needed[0], heads, needed[1], head)

    def grow(self, places: int, length: int) -> None:
        """Grow the tensor, each dimension only when needed."""
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
        """Fill a slot with the first `length` positions of a `read` result."""
        self.grow(place + 1, length)
        self.tensor[:, place, :, :length] = saved[:, :, :length]

    def read(self, place: int, length: int) -> Tensor:
        """Return a copy of the first positions of a slot."""
        return self.tensor[:, place, :, :length].clone()

    def move(self, source: int, target: int, length: int) -> None:
        """Copy the first positions of one slot to another."""
        self.tensor[:, target, :, :length] = self.tensor[:, source, :, :length]


@dataclass(frozen=True)
class Sharing:
    """Which rows of a forward continue which shared prefix."""

    member_GM: Tensor
    """For each prefix the rows that share it, padded with row 0."""
    home_R: Tensor
    """The index of each row in that table, read line by line."""
    visible_keys: VisibleKeys
    alone_R: Tensor | None
    """Rows that share nothing, where there are any."""


class SharedPrefixes:
    """Prefixes stored once and read once for all rows that continue them."""

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
        """Drop all prefixes and rows."""
        self._key_values.empty()
        self._held, self._place_of_row, self._sharing = [], {}, {}

    def attach(self, row: int, prefix: Tensor | None) -> None:
        """Attach a row to a prefix from `KeyValues.read`, or to none."""
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
        """Move a row's attachment to another row."""
        self.attach(target, self.of(source))
        self.attach(source, None)

    def of(self, row: int) -> Tensor | None:
        """Return the prefix a row continues."""
        place = self._place_of_row.get(row)
        return None if place is None else self._held[place]

    def length(self, row: int) -> int:
        """Return the number of tokens in a row's shared prefix."""
        prefix = self.of(row)
        return 0 if prefix is None else prefix.shape[2]

    def sharing(self, first: int, rows: int, near: int) -> Sharing | None:
        """Return the sharing among contiguous rows, or None without any; `near` as in `visible_keys`."""
        if (first, rows) not in self._sharing:
            self._sharing[first, rows] = self._find_sharing(first, rows, near)
        return self._sharing[first, rows]

    def _close_gaps(self) -> None:
        """Drop unused prefixes once they are the majority: attention reads every stored one."""
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
        whole = visible_keys(last, dtype, near)
        self._key_values.grow(len(self._held), whole.keys)
        return Sharing(
            member_GM=torch.tensor([group + [0] * (most - len(group)) for group in members], device=device),
            home_R=torch.tensor(home, device=device),
            visible_keys=whole,
            alone_R=torch.tensor(alone, device=device) if any(alone) else None,
        )
