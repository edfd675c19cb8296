"""A conversation's ids and log-probs depend on policy, seed and messages only: bit by bit, in any company."""

import asyncio
import hashlib
import os
import random
import subprocess
import sys

import numpy as np
import pytest
from tests.conformance.conftest import EngineMaker, tiny_model
from tests.conformance.rollouts import converse

from arise.engines.local import LocalEngine
from arise.engines.local.small_model import small_model
from arise.types import SamplingParams, Segment

TEXTS = ["count", "read " * 30, "list " * 70, "write the answer", "", "0 1 2 3 " * 30]


async def company(make_engine: EngineMaker, size: int, order: int, **options: int) -> dict[str, list[Segment]]:
    """Conversations n0 ... n(size-1) on a fresh engine, starting in an order and at moments given by `order`."""
    engine, shuffle = make_engine(**options), random.Random(order)

    async def late(number: int) -> list[Segment]:
        await asyncio.sleep(shuffle.random() * 0.05 if order else 0.0)
        _, segments = await converse(
            engine, f"n{number}", TEXTS[number % len(TEXTS)], turns=3, max_tokens=10 + number % 7
        )
        return segments

    numbers = shuffle.sample(range(size), size)
    return dict(zip((f"n{n}" for n in numbers), await asyncio.gather(*map(late, numbers)), strict=True))


def test_alone_among_7_and_among_63_in_any_order(make_engine: EngineMaker, kind: str) -> None:
    alone = asyncio.run(company(make_engine, 1, order=0))["n0"]
    for size, order in [(8, 0), (8, 1), (64, 2), (64, 3)] if kind != "generic" else [(8, 1), (8, 2)]:
        others = asyncio.run(company(make_engine, size, order))
        assert others["n0"] == alone, f"among {size - 1} others, order {order}"


def test_every_conversation_is_equal_in_two_companies(make_engine: EngineMaker) -> None:
    first = asyncio.run(company(make_engine, 12, order=4))
    second = asyncio.run(company(make_engine, 12, order=5))
    assert first == second


@pytest.mark.parametrize("kind", ["fast"], indirect=True)
def test_neither_evicted_caches_nor_few_rows_change_a_token(make_engine: EngineMaker) -> None:
    roomy = asyncio.run(company(make_engine, 12, order=6))
    cramped = asyncio.run(company(make_engine, 12, order=7, cache_bytes=100_000, batch_rows=5))
    assert cramped == roomy


@pytest.mark.parametrize("threads", [2, 3, 4])
def test_long_prompts_sample_the_same_bits_with_any_number_of_threads(threads: int) -> None:
    random = np.random.default_rng(0)
    prompts = [random.integers(6, 262, size).tolist() for size in (180, 240, 300, 150, 220, 260, 190, 210)]

    def sampled(numbers: range) -> list[Segment]:
        loaded = small_model(["a b c"], vocabulary=270)
        engine = LocalEngine(loaded.model, loaded.tokenizer, threads=threads, end_ids=[1 << 30])

        async def run() -> list[list[Segment]]:
            return await asyncio.gather(
                *(engine.sample(prompts[n], SamplingParams(4, conversation=f"c{n}")) for n in numbers)
            )

        try:
            return [segment for (segment,) in asyncio.run(run())]
        finally:
            engine.close()

    together = sampled(range(8))
    for number in (0, 4):
        assert sampled(range(number, number + 1)) == [together[number]]


def sampled_digest() -> str:
    """The digest of five conversations on a new engine."""
    loaded = tiny_model()
    engine = LocalEngine(loaded.model, loaded.tokenizer, threads=2)

    async def run() -> list[list[Segment]]:
        both = await asyncio.gather(*(converse(engine, f"n{i}", "count " * i) for i in range(5)))
        return [segments for _, segments in both]

    try:
        return hashlib.sha256(repr(asyncio.run(run())).encode()).hexdigest()
    finally:
        engine.close()


def test_two_processes_sample_the_same_bits() -> None:
    code = "from tests.conformance.test_invariance import sampled_digest; print(sampled_digest())"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    other = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert other.stdout.strip() == sampled_digest()
