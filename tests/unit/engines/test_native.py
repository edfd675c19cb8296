"""The native decoder: as transformers computes it, with the same bits for any number of threads, and no page lost."""

from typing import Any

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM

from arise.engines.local.kernel import kernel
from arise.engines.local.native_llama import NativeDecoder
from arise.engines.local.pages import ARENA, PAGE, Pages, SavedPages
from arise.engines.local.sampling import choose
from arise.types import SamplingParams

LIBRARY = kernel()
pytestmark = pytest.mark.skipif(LIBRARY is None, reason="no C compiler")
SHAPES = {
    "small": (LlamaConfig, LlamaForCausalLM, {}),
    "narrow": (LlamaConfig, LlamaForCausalLM, {"hidden_size": 30, "num_attention_heads": 5, "num_key_value_heads": 5}),
    "untied": (LlamaConfig, LlamaForCausalLM, {"tie_word_embeddings": False, "num_key_value_heads": 2}),
    "wide heads": (LlamaConfig, LlamaForCausalLM, {"head_dim": 48, "num_key_value_heads": 1}),
    "biases": (Qwen2Config, Qwen2ForCausalLM, {}),
    "normalised heads": (Qwen3Config, Qwen3ForCausalLM, {"head_dim": 16}),
    "shared by members": (LlamaConfig, LlamaForCausalLM, {"hidden_size": 512, "intermediate_size": 1536}),
}


def made(name: str, threads: int = 2) -> tuple[Any, NativeDecoder]:
    kind, architecture, changes = SHAPES[name]
    given = {"hidden_size": 64, "intermediate_size": 100, "num_attention_heads": 4, "num_key_value_heads": 4}
    torch.manual_seed(0)
    config = kind(vocab_size=77, num_hidden_layers=2, max_position_embeddings=400, **{**given, **changes})
    model = architecture(config).eval()
    for parameter in model.parameters():
        parameter.data.normal_(std=0.1)
    assert LIBRARY is not None
    decoder = NativeDecoder(LIBRARY, config, model.model.rotary_emb, 400, threads)
    decoder.load_weights(model.state_dict())
    return model, decoder


def last_logits(decoder: NativeDecoder, ids_RT: torch.Tensor) -> torch.Tensor:
    rows, length = ids_RT.shape
    for row in range(rows):
        decoder.start_row(row, None, 0)
    start = torch.zeros(rows, dtype=torch.long)
    return decoder.logits(decoder.forward(0, ids_RT, start, start + length - 1))


@pytest.mark.parametrize("name", SHAPES)
def test_it_agrees_with_transformers(name: str) -> None:
    model, decoder = made(name)
    ids = torch.randint(0, 77, (3, 70))
    with torch.inference_mode():
        expected = model(ids).logits[:, -1]
    torch.testing.assert_close(last_logits(decoder, ids), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["small", "shared by members"])
def test_any_number_of_threads_gives_the_same_bits(name: str) -> None:
    ids = torch.randint(0, 77, (5, 90))
    one, *others = (last_logits(made(name, threads)[1], ids) for threads in (1, 2, 3, 5))
    assert all(torch.equal(one, other) for other in others)


def test_it_samples_what_torch_samples() -> None:
    _, decoder = made("small")
    hidden = torch.randn(200, 64)
    uniforms = np.random.default_rng(0).random(200)
    params = [SamplingParams(1, temperature=0.5 + row % 3, top_p=0.7 if row % 5 == 0 else 1.0) for row in range(200)]
    ids, logprobs = decoder.choose(hidden, uniforms, params)
    expected_ids, expected = choose(decoder.logits(hidden), uniforms, params)
    assert sum(a != b for a, b in zip(ids, expected_ids, strict=True)) <= 1  # a draw may fall between two roundings
    same = [row for row in range(200) if ids[row] == expected_ids[row]]
    np.testing.assert_allclose([logprobs[row] for row in same], [expected[row] for row in same], atol=1e-5)
    alone = [
        decoder.choose(hidden[row : row + 1], uniforms[row : row + 1], params[row : row + 1]) for row in range(200)
    ]
    assert [(i, p) for (i,), (p,) in alone] == list(zip(ids, logprobs, strict=True))


def test_pages_are_freed_without_references() -> None:
    _, decoder = made("small")
    pages = decoder._pages
    last_logits(decoder, torch.randint(0, 77, (2, 40)))
    saved = decoder.save_row(0, 35)
    assert pages.in_use == 6
    decoder.share_row(2, saved)
    decoder.forward(2, torch.randint(0, 77, (1, 20)), torch.tensor([35]), torch.tensor([19]))
    assert pages.in_use == 6 + 2  # the page that both write is copied, another one is new
    for row in range(3):
        decoder.drop_row(row)
    assert pages.in_use == len(saved.pages) == 3
    del saved
    assert pages.in_use == 0


def test_what_a_page_held_before_reaches_no_sum() -> None:
    pages = Pages(1, 16)
    page = pages.take()
    pages._arenas[0][:] = np.nan
    pages.release([page])
    assert pages.take() == page
    assert not np.isnan(pages._arenas[0][:, page % ARENA]).any()


def test_a_copy_is_made_only_for_a_page_with_other_users() -> None:
    pages = Pages(2, 16)
    page = pages.take()
    assert pages.own(page) == page
    pages._arenas[0][:, page] = 3.0
    saved = SavedPages(pages, (page,), PAGE)
    copy = pages.own(page)
    assert copy != page
    assert (pages._arenas[0][:, copy] == 3.0).all()
    del saved
    pages.release([copy])
    pages.shrink()
    assert (pages.in_use, len(pages.addresses)) == (0, 0)
