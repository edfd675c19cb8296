"""A prompt that several rows share is computed once, and nothing else changes."""

import numpy as np
import pytest
import torch

from arise.engines.checks import TrainingRow
from arise.engines.local import llama_training
from arise.engines.local.packing import pack
from arise.engines.local.small_model import small_model
from arise.engines.local.training import any_logits_at, micro_batches, token_logprobs
from arise.types import Tokens

CPU = torch.device("cpu")


def row(prompt: list[int], said: list[int], heard: int = 0) -> Tokens:
    ids = np.array([*prompt, *said, *[7] * heard, *said])
    generated = np.array([False] * len(prompt) + [True] * len(said) + [False] * heard + [True] * len(said))
    return Tokens(ids, generated, np.zeros(len(ids)), generated - 1)


PROMPT, OTHER = list(range(10, 30)), list(range(30, 37))
ROWS = [row(PROMPT, [5, 6], 3), row(OTHER, [8]), row(PROMPT, [5, 9, 9]), row(PROMPT, [6]), row([11], [12, 13])]


def test_shared_prompts_are_laid_out_once() -> None:
    packed = pack(ROWS, CPU)
    assert len(packed.ids_N) == sum(map(len, ROWS)) - 2 * (len(PROMPT) - 1)
    for spread_T, tokens in zip(packed.spread_BT, ROWS, strict=True):
        own = spread_T[: len(tokens)]
        assert packed.ids_N[own].tolist() == tokens.ids_U.tolist()
        assert packed.position_N[own].tolist() == list(range(len(tokens)))
    assert packed.spread_BT.ravel()[packed.home_N].tolist() == list(range(len(packed.ids_N)))


def test_attention_computes_a_shared_prompt_once_and_rows_that_share_nothing_as_one_block() -> None:
    packed = pack(ROWS, CPU)
    results = torch.cat([block.query_BQ.flatten() for block in packed.blocks])
    assert results[packed.place_N].tolist() == list(range(len(packed.ids_N)))
    shapes = [(tuple(block.query_BQ.shape), block.key_BK.shape[1]) for block in packed.blocks]
    assert shapes == [((2, 9), 9), ((3, 8), 27), ((1, 19), 19)]
    assert packed.shared == 1
    apart = pack([row(PROMPT, [5]), row(OTHER, [8])], CPU)
    assert len(apart.blocks) == 1
    assert torch.equal(apart.blocks[0].query_BQ, apart.spread_BT)
    assert torch.equal(apart.place_N, apart.home_N)


def test_values_and_gradients_are_those_of_whole_rows() -> None:
    def both(logits_at: object, groups: list[list[Tokens]]) -> tuple[list[float], torch.Tensor]:
        model = small_model(["a b c d"], hidden=32, layers=2).model
        logprobs = torch.cat([token_logprobs(logits_at, model, rows, CPU) for rows in groups])  # type: ignore[arg-type]
        (logprobs * torch.arange(1, len(logprobs) + 1)).sum().backward()
        return logprobs.tolist(), torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])

    small = [Tokens(t.ids_U % 8, t.generated_U, t.logprob_U, t.version_U) for t in ROWS]
    expected, gradient = both(any_logits_at, [[tokens] for tokens in small])
    found, found_gradient = both(llama_training.logits_at, [small])
    assert found == pytest.approx(expected, abs=1e-5)
    assert torch.allclose(found_gradient, gradient, atol=1e-4)


def test_micro_batches_keep_a_group_together_within_the_budget() -> None:
    rows = [TrainingRow(tokens, 1.0) for tokens in [*ROWS, *ROWS]]
    for budget in (1, 60, 100, 10_000):
        batches = micro_batches(rows, budget)
        assert sorted(id(r) for batch in batches for r in batch) == sorted(map(id, rows))
        for batch in batches:
            assert len(batch) == 1 or max(len(r.tokens) for r in batch) * len(batch) <= budget
    together = micro_batches(rows, 6 * 29)
    assert {r.prompt for r in together[0]} == {rows[0].prompt}
