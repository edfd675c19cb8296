"""Saving, resuming and exporting: bit by bit the same policy, or a clear refusal."""

import asyncio
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tests.conformance.conftest import EngineMaker
from tests.conformance.rollouts import opening, rollouts
from transformers import AutoModelForCausalLM, AutoTokenizer

from arise.engines.local import LocalEngine
from arise.engines.local.weights import LoraSpec
from arise.types import LossSpec, OptimSpec, SamplingParams

OPTIM = OptimSpec(learning_rate=3e-3, warmup_updates=4)


async def iterate(engine: LocalEngine, iterations: range) -> None:
    for iteration in iterations:
        await engine.train_step(await rollouts(engine, seed=iteration), LossSpec(), OPTIM)
        await engine.publish()


def test_a_resumed_run_is_bitwise_the_uninterrupted_one(make_engine: EngineMaker, tmp_path: Path) -> None:
    straight, broken, resumed = make_engine(), make_engine(), make_engine()

    async def run() -> None:
        await iterate(straight, range(4))
        await iterate(broken, range(2))
        uri = await broken.save_state(tmp_path / "state")
        assert await resumed.load_state(uri) == 2
        await iterate(resumed, range(2, 4))
        assert resumed.version == straight.version == 4
        prompt = opening(straight, "count")
        assert await resumed.sample(prompt, SamplingParams(20), n=4) == await straight.sample(
            prompt, SamplingParams(20), n=4
        )
        for name, engine in (("straight", straight), ("resumed", resumed)):
            await engine.export_hf(tmp_path / name)

    asyncio.run(run())
    one, other = (load_file(tmp_path / name / "model.safetensors") for name in ("straight", "resumed"))
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_every_damaged_file_is_found_and_named(make_engine: EngineMaker, tmp_path: Path) -> None:
    engine = make_engine()

    async def run() -> None:
        await iterate(engine, range(1))
        await engine.save_state(tmp_path / "state")

    asyncio.run(run())
    for file in sorted((tmp_path / "state").iterdir()):
        good = file.read_bytes()
        for damage in (good[: len(good) // 2], b"", good[:-1] + bytes([good[-1] ^ 1]), None):
            file.unlink() if damage is None else file.write_bytes(damage)
            with pytest.raises(ValueError, match=str(tmp_path / "state")):
                asyncio.run(engine.load_state(str(tmp_path / "state")))
            file.write_bytes(good)
    assert asyncio.run(engine.load_state(str(tmp_path / "state"))) == 1


def test_a_state_replaces_an_older_one_and_leaves_no_draft(make_engine: EngineMaker, tmp_path: Path) -> None:
    engine = make_engine()

    async def run() -> None:
        await engine.save_state(tmp_path / "state")
        await iterate(engine, range(1))
        await engine.save_state(tmp_path / "state")
        assert await engine.load_state(str(tmp_path / "state")) == 1

    asyncio.run(run())
    assert [path.name for path in tmp_path.iterdir()] == ["state"]


def test_unpublished_weights_and_foreign_states_are_refused(make_engine: EngineMaker, tmp_path: Path) -> None:
    engine, other = make_engine(), make_engine(context_length=256)

    async def run() -> None:
        await engine.train_step(await rollouts(engine), LossSpec(), OPTIM)
        with pytest.raises(ValueError, match="not published"):
            await engine.save_state(tmp_path / "state")
        await engine.publish()
        await engine.save_state(tmp_path / "state")
        other._trainer.parameters.popitem()
        with pytest.raises(ValueError, match="another model"):
            await other.load_state(str(tmp_path / "state"))

    asyncio.run(run())


@pytest.mark.parametrize("kind", ["lora"], indirect=True)
def test_adapters_are_refused_on_other_frozen_weights_and_another_scale(
    make_engine: EngineMaker, tmp_path: Path
) -> None:
    asyncio.run(make_engine().save_state(tmp_path / "state"))
    assert asyncio.run(make_engine().load_state(str(tmp_path / "state"))) == 0
    with pytest.raises(ValueError, match="another base"):
        asyncio.run(make_engine(seed=1).load_state(str(tmp_path / "state")))
    with pytest.raises(ValueError, match="another adapters"):
        asyncio.run(make_engine(lora=LoraSpec(rank=4, alpha=16)).load_state(str(tmp_path / "state")))


def test_the_exported_folder_reloads_with_plain_transformers(make_engine: EngineMaker, tmp_path: Path) -> None:
    engine = make_engine()
    prompt = opening(engine, "count the words")

    async def run() -> None:
        await iterate(engine, range(2))
        await engine.export_hf(tmp_path / "policy")

    asyncio.run(run())
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "policy")
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "policy").eval()
    text = "naïve → 数\n\t<call>"
    assert tokenizer.decode(tokenizer(text, add_special_tokens=False)["input_ids"]) == text
    assert tokenizer.chat_template == engine.tokenizer.chat_template
    with torch.no_grad():
        own = engine._model(torch.tensor([prompt])).logits
        assert torch.allclose(model(torch.tensor([prompt])).logits, own, atol=1e-4)
