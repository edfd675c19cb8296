"""Updates on other processes: the paper's loss on one and two of them, ratios of 1 after every update, recovery."""

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from arise.engines.vllm.server import Request, Server
from arise.types import Example, LossSpec, OptimSpec, SamplingParams, StepStats
from tests.conformance.rollouts import full_logprobs, moved, opening, rollouts
from tests.conformance.test_training import FREE, printed_loss
from tests.engines.bench import Bench, differences, relative

OPTIM = OptimSpec(learning_rate=3e-3, warmup_updates=4)
UPDATES = 22
TOKENS = 16


@pytest.mark.parametrize("processes", [1, 2])
def test_the_gradient_is_that_of_the_printed_loss(bench: Bench, library: str, processes: int) -> None:
    engine = bench.engine(library, processes=processes, token_budget=200)
    spec = LossSpec()

    async def run() -> tuple[list[Example], StepStats]:
        batch = [moved(example, 1.5) for example in await rollouts(engine, count=7)]
        return batch, await engine.train_step(batch, spec, FREE)

    batch, stats = asyncio.run(run())
    model = AutoModelForCausalLM.from_pretrained(bench.model(0, 4.0)).eval()
    loss = printed_loss(model, batch, spec)
    loss.backward()
    norm = torch.stack([p.grad.norm() for p in model.parameters() if p.grad is not None]).norm().item()
    print(f"{library}, {processes} processes: gradient norm off by {relative(stats.grad_norm, norm):.1e}")
    assert 0 < stats.kept_tokens < stats.generated_tokens
    assert stats.dual_clipped_tokens > 0
    assert relative(stats.grad_norm, norm) < 1e-5
    assert stats.loss == pytest.approx(loss.item(), rel=1e-5, abs=1e-7)


def test_a_state_saved_before_the_first_update_does_not_change_it(bench: Bench, library: str, tmp_path: Path) -> None:
    engine = bench.engine(library)
    optim = OptimSpec(learning_rate=3e-3, warmup_updates=0)

    async def run() -> list[Example]:
        await engine.save_state(tmp_path / "state")
        batch = await rollouts(engine, count=3)
        await engine.train_step(batch, LossSpec(), optim)
        await engine.export_hf(tmp_path / "updated")
        return batch

    batch = asyncio.run(run())
    model = AutoModelForCausalLM.from_pretrained(bench.model(0, 4.0)).eval()
    start = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    printed_loss(model, batch, LossSpec()).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), optim.max_grad_norm)
    rate, decay = optim.learning_rate, optim.weight_decay
    torch.optim.AdamW(model.parameters(), lr=rate, betas=optim.betas, weight_decay=decay).step()
    updated = load_file(tmp_path / "updated" / "model.safetensors")
    # AdamW moves every weight by about the learning rate; a gradient near zero may round to either sign.
    moved_by = torch.cat([(updated[name] - old).flatten() for name, old in start.items()])
    expected = torch.cat([(new.detach() - start[name]).flatten() for name, new in model.named_parameters()])
    print(
        f"{library}: the first update after a save has {float(moved_by.norm() / expected.norm()):.6f} of AdamW's size"
    )
    assert float((moved_by - expected).norm() / expected.norm()) < 0.01


def test_the_ratio_is_one_right_after_each_of_many_updates(bench: Bench, library: str) -> None:
    engine = bench.engine(library, scale=1.0)

    async def run() -> list[float]:
        worst = []
        for number in range(UPDATES):
            batch = await rollouts(engine, count=3, seed=number)
            assert {int(v) for e in batch for r in e.rows for v in r.version_U[r.generated_U]} == {number}
            stats = await engine.train_step(batch, LossSpec(), OPTIM)
            assert stats.kept_tokens == stats.generated_tokens
            worst.append(stats.max_abs_log_ratio)
            await engine.publish()
        return worst

    worst = asyncio.run(run())
    print(f"{library}: largest |log ratio| of {UPDATES} updates {max(worst):.1e}")
    assert max(worst) < 1e-5


