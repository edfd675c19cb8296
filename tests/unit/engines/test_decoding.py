"""The parts of the sampler that need no model: random streams, token choice, stop strings, saved prefixes."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from arise.engines.local.cache import Prefix, PrefixStore
from arise.engines.local.sampling import choose, distribution, stream_key, uniforms
from arise.engines.local.small_model import small_tokenizer
from arise.engines.stopping import StopRules
from arise.types import SamplingParams

PLAIN = SamplingParams(1)


def test_uniforms_are_uniform_and_streams_are_independent() -> None:
    keys = [stream_key(0, name, 0) for name in ("a", "b")]
    a, b = (uniforms([key] * 20_000, range(20_000)) for key in keys)
    for numbers in (a, b):
        assert 0.0 <= numbers.min() <= numbers.max() < 1.0
        assert np.abs(np.histogram(numbers, 20)[0] - 1000).max() < 200
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.03
    assert abs(np.corrcoef(a[1:], a[:-1])[0, 1]) < 0.03


def test_streams_differ_by_seed_conversation_and_index() -> None:
    assert len({stream_key(s, c, i) for s in (0, 1) for c in ("", "1", "a") for i in (0, 1)}) == 12


def test_tokens_are_drawn_as_often_as_they_are_likely() -> None:
    logits = torch.tensor([[0.0, 1.0, -1.0, -torch.inf, 2.0]]).repeat(50_000, 1)
    ids, logprobs = choose(logits, uniforms([7] * 50_000, range(50_000)), [PLAIN] * 50_000)
    expected = logits[0].softmax(-1).numpy()
    np.testing.assert_allclose(np.bincount(ids, minlength=5) / 50_000, expected, atol=0.01)
    assert logprobs[0] == pytest.approx(float(logits[0].log_softmax(-1)[ids[0]]))


def test_rows_of_a_batch_may_be_sampled_differently() -> None:
    logits = torch.tensor([[0.0, 1.0, 2.0, 3.0]]).repeat(3, 1)
    params = [PLAIN, SamplingParams(1, temperature=0.5), SamplingParams(1, top_p=0.5)]
    rows = distribution(logits, params)
    assert torch.equal(rows[0], logits[0].log_softmax(-1))
    assert torch.allclose(rows[1], (logits[0] * 2).log_softmax(-1))
    assert rows[2].exp().tolist() == [0.0, 0.0, 0.0, 1.0]


TOKENIZER = small_tokenizer(["</call> done </call> of the call"], vocabulary=290)
RULES = StopRules(TOKENIZER, frozenset([TOKENIZER.eos_token_id]))


@given(st.text(max_size=30), st.sampled_from(["</call>", "\n\n", "ü", "数"]))
def test_a_stop_string_is_found_at_the_token_that_completes_it(text: str, stop: str) -> None:
    ids = TOKENIZER(text + stop + text, add_special_tokens=False)["input_ids"]
    found = [RULES.ends_with_stop(ids[: n + 1], (stop,)) for n in range(len(ids))]
    first = next(n for n in range(len(ids)) if stop in RULES.text(ids[: n + 1]))
    assert found.index(True) == first


@given(st.text())
def test_any_text_survives_the_small_tokenizer(text: str) -> None:
    assert TOKENIZER.decode(TOKENIZER(text, add_special_tokens=False)["input_ids"]) == text


def prefix(*ids: int, nbytes: int = 10) -> Prefix:
    return Prefix(np.array(ids), f"saved {ids}", nbytes)


def test_a_conversation_is_found_only_where_it_is_continued() -> None:
    store = PrefixStore(1000)
    store.keep("a", kept := prefix(1, 2, 3, 4))
    assert store.continued("a", np.array([1, 2, 3, 4, 5])) is kept
    for other in ([1, 2, 3, 4], [1, 2, 9, 4, 5], [1, 2]):
        assert store.continued("a", np.array(other)) is None
    assert store.continued("b", np.array([1, 2, 3, 4, 5])) is None
    assert store.continued("", np.array([1, 2, 3, 4, 5])) is None


def test_the_prompt_that_covers_most_is_taken_over() -> None:
    store = PrefixStore(1000)
    store.keep("a", prefix(1, 2, 3, 4))
    store.keep(b"p", short := prefix(1, 2))
    store.keep(b"q", long := prefix(1, 2, 3, 9))
    assert store.longest(np.array([1, 2, 3, 4, 5])) == (long, 3)
    assert store.longest(np.array([1, 2])) == (short, 2)
    assert store.longest(np.array([7, 8])) == (None, 0)


def test_the_least_recently_used_prefix_makes_room() -> None:
    store = PrefixStore(30)
    for name in "abc":
        store.keep(name, prefix(1, ord(name)))
    store.find("a")
    store.keep("d", prefix(1, 4))
    assert [store.find(name) is not None for name in "abcd"] == [True, False, True, True]
