"""Pack the rows of an update so that shared prompts are forwarded once per group.

Everything but attention works on the flat tokens. Attention works on blocks: a shared prompt attends to itself once,
and rows that begin with it attend to it and to themselves. Rows that share nothing are one block.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from arise.engines.local.cache import IdArray
from arise.types import Tokens


@dataclass(frozen=True, eq=False)
class Block:
    """Rows that attend together: the flat tokens of their queries and keys, the last query at the last key."""

    query_BQ: Tensor
    key_BK: Tensor
    mask_QK: Tensor | None
    """Which keys a query sees; None if there are as many queries as keys, and each sees its own and those before."""


@dataclass(frozen=True, eq=False)
class Packed:
    """N flat tokens of B rows of at most T: position and source of each."""

    ids_N: Tensor
    position_N: Tensor
    spread_BT: Tensor
    """The flat token at each place of the rectangle; places right of a row's end hold any token."""
    home_N: Tensor
    """One place of the rectangle, counted row after row, for each flat token."""
    picked_M: Tensor
    """The flat tokens that stand before a generated one, row after row."""
    target_M: Tensor
    """The generated tokens themselves."""
    blocks: tuple[Block, ...]
    """How attention computes them: the blocks with every picked token, then the shared prompts."""
    shared: int
    """How many of the blocks, the last ones, are shared prompts."""
    place_N: Tensor
    """Where the result of each flat token is among those of all blocks."""


def pack(rows: Sequence[Tokens], device: torch.device) -> Packed:
    """Pack rows; rows of one prompt share all but its last token, which predicts their first own token."""
    longest = max(map(len, rows))
    spread_BT: IdArray = np.zeros((len(rows), longest), dtype=np.int64)
    ids, homes, picked, targets = list[IdArray](), list[IdArray](), list[IdArray](), list[IdArray]()
    prompts: dict[bytes, list[int]] = {}
    count = 0
    for number, (row_T, tokens) in enumerate(zip(spread_BT, rows, strict=True)):
        opening = tokens.ids_U[: max(0, int(tokens.generated_U.argmax()) - 1)]
        sharing = prompts.setdefault(opening.tobytes(), [])
        first = len(opening) if sharing else 0
        row_T[:first] = spread_BT[sharing[0], :first] if sharing else 0
        row_T[first : len(tokens)] = np.arange(count, count + len(tokens) - first)
        sharing.append(number)
        count += len(tokens) - first
        ids.append(tokens.ids_U[first:])
        homes.append(np.arange(first, len(tokens)) + number * longest)
        picked.append(row_T[: len(tokens) - 1][tokens.generated_U[1:]])
        targets.append(tokens.ids_U[tokens.generated_U])
    home_N = np.concatenate(homes)
    arrays = np.concatenate(ids), home_N % longest, spread_BT, home_N, np.concatenate(picked), np.concatenate(targets)
    ids_N, position_N, spread, home, picked_M, target_M = (torch.from_numpy(array).to(device) for array in arrays)
    blocks, shared, place_N = _blocks(spread_BT, [len(tokens) for tokens in rows], prompts, count, device)
    return Packed(ids_N, position_N, spread, home, picked_M, target_M, blocks, shared, place_N)


def _blocks(
    spread_BT: IdArray, lengths: Sequence[int], prompts: Mapping[bytes, list[int]], count: int, device: torch.device
) -> tuple[tuple[Block, ...], int, Tensor]:
    """Return the blocks of attention, how many are shared prompts, and the place of each flat token's result."""
    # A GPU's fast kernels take no mask: whole rows are faster there.
    width = np.dtype(np.int64).itemsize if device.type == "cpu" else 0
    groups = [(rows, len(key) // width) for key, rows in prompts.items() if width and key and len(rows) > 1]
    taken = {row for rows, _ in groups for row in rows}
    alone = [row for row in range(len(lengths)) if row not in taken]
    own = [(alone, 0), *groups] if alone else groups
    spans = [(rows, start, max(lengths[row] for row in rows)) for rows, start in own]
    spans += [(rows[:1], 0, start) for rows, start in groups]
    blocks, place_N, base = list[Block](), np.zeros(count, dtype=np.int64), 0
    for rows, start, end in spans:
        key_BK = spread_BT[rows, :end]
        for at, row in enumerate(rows):
            tokens = key_BK[at, start : min(end, lengths[row])]
            place_N[tokens] = base + at * (end - start) + np.arange(len(tokens))
        base += len(rows) * (end - start)
        key = torch.from_numpy(key_BK).to(device)
        mask = torch.ones(end - start, end, dtype=torch.bool, device=device).tril(start) if start else None
        blocks.append(Block(key[:, start:], key, mask))
    return tuple(blocks), len(groups), torch.from_numpy(place_N).to(device)
