"""Batch-invariant attention: bit for bit, a query's result depends on no other row and on no masked key.

A BLAS chooses its summation order by the number of queries and keys, differently on each CPU. So the limits are
measured: which query blocks agree, and up to how many masked keys. Beyond, keys are split into torch's own blocks.
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


class InvarianceLimits(NamedTuple):
    """Batch-invariance limits measured on this CPU: query block size, and number of masked keys."""

    queries: int
    near: int


@lru_cache
def invariance_limits(head: int, dtype: torch.dtype, device: torch.device, threads: int) -> InvarianceLimits:  # noqa: ARG001
    """Measure the limits for this head width on the calling thread with its number of compute threads."""
    generator = torch.Generator().manual_seed(0)
    q, kept = (torch.randn(1, n, MAX_QUERIES, head, generator=generator).to(device, dtype) for n in (1, 2))

    def bits(queries: slice, keys: int, seen: int) -> Tensor:
        part = q[:, :, queries]
        last_NQ = torch.full((1, part.shape[2]), seen - 1, device=device)
        found, total = _attend(part, kept[:, :, :keys], _mask(last_NQ, keys, dtype))
        return torch.cat([found.float(), total.float().unsqueeze(-1)], dim=-1)

    queries = next((block for block in _QUERIES if all(_agreeing_queries(bits, block))), _QUERIES[-1])
    near = next((near for near in _NEAR if all(_agreeing_keys(bits, near, queries))), 0)
    return InvarianceLimits(queries, near)


def _agreeing_queries(bits: Callable[[slice, int, int], Tensor], block: int) -> Iterator[bool]:
    """Return whether separate query blocks give the same bits as one call, for few and many keys."""
    for keys in (KEY_BLOCK, FAR_BLOCK):
        parts = [bits(slice(at, at + block), keys, keys) for at in range(0, MAX_QUERIES, block)]
        expected = torch.cat(parts, dim=2)
        for count in (2 * block, 3 * block, 64, 160, 192, MAX_QUERIES):
            yield torch.equal(bits(slice(count), keys, keys), expected[:, :, :count])


def _agreeing_keys(bits: Callable[[slice, int, int], Tensor], near: int, block: int) -> Iterator[bool]:
    """Return whether masked keys up to `near` leave the result unchanged."""
    for queries in (slice(block), slice(MAX_QUERIES)):
        for seen in range(KEY_BLOCK // 2, near, KEY_BLOCK // 2):
            expected = bits(queries, near, seen)
            for keys in range(rounded(seen, KEY_BLOCK), near, KEY_BLOCK):
                yield torch.equal(bits(queries, keys, seen), expected)


@dataclass(frozen=True)
class VisibleKeys:
    """Which keys the queries of each slot may see: a near part, then the rest, if any."""

    near: Tensor
    masks: tuple[Tensor, ...]

    @property
    def keys(self) -> int:
        """Number of keys required."""
        return int(self.masks[-1].shape[-1])


def visible_keys(last_NQ: Tensor, dtype: torch.dtype, near: int) -> VisibleKeys:
    """Build the mask for queries that see keys 0 ... `last_NQ` of their slot; `near` is the measured limit."""
    nearest, furthest = int(last_NQ.min()), int(last_NQ.max())
    reaches = [min(rounded(furthest + 1, KEY_BLOCK), near)] if nearest < near else []
    if furthest >= near:
        reaches.append(rounded(furthest + 1, FAR_BLOCK))
    return VisibleKeys((last_NQ < near)[:, None, :, None], tuple(_mask(last_NQ, keys, dtype) for keys in reaches))


def _mask(last_NQ: Tensor, keys: int, dtype: torch.dtype) -> Tensor:
    hidden = last_NQ[:, :, None] < torch.arange(keys, device=last_NQ.device)
    return torch.zeros(hidden.shape, dtype=dtype, device=last_NQ.device).masked_fill_(hidden, -torch.inf).unsqueeze(1)


def attend(q_NHQD: Tensor, kept: Tensor, visible_keys: VisibleKeys) -> tuple[Tensor, Tensor]:
    """Return attention outputs and log-sum-exp; `kept` holds keys, then values, of all heads."""
    found = [_attend(q_NHQD, kept[:, :, : mask.shape[-1]], mask) for mask in visible_keys.masks]
    if len(found) == 1:
        return found[0]
    (near, near_sum), (far, far_sum) = found
    return torch.where(visible_keys.near, near, far), torch.where(visible_keys.near[..., 0], near_sum, far_sum)


def _attend(q: Tensor, kept: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    keys, values = kept.chunk(2, dim=1)
    if q.device.type == "cpu":
        # The CPU kernel behind scaled_dot_product_attention; the public function does not return the log-sum-exp.
        found: tuple[Tensor, Tensor] = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
            q, keys, values, attn_mask=mask
        )
        return found
    scores = q.float() @ keys.mT.float() / math.sqrt(q.shape[-1]) + mask
    return (scores.softmax(-1) @ values.float()).to(q.dtype), scores.logsumexp(-1)


def merged(a: tuple[Tensor, Tensor], b: tuple[Tensor, Tensor]) -> Tensor:
    """Merge two attention results over disjoint keys."""
    (of_a, sum_a), (of_b, sum_b) = a, b
    # Not a sigmoid: vectorised elementwise functions round the tail of a tensor differently.
    share_b = torch.stack([sum_a, sum_b], dim=-1).softmax(dim=-1)[..., 1:]
    return torch.lerp(of_a.float(), of_b.float(), share_b).to(of_a.dtype)


def padded_queries(q_NHQD: Tensor, block: int) -> Tensor:
    """Pad queries with zeros to whole blocks."""
    return pad(q_NHQD, (0, 0, 0, -q_NHQD.shape[2] % block))


def rounded(count: int, block: int) -> int:
    """Round up to a multiple of a block."""
    return -(-count // block) * block
