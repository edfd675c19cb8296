"""The fast decoder: what a row gets depends on its own tokens only."""

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from arise.engines.llama import LlamaDecoder

LENGTHS = (30, 240, 330, 383, 384, 385, 500, 700, 1100)


@pytest.mark.parametrize("heads", [(8, 8), (4, 2)])
def test_long_rows_get_the_same_bits_in_any_company_and_chunks(heads: tuple[int, int]) -> None:
    """Attention over more than a few hundred keys sums in parts: where they end must not depend on other rows."""
    torch.manual_seed(0)
    config = LlamaConfig(vocab_size=50, hidden_size=64, intermediate_size=128, num_hidden_layers=2)
    config.num_attention_heads, config.num_key_value_heads = heads
    config.head_dim = 64 // heads[0]
    model = LlamaForCausalLM(config).eval()
    decoder = LlamaDecoder(config, model.model.rotary_emb, 1200, torch.float32, torch.device("cpu"))
    decoder.load_weights(model.state_dict())
    texts = [torch.randint(0, 50, (length + 8,)) for length in LENGTHS]

    def last_states(chosen: list[int], chunk: int) -> list[list[torch.Tensor]]:
        """Prefill the chosen rows by chunks, then append eight tokens to all of them together."""
        for row, number in enumerate(chosen):
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
