"""What an engine samples: exact token records, limits, stops and versions."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.conformance.conftest import EngineMaker
from tests.conformance.rollouts import converse, full_logprobs, opening, row_of

from arise.engines.local.weights import plain_model
from arise.types import Example, LossSpec, OptimSpec, SamplingParams, Segment, Tokens

Reference = Callable[[Path], Any]


def assert_recorded_equals_recomputed(model: Any, rows: list[Tokens]) -> None:
    with torch.no_grad():
        for row in rows:
            recomputed = full_logprobs(plain_model(model), row).numpy()
            np.testing.assert_allclose(row.logprob_U[row.generated_U], recomputed, atol=1e-4)


def test_logprobs_of_mixed_conversations_equal_recomputed_ones(
    make_engine: EngineMaker, reference: Reference, tmp_path: Path
) -> None:
    engine = make_engine()

    async def run() -> list[Tokens]:
        await engine.export_hf(tmp_path / "policy")
        shapes = [(1, "one"), (3, "read " * 40), (2, "two"), (4, "count"), (1, "list " * 200)]
        work = [converse(engine, f"c{i}", text, turns) for i, (turns, text) in enumerate(shapes)]
        return [row for row, _ in await asyncio.gather(*work)]

    rows = asyncio.run(run())
    assert_recorded_equals_recomputed(reference(tmp_path / "policy"), rows)


def test_logprobs_under_a_shared_prefix_equal_recomputed_ones(
    make_engine: EngineMaker, reference: Reference, tmp_path: Path
) -> None:
    engine = make_engine()

    async def run() -> list[Tokens]:
        await engine.export_hf(tmp_path / "policy")
        prompt = opening(engine, "read the files " * 20)
        segments = await engine.sample(prompt, SamplingParams(10), n=8)
        assert len({segment.ids for segment in segments}) > 1
        return [row_of([*prompt, *s.ids], [(len(prompt), s)]) for s in segments]

    rows = asyncio.run(run())
    assert_recorded_equals_recomputed(reference(tmp_path / "policy"), rows)


@pytest.mark.parametrize(("temperature", "top_p"), [(0.7, 1.0), (1.0, 0.6), (1.5, 0.8)])
def test_logprobs_are_those_of_the_distribution_sampled_from(
    make_engine: EngineMaker, reference: Reference, tmp_path: Path, temperature: float, top_p: float
) -> None:
    engine = make_engine()
    prompt = opening(engine, "count")

    async def run() -> list[Any]:
        await engine.export_hf(tmp_path / "policy")
        return await engine.sample(prompt, SamplingParams(1, temperature=temperature, top_p=top_p), n=16)

    segments = asyncio.run(run())
    with torch.no_grad():
        logits = plain_model(reference(tmp_path / "policy"))(torch.tensor([prompt])).logits[0, -1].double()
    probabilities = (logits / temperature).softmax(-1)
    order = probabilities.argsort(descending=True)
    mass_before = probabilities[order].cumsum(0) - probabilities[order]
    probabilities[order[mass_before >= top_p]] = 0.0
    expected = (probabilities / probabilities.sum()).log()
    for segment in segments:
        assert segment.logprobs[0] == pytest.approx(float(expected[segment.ids[0]]), abs=1e-4)


def test_a_full_window_ends_the_turn_and_a_longer_prompt_is_refused(make_engine: EngineMaker) -> None:
    engine = make_engine(context_length=64, end_ids=[319])
    prompt = [5] * 60

    async def run() -> None:
        (segment,) = await engine.sample(prompt, SamplingParams(50, conversation="c"))
        assert (segment.finish, len(segment.ids)) == ("context", 4)
        (segment,) = await engine.sample([*prompt, *segment.ids], SamplingParams(50, conversation="c"))
        assert (segment.finish, segment.ids) == ("context", ())
        with pytest.raises(ValueError, match="65 tokens, the model's window is 64"):
            await engine.sample([5] * 65, SamplingParams(1))

    asyncio.run(run())


def test_token_limit_end_token_and_stop_string_end_a_turn(make_engine: EngineMaker) -> None:
    engine = make_engine()
    prompt = opening(engine, "count")

    async def run() -> None:
        (free,) = await engine.sample(prompt, SamplingParams(30))
        assert free.finish in ("length", "stop")
        assert len(free.ids) == len(free.logprobs) == len(free.versions) <= 30
        piece = engine.tokenizer.decode(free.ids[3:5])
        (stopped,) = await engine.sample(prompt, SamplingParams(30, stop=(piece,)))
        assert stopped.finish == "stop"
        assert piece in stopped.text
        assert stopped.ids == free.ids[: len(stopped.ids)]
        assert len(stopped.ids) <= 5
        ending = make_engine(end_ids=[free.ids[2]])
        (ended,) = await ending.sample(prompt, SamplingParams(30))
        assert (ended.ids, ended.finish) == (free.ids[: free.ids.index(free.ids[2]) + 1], "stop")

    asyncio.run(run())


def test_bad_requests_are_named(make_engine: EngineMaker) -> None:
    engine = make_engine()
    for prompt, params in [([], SamplingParams(1)), ([10_000], SamplingParams(1)), ([1], SamplingParams(0))]:
        with pytest.raises(ValueError, match="sample: "):
            asyncio.run(engine.sample(prompt, params))


def test_a_running_turn_continues_under_the_published_version(
    make_engine: EngineMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Short bursts, so that a turn never finishes within the first one."""
    engine = make_engine(end_ids=[319])
    monkeypatch.setattr(engine._generator, "run_burst", partial(engine._generator.run_burst, 0.01))
    prompt = opening(engine, "count")

    async def run() -> None:
        turn = asyncio.create_task(engine.sample(prompt, SamplingParams(400 - len(prompt))))
        while engine._generator._active == []:
            await asyncio.sleep(0)
        await engine.publish()
        (segment,) = await turn
        assert set(segment.versions) == {0, 1}
        assert list(segment.versions) == sorted(segment.versions)
        (same,) = await engine.sample(prompt, SamplingParams(400 - len(prompt)))
        assert same.ids == segment.ids, "the weights did not change, so neither may the tokens"

    asyncio.run(run())


