"""Attention whose result for one query depends, bit by bit, on no other query or row and on no key it may not see.

A BLAS orders its sums by the number of queries and of keys, each processor in its own way, so a machine is measured:
which blocks of queries agree, and up to how many masked keys. Beyond, keys come in the blocks that torch itself cuts.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

KEY_BLOCK, FAR_BLOCK, MAX_QUERIES = 64, 512, 512
_QUERIES, _NEAR = (2, 4, 8, 16, 32), (384, 320, 256, 192, 128, 64)


class Agreement(NamedTuple):
    """What a machine computes alike: whole blocks of so many queries, and any masked keys up to so many."""

    queries: int
    near: int


@lru_cache
def agreement(head: int, dtype: torch.dtype, device: torch.device, threads: int) -> Agreement:  # noqa: ARG001
    """Measured with heads of this width on the calling thread, which has so many threads to compute with."""
    generator = torch.Generator().manual_seed(0)
    q, kept = (torch.randn(1, n, MAX_QUERIES, head, generator=generator).to(device, dtype) for n in (1, 2))

    def bits(queries: slice, keys: int, seen: int) -> Tensor:
        part = q[:, :, queries]
        last_NQ = torch.full((1, part.shape[2]), seen - 1, device=device)
        found, total = _attend(part, kept[:, :, :keys], _mask(last_NQ, keys, dtype))
        return torch.cat([found.float(), total.float().unsqueeze(-1)], dim=-1)

    queries = next((block for block in _QUERIES if all(_agreeing_queries(bits, block))), _QUERIES[-1])
    near = next((near for near in _NEAR if all(_agreeing_keys(bits, near, queries))), 0)
    return Agreement(queries, near)


def _agreeing_queries(bits: Callable[[slice, int, int], Tensor], block: int) -> Iterator[bool]:
    """Whether blocks one by one give what they give together, over few keys and over many."""
    for keys in (KEY_BLOCK, FAR_BLOCK):
        parts = [bits(slice(at, at + block), keys, keys) for at in range(0, MAX_QUERIES, block)]
        expected = torch.cat(parts, dim=2)
        for count in (2 * block, 3 * block, 64, 160, 192, MAX_QUERIES):
            yield torch.equal(bits(slice(count), keys, keys), expected[:, :, :count])


def _agreeing_keys(bits: Callable[[slice, int, int], Tensor], near: int, block: int) -> Iterator[bool]:
    """Whether masked keys up to `near` change nothing."""
    for queries in (slice(block), slice(MAX_QUERIES)):
        for seen in range(KEY_BLOCK // 2, near, KEY_BLOCK // 2):
            expected = bits(queries, near, seen)
            for keys in range(rounded(seen, KEY_BLOCK), near, KEY_BLOCK):
                yield torch.equal(bits(queries, keys, seen), expected)


@dataclass(frozen=True)
class Reach:
    """Which keys the queries of each place may see: for near ones a few, then for the others, if any."""

    near: Tensor
    masks: tuple[Tensor, ...]

    @property
    def keys(self) -> int:
        """How many keys must be there."""
        return int(self.masks[-1].shape[-1])


def reach(last_NQ: Tensor, dtype: torch.dtype, near: int) -> Reach:
    """Queries that see the keys 0 ... `last_NQ` of their place, on a machine that agrees up to `near` keys."""
    nearest, furthest = int(last_NQ.min()), int(last_NQ.max())
    reaches = [min(rounded(furthest + 1, KEY_BLOCK), near)] if nearest < near else []
    if furthest >= near:
        reaches.append(rounded(furthest + 1, FAR_BLOCK))
    return Reach((last_NQ < near)[:, None, :, None], tuple(_mask(last_NQ, keys, dtype) for keys in reaches))


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
