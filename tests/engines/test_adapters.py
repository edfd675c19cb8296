"""Adapters on other processes: the trainer updates them, the servers load them onto the base model that they hold."""

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from arise.types import Example, LossSpec, OptimSpec, StepStats
from tests.conformance.rollouts import full_logprobs, moved, rollouts
from tests.conformance.test_training import FREE, printed_loss
from tests.engines.bench import Bench, differences, relative

RANK = 4
OPTIM = OptimSpec(learning_rate=1e-2, warmup_updates=2)
UPDATES = 20


def norm_of(loss: torch.Tensor, model: torch.nn.Module) -> float:
    loss.backward()
    return float(torch.stack([p.grad.norm() for p in model.parameters() if p.grad is not None]).norm())


@pytest.mark.parametrize("processes", [1, 2])
def test_the_gradient_of_the_adapters_is_that_of_the_printed_loss(
    bench: Bench, library: str, tmp_path: Path, processes: int
) -> None:
    engine = bench.engine(library, scale=1.0, lora_rank=RANK, processes=processes, token_budget=200)
    spec = LossSpec()

    async def run() -> tuple[list[Example], StepStats]:
        for number in range(2):  # both factors of an adapter have a gradient only after its first update
            await engine.train_step(await rollouts(engine, count=3, seed=number), spec, OPTIM)
            await engine.publish()
        batch = [moved(example, 1.5) for example in await rollouts(engine, count=7)]
        await engine.export_adapter(tmp_path / "adapter")
        return batch, await engine.train_step(batch, spec, FREE)

    batch, stats = asyncio.run(run())
    base = AutoModelForCausalLM.from_pretrained(bench.model(0, 1.0)).eval()
    model = PeftModel.from_pretrained(base, tmp_path / "adapter", is_trainable=True).eval()
    loss = printed_loss(model, batch, spec)
    norm = norm_of(loss, model)
    print(f"{library}, adapters, {processes} processes: gradient norm off by {relative(stats.grad_norm, norm):.1e}")
    assert 0 < stats.kept_tokens < stats.generated_tokens
    assert relative(stats.grad_norm, norm) < 1e-5
    assert stats.loss == pytest.approx(loss.item(), rel=1e-5, abs=1e-7)


def test_servers_sample_the_adapter_of_every_update(bench: Bench, library: str, tmp_path: Path) -> None:
    engine = bench.engine(library, scale=1.0, lora_rank=RANK)
    assert engine.capabilities().lora
    assert not engine.capabilities().full_parameter

    async def run() -> list[float]:
        worst = []
        for number in range(UPDATES):
            batch = await rollouts(engine, count=3, seed=number)
            assert {int(v) for e in batch for r in e.rows for v in r.version_U[r.generated_U]} == {number}
            worst.append((await engine.train_step(batch, LossSpec(), OPTIM)).max_abs_log_ratio)
            await engine.publish()
        published = Path(engine._weights)
        assert {"adapter_config.json", "adapter_model.safetensors"} <= {file.name for file in published.iterdir()}
        assert not (published / "model.safetensors").exists(), "servers get the adapter, not all weights"
        (example, *_) = await rollouts(engine, count=1)
        scored = await engine.score(example.rows[0])
        await engine.export_hf(tmp_path / "merged")
        model = AutoModelForCausalLM.from_pretrained(tmp_path / "merged").eval()
        with torch.no_grad():
            merged = full_logprobs(model, scored).numpy()
        np.testing.assert_allclose(scored.logprob_U[scored.generated_U], merged, atol=1e-4)
        return worst

    worst = asyncio.run(run())
    start = load_file(bench.model(0, 1.0) / "model.safetensors")
    assert differences(start, load_file(tmp_path / "merged" / "model.safetensors")) > 1e-3, "nothing was trained"
    print(f"{library}: largest |log ratio| of {UPDATES} updates of adapters {max(worst):.1e}")
    assert max(worst) < 1e-5


def test_a_killed_trainer_and_a_resumed_run_have_the_same_adapters(bench: Bench, library: str, tmp_path: Path) -> None:
    straight, broken = (bench.engine(library, scale=1.0, lora_rank=RANK) for _ in range(2))
    broken._recover_every = 9  # so that all updates are repeated, on adapters that start anew

    async def update(number: int, *engines: Any) -> None:
        for engine in engines:
            await engine.train_step(await rollouts(engine, count=3, seed=number), LossSpec(), OPTIM)
            await engine.publish()

    async def run() -> None:
        for number in range(2):
            await update(number, straight, broken)
        assert broken._group is not None
        os.kill(broken._group.pids[0], signal.SIGKILL)
        await update(2, straight, broken)
        assert broken.recoveries == 1
        await straight.save_state(tmp_path / "state")
        await straight.export_adapter(tmp_path / "straight")
        await broken.export_adapter(tmp_path / "broken")
        await update(3, straight)
        assert await straight.load_state(str(tmp_path / "state")) == 3
        await straight.export_adapter(tmp_path / "resumed")

    asyncio.run(run())
    found = {
        name: load_file(tmp_path / name / "adapter_model.safetensors") for name in ("straight", "broken", "resumed")
    }
    assert differences(found["straight"], found["broken"]) < 1e-6
    assert differences(found["straight"], found["resumed"]) == 0.0
    assert json.loads((tmp_path / "straight" / "adapter_config.json").read_text())["r"] == RANK
