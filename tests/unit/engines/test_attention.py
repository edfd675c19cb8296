"""Attention over saved keys: a query gets the same bits among any number of others and over any unused keys."""

import pytest
import torch

from arise.engines.local.attention import attend, invariance_limits, visible_keys


@pytest.mark.parametrize("head", [8, 16, 32, 48, 64, 80, 96, 128, 256])
@pytest.mark.parametrize("last", [0, 63, 199, 383, 384, 699])
def test_a_block_of_queries_agrees_with_more_queries_and_more_keys(head: int, last: int) -> None:
    torch.manual_seed(0)
    block, near = invariance_limits(head, torch.float32, torch.device("cpu"), torch.get_num_threads())
    kept, q = torch.randn(2, 4, 2048, head), torch.randn(2, 2, 512, head)
    alone = attend(q[:, :, :block], kept, visible_keys(torch.tensor([[last], [last]]), torch.float32, near))
    for queries in (2 * block, 3 * block, 64, 192, 512):
        among = attend(q[:, :, :queries], kept, visible_keys(torch.tensor([[last], [1500]]), torch.float32, near))
        for own, other in zip(alone, among, strict=True):
            assert torch.equal(own[0], other[0, :, :block]), (queries, last)
