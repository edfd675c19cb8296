"""The fast decoder: what a row gets depends on its own tokens only."""

from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from arise.engines.local.decoding import Decoder
from arise.engines.local.kernel import kernel
from arise.engines.local.llama import LlamaDecoder
from arise.engines.local.native_llama import NativeDecoder

LIBRARY = kernel()
DECODERS = ["torch", *(["native"] if LIBRARY else [])]


def small_decoder(kind: str, heads: tuple[int, int], threads: int = 2) -> Decoder:
    """A random model of two layers with some query and key heads."""
    config = LlamaConfig(vocab_size=50, hidden_size=64, intermediate_size=128, num_hidden_layers=2)
    config.num_attention_heads, config.num_key_value_heads = heads
    config.head_dim = 64 // heads[0]
    model = LlamaForCausalLM(config).eval()
    rotary = model.model.rotary_emb
    decoder: Decoder = LlamaDecoder(config, rotary, 1200, torch.float32, torch.device("cpu"))
    if kind == "native":
        assert LIBRARY is not None
        decoder = NativeDecoder(LIBRARY, config, rotary, 1200, threads)
    decoder.load_weights(model.state_dict())
    return decoder


LENGTHS = (30, 240, 330, 383, 384, 385, 500, 700, 1100)


@pytest.mark.parametrize("kind", DECODERS)
@pytest.mark.parametrize("heads", [(8, 8), (4, 2)])
def test_long_rows_get_the_same_bits_in_any_company_and_chunks(kind: str, heads: tuple[int, int]) -> None:
    """Attention over more than a few hundred keys sums in parts: where they end must not depend on other rows."""
    torch.manual_seed(0)
    decoder = small_decoder(kind, heads)
    texts = [torch.randint(0, 50, (length + 8,)) for length in LENGTHS]

    def last_states(chosen: list[int], chunk: int) -> list[list[torch.Tensor]]:
        """Prefill the chosen rows by chunks, then append eight tokens to all of them together."""
        for row, number in enumerate(chosen):
            decoder.start_row(row, None, 0)
            for begin in range(0, LENGTHS[number], chunk):
                part = texts[number][begin : min(begin + chunk, LENGTHS[number])][None]
                decoder.forward(row, part, torch.tensor([begin]), torch.tensor([part.shape[1] - 1]))
        states: list[list[torch.Tensor]] = [[] for _ in chosen]
        for after in range(8):
            ids = torch.stack([texts[number][LENGTHS[number] + after][None] for number in chosen])
            start = torch.tensor([LENGTHS[number] + after for number in chosen])
            hidden = decoder.forward(0, ids, start, torch.zeros_like(start))
            for own, state in zip(states, hidden, strict=True):
                own.append(state)
        return states

    with torch.inference_mode():
        together = last_states(list(range(len(LENGTHS))), chunk=200)
        for number in range(len(LENGTHS)):
            for company, chunk in (([number], 64), ([number], 256), ([0, 2, number], 130)):
                found = last_states(company, chunk)[company.index(number)]
                assert all(map(torch.equal, found, together[number])), (LENGTHS[number], company, chunk)


@pytest.mark.parametrize("kind", DECODERS)
@pytest.mark.parametrize("heads", [(8, 8), (4, 2)])
def test_rows_that_share_a_prefix_get_the_bits_they_get_alone(kind: str, heads: tuple[int, int]) -> None:
    torch.manual_seed(0)
    decoder = small_decoder(kind, heads)
    prefixes = [torch.randint(0, 50, (length,)) for length in (5, 100, 383, 384, 385, 700)]
    shared_by = [0, 1, 1, 1, 2, 3, 3, 4, 5, 5, None, None]
    texts = [torch.randint(0, 50, (40,)) for _ in shared_by]

    def states(chosen: list[int], share: bool) -> list[torch.Tensor]:
        """A first chunk of 24 tokens, then one token after the other, for the chosen rows together."""
        start = torch.tensor([0 if (p := shared_by[n]) is None else len(prefixes[p]) for n in chosen])
        for row, number in enumerate(chosen):
            decoder.start_row(row, None, 0)
            place = shared_by[number]
            if place is not None:
                for begin in range(0, len(prefixes[place]), 200):
                    part = prefixes[place][begin : begin + 200][None]
                    decoder.forward(row, part, torch.tensor([begin]), torch.tensor([part.shape[1] - 1]))
                if share:
                    known = saved.setdefault(place, decoder.save_row(row, len(prefixes[place])))
                    decoder.share_row(row, known)
        found = []
        for begin, end in [(0, 24), *((n, n + 1) for n in range(24, 40))]:
            ids = torch.stack([texts[number][begin:end] for number in chosen])
            found.append(decoder.forward(0, ids, start + begin, torch.full_like(start, end - begin - 1)))
        return list(torch.stack(found, dim=1))

    saved: dict[int, Any] = {}
    with torch.inference_mode():
        together = states(list(range(len(shared_by))), share=True)
        for number, state in enumerate(together):
            assert torch.equal(states([number], share=True)[0], state), number
            torch.testing.assert_close(states([number], share=False)[0], state, rtol=1e-4, atol=1e-5)