def test_what_was_cached_under_old_weights_is_not_used_under_new_ones(make_engine: EngineMaker) -> None:
    engine = make_engine(end_ids=[319])
    prompt = opening(engine, "count")

    def row(before: Sequence[int], segment: Segment) -> Tokens:
        made = np.arange(len(before) + len(segment.ids)) >= len(before)
        logprob = np.r_[np.zeros(len(before)), segment.logprobs]
        return Tokens(np.array([*before, *segment.ids]), made, logprob, np.where(made, 0, -1))

    async def run() -> None:
        (first,) = await engine.sample(prompt, SamplingParams(20, conversation="c"))
        old = await engine.score(row(prompt, first))
        await engine.train_step([Example((row(prompt, first),), 1.0)], LossSpec(), OptimSpec(learning_rate=0.05))
        await engine.publish()
        assert np.abs((await engine.score(row(prompt, first))).logprob_U - old.logprob_U).max() > 0.01
        longer = [*prompt, *first.ids]
        (second,) = await engine.sample(longer, SamplingParams(20, conversation="c"))
        found = row(longer, second)
        np.testing.assert_allclose(found.logprob_U, (await engine.score(found)).logprob_U, atol=1e-4)

    asyncio.run(run())


def test_a_cancelled_turn_leaves_and_the_others_go_on(make_engine: EngineMaker) -> None:
    engine = make_engine(end_ids=[319])
    prompt = opening(engine, "count")

    async def run() -> None:
        long = asyncio.create_task(engine.sample(prompt, SamplingParams(300, conversation="long")))
        short = asyncio.create_task(engine.sample(prompt, SamplingParams(5, conversation="short")))
        await asyncio.sleep(0.01)
        long.cancel()
        assert len((await short)[0].ids) == 5
        (after,) = await engine.sample(prompt, SamplingParams(5, conversation="after"))
        assert len(after.ids) == 5

    asyncio.run(run())
