"""Pack the rows of an update so that shared prompts are forwarded once per group.

Everything but attention works on the flat tokens; attention pads them to whole rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from arise.engines.local.cache import IdArray
from arise.types import Tokens


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


def pack(rows: Sequence[Tokens], device: torch.device) -> Packed:
    """Pack rows; rows of one prompt share all but its last token, which predicts their first own token."""
    longest = max(map(len, rows))
    spread_BT: IdArray = np.zeros((len(rows), longest), dtype=np.int64)
    ids, homes, picked, targets = list[IdArray](), list[IdArray](), list[IdArray](), list[IdArray]()
    prompts: dict[bytes, IdArray] = {}
    count = 0
    for number, (row_T, tokens) in enumerate(zip(spread_BT, rows, strict=True)):
        opening = tokens.ids_U[: max(0, int(tokens.generated_U.argmax()) - 1)]
        known = prompts.get(opening.tobytes(), row_T[:0])
        first = len(known)
        row_T[:first] = known
        row_T[first : len(tokens)] = np.arange(count, count + len(tokens) - first)
        prompts[opening.tobytes()] = row_T[: len(opening)]
        count += len(tokens) - first
        ids.append(tokens.ids_U[first:])
        homes.append(np.arange(first, len(tokens)) + number * longest)
        picked.append(row_T[: len(tokens) - 1][tokens.generated_U[1:]])
        targets.append(tokens.ids_U[tokens.generated_U])
    home_N = np.concatenate(homes)
    joined = np.concatenate(ids), home_N % longest, spread_BT, home_N, np.concatenate(picked), np.concatenate(targets)
    return Packed(*(torch.from_numpy(array).to(device) for array in joined))