def test_a_prefix_cached_under_old_weights_is_wrong_and_the_salt_avoids_it(bench: Bench, library: str) -> None:
    engine = bench.engine(library, context_length=2048, scale=1.0)
    prompt = opening(engine, "count the words " * 100)
    assert len(prompt) > 300, "vLLM caches whole blocks, of 128 tokens on a CPU"

    async def off_by(salt: str) -> float:
        """How far log-probs are from those of the current weights when the cache has this salt, at most."""
        model = AutoModelForCausalLM.from_pretrained(engine._weights).eval()
        with torch.no_grad():
            logits = model(torch.tensor([prompt])).logits[0, -1].log_softmax(-1)
        server, found = Server(bench.address, engine._fleet._here().client), list[float]()
        for seed in range(TOKENS):  # one token may happen to be as likely as before
            request = Request(prompt, 1, 1.0, 1.0, seed, engine._fleet._label(engine.version), [1])
            answer = await server._call("POST", "/inference/v1/generate", request.body() | {"cache_salt": salt})
            (choice,) = answer["choices"]
            found.append(float(choice["logprobs"]["content"][0]["logprob"]) - float(logits[choice["token_ids"][0]]))
        return max(map(abs, found))

    async def run() -> tuple[float, float, float]:
        before = await off_by("fixed")
        await engine.train_step(await rollouts(engine), LossSpec(), OptimSpec(learning_rate=0.02, warmup_updates=0))
        await engine.publish()
        return before, await off_by("fixed"), await off_by(engine._fleet._label(engine.version))

    before, stale, fresh = asyncio.run(run())
    print(f"{library}: off by {before:.1e} at first, {stale:.1e} without the salt, {fresh:.1e} with it")
    assert before < 1e-3
    assert stale > 0.1, "the server forgot its cache by itself: this test can no longer show what the salt is for"
    assert fresh < 1e-3


async def updates(engine: Any, count: int) -> list[StepStats]:
    found = []
    for number in range(count):
        found.append(await engine.train_step(await rollouts(engine, count=3, seed=number), LossSpec(), OPTIM))
        await engine.publish()
    return found


@pytest.mark.parametrize("every", [1, 3])
def test_a_killed_trainer_resumes_where_it_was(bench: Bench, library: str, tmp_path: Path, every: int) -> None:
    straight, broken = bench.engine(library), bench.engine(library)
    broken._recover_every = every

    async def run() -> None:
        expected = await updates(straight, 4)
        assert [s.grad_norm for s in await updates(broken, 2)] == [s.grad_norm for s in expected[:2]]
        assert broken._group is not None
        os.kill(broken._group.pids[0], signal.SIGKILL)
        for number in (2, 3):
            batch = await rollouts(broken, count=3, seed=number)
            found = await broken.train_step(batch, LossSpec(), OPTIM)
            assert found.grad_norm == pytest.approx(expected[number].grad_norm, rel=1e-6)
            await broken.publish()
        assert broken.recoveries == 1
        assert broken.version == straight.version == 4
        for name, engine in (("straight", straight), ("broken", broken)):
            await engine.export_hf(tmp_path / name)

    asyncio.run(run())
    one, other = (load_file(tmp_path / name / "model.safetensors") for name in ("straight", "broken"))
    assert differences(one, other) < 1e-6


def test_unpublished_weights_and_states_of_others_are_refused(bench: Bench, library: str, tmp_path: Path) -> None:
    engine = bench.engine(library)

    async def run() -> None:
        await engine.train_step(await rollouts(engine), LossSpec(), OPTIM)
        with pytest.raises(ValueError, match="not published"):
            await engine.save_state(tmp_path / "state")
        await engine.publish()
        await engine.save_state(tmp_path / "state")
        engine._trainer = type(engine._trainer)(**{**vars(engine._trainer), "library": "other"})
        with pytest.raises(ValueError, match="another model or trainer"):
            await engine.load_state(str(tmp_path / "state"))

    asyncio.run(run())


def test_the_exported_folder_reloads_and_scores_the_same(bench: Bench, library: str, tmp_path: Path) -> None:
    engine = bench.engine(library)

    async def run() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        await updates(engine, 2)
        (example, *_) = await rollouts(engine, count=1)
        scored = await engine.score(example.rows[0])
        await engine.export_hf(tmp_path / "policy")
        model = AutoModelForCausalLM.from_pretrained(tmp_path / "policy").eval()
        with torch.no_grad():
            return scored.logprob_U[scored.generated_U], full_logprobs(model, scored).numpy()

    scored, reloaded = asyncio.run(run())
    np.testing.assert_allclose(scored, reloaded, atol=1e-4)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "policy")
    assert tokenizer.chat_template == engine.tokenizer.chat_template


def test_a_running_turn_continues_under_the_published_version(bench: Bench, library: str) -> None:
    engine = bench.engine(library, end_ids=[319], context_length=2048)
    prompt = opening(engine, "count")

    async def run() -> None:
        await engine.sample(prompt, SamplingParams(16))  # the server is warm before it is timed
        begun = time.perf_counter()
        await engine.sample(prompt, SamplingParams(300))
        fifth = time.perf_counter() - begun
        turn = asyncio.create_task(engine.sample(prompt, SamplingParams(1500)))
        await asyncio.sleep(fifth)
        await engine.publish()
        (segment,) = await turn
        assert set(segment.versions) == {0, 1}
        assert list(segment.versions) == sorted(segment.versions)
        assert len(segment.ids) == 1500

    asyncio.run(run())
