"""Attention whose result for one query depends, bit by bit, on no other query or row and on no key it may not see.

Measured on CPUs: queries agree in blocks that grow with the width of a head, up to 512 of them; over masked keys in
blocks of 64 up to 384 keys and in blocks of 512 beyond, where a BLAS sums in parts.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

KEY_BLOCK, NEAR, FAR_BLOCK, MAX_QUERIES = 64, 384, 512, 512


def query_block(head: int) -> int:
    """How many queries must at least be computed together to agree with any multiple of them."""
    return 2 if head <= 32 else 4 if head <= 64 else 8 if head <= 128 else 16


@dataclass(frozen=True)
class Reach:
    """Which keys the queries of each place may see: for near ones up to NEAR of them, then for the others, if any."""

    near: Tensor
    masks: tuple[Tensor, ...]

    @property
    def keys(self) -> int:
        """How many keys must be there."""
        return int(self.masks[-1].shape[-1])


def reach(last_NQ: Tensor, dtype: torch.dtype) -> Reach:
    """Queries that see the keys 0 ... `last_NQ` of their place."""
    nearest, furthest = int(last_NQ.min()), int(last_NQ.max())
    reaches = [min(rounded(furthest + 1, KEY_BLOCK), NEAR)] if nearest < NEAR else []
    if furthest >= NEAR:
        reaches.append(rounded(furthest + 1, FAR_BLOCK))
    return Reach((last_NQ < NEAR)[:, None, :, None], tuple(_mask(last_NQ, keys, dtype) for keys in reaches))


def _mask(last_NQ: Tensor, keys: int, dtype: torch.dtype) -> Tensor:
    hidden = last_NQ[:, :, None] < torch.arange(keys, device=last_NQ.device)
    return torch.zeros(hidden.shape, dtype=dtype, device=last_NQ.device).masked_fill_(hidden, -torch.inf).unsqueeze(1)


def attend(q_NHQD: Tensor, kept: Tensor, reach: Reach) -> tuple[Tensor, Tensor]:
    """Weighted values, and the logarithm of the weights' sum; `kept` holds the keys, then the values, of all heads."""
    found = [_attend(q_NHQD, kept[:, :, : mask.shape[-1]], mask) for mask in reach.masks]
    if len(found) == 1:
        return found[0]
    (near, near_sum), (far, far_sum) = found
    return torch.where(reach.near, near, far), torch.where(reach.near[..., 0], near_sum, far_sum)


def _attend(q: Tensor, kept: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    keys, values = kept.chunk(2, dim=1)
    if q.device.type == "cpu":
        # What scaled_dot_product_attention calls on a CPU; the public function keeps the sum to itself.
        found: tuple[Tensor, Tensor] = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
            q, keys, values, attn_mask=mask
        )
        return found
    scores = q.float() @ keys.mT.float() / math.sqrt(q.shape[-1]) + mask
    return (scores.softmax(-1) @ values.float()).to(q.dtype), scores.logsumexp(-1)


def merged(a: tuple[Tensor, Tensor], b: tuple[Tensor, Tensor]) -> Tensor:
    """Attention over the keys of both, from attention over the keys of each."""
    (of_a, sum_a), (of_b, sum_b) = a, b
    # Not a sigmoid: elementwise functions round the last few elements of a tensor otherwise than the rest.
    share_b = torch.stack([sum_a, sum_b], dim=-1).softmax(dim=-1)[..., 1:]
    return torch.lerp(of_a.float(), of_b.float(), share_b).to(of_a.dtype)


def padded_queries(q_NHQD: Tensor, block: int) -> Tensor:
    """The queries and as many zeros as make whole blocks."""
    return pad(q_NHQD, (0, 0, 0, -q_NHQD.shape[2] % block))


def rounded(count: int, block: int) -> int:
    """The next multiple of a block."""
    return -(-count // block) * block
