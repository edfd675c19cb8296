"""Batch-invariant matrix products.

A BLAS chooses its summation order by the number of rows. Here products run in blocks whose row counts were measured to
agree bit for bit with blocks of ROW_BLOCK, so a conversation samples the same tokens in any batch. Exact resume depends
on it. Weights are stored transposed: nearly all row counts then agree, and small batches cost up to half as much.
"""

from collections.abc import Callable

import torch
from torch import Tensor

ROW_BLOCK = 8
TOGETHER = 32_768
"""How many elements torch computes on one thread; beyond, it splits a tensor, even in the middle of a row."""
_CANDIDATES = (512, 256, 192, 128, 96, 64, 48, 32, 24, 16)


class RowInvariantLinear:
    """y = x W^T + b for x of n * ROW_BLOCK rows, each row bit-equal regardless of the other rows."""

    def __init__(self, weight: Tensor, bias: Tensor | None, blocks: tuple[int, ...]) -> None:
        self._transposed, self._bias, self._blocks = weight.t().contiguous(), bias, blocks
        self._plans: dict[int, list[int]] = {}

    def __call__(self, x: Tensor) -> Tensor:
        plan = self._plans.get(len(x)) or self._plan(len(x))
        if len(plan) == 1:
            return _product(x, self._transposed, self._bias)
        return torch.cat([_product(part, self._transposed, self._bias) for part in x.split(plan)])

    def _plan(self, rows: int) -> list[int]:
        assert rows % ROW_BLOCK == 0, f"{rows} rows are not a multiple of {ROW_BLOCK}"
        plan, left = [], rows
        for block in self._blocks:
            plan += [block] * (left // block)
            left %= block
        self._plans[rows] = plan
        return plan


class LinearFactory:
    """Create row-invariant products; equal shapes share one measurement."""

    def __init__(self) -> None:
        self._blocks: dict[tuple[object, ...], tuple[int, ...]] = {}

    def make(self, weight: Tensor, bias: Tensor | None = None) -> RowInvariantLinear:
        """Wrap one weight matrix."""
        shape = (*weight.shape, weight.dtype, weight.device, bias is None)
        if shape not in self._blocks:
            self._blocks[shape] = _agreeing_blocks(weight.t().contiguous(), bias)
        return RowInvariantLinear(weight, bias, self._blocks[shape])


def by_rows(operation: Callable[..., Tensor], *inputs: Tensor) -> Tensor:
    """Apply an elementwise operation with the same bits per row for any number of rows.

    torch splits large tensors over threads and rounds the tail of each part differently; halves end with a row.
    """
    if torch.get_num_threads() <= 2 or inputs[0].numel() <= TOGETHER:
        return operation(*inputs)
    rows = max(1, TOGETHER * len(inputs[0]) // inputs[0].numel())
    return torch.cat([operation(*parts) for parts in zip(*(each.split(rows) for each in inputs), strict=True)])


def _product(x: Tensor, transposed: Tensor, bias: Tensor | None) -> Tensor:
    return x @ transposed if bias is None else torch.addmm(bias, x, transposed)


def _agreeing_blocks(transposed: Tensor, bias: Tensor | None) -> tuple[int, ...]:
    """Return the row counts, largest first, that agree with ROW_BLOCK rows at every position."""
    generator = torch.Generator().manual_seed(0)
    rows = 1536 if transposed.numel() < 1 << 24 else 96  # a vocabulary projection only ever sees last tokens
    x = torch.randn(rows, len(transposed), generator=generator).to(transposed)
    shuffle = torch.randperm(rows, generator=generator).to(transposed.device)

    def in_blocks(block: int, x: Tensor) -> Tensor:
        return torch.cat([_product(part, transposed, bias) for part in x.split(block)])

    expected = in_blocks(ROW_BLOCK, x)

    def agrees(block: int) -> bool:
        straight, shuffled = in_blocks(block, x), in_blocks(block, x[shuffle])
        return torch.equal(straight, expected) and torch.equal(shuffled, expected[shuffle])

    return (*(block for block in _CANDIDATES if rows % block == 0 and agrees(block)), ROW_BLOCK)
