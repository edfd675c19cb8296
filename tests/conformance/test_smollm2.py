"""A real pretrained chat model: pulled, sampled, trained twice, exported, and still able to chat."""

import asyncio
from pathlib import Path

import pytest
import torch
from tests.conformance.rollouts import converse, full_logprobs
from tests.unit.engines.formats.hostile import HOSTILE
from transformers import AutoModelForCausalLM, AutoTokenizer

from arise.engines.chat import ChatFormat
from arise.engines.formats.generic import GenericFormat
from arise.engines.local import LocalEngine
from arise.engines.local.models import load
from arise.engines.local.pretrained import pull
from arise.rollouts.tools import SPECS
from arise.types import Example, FunctionCall, LossSpec, Message, OptimSpec, SamplingParams


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_two_updates_export_and_chat(tmp_path: Path) -> None:
    pull("smollm2-135m")
    loaded = load("smollm2-135m")
    engine = LocalEngine(loaded.model, loaded.tokenizer, lora=loaded.lora, token_budget=1024)

    async def run() -> None:
        for iteration in range(2):
            texts = ["Name a colour.", "Name a colour.", "Count to three.", "Say hello."]
            work = [converse(engine, f"{iteration}/{i}", text, turns=2) for i, text in enumerate(texts)]
            rows = [row for row, _ in await asyncio.gather(*work)]
            if iteration == 0:
                with torch.no_grad():
                    for row in rows:
                        recomputed = full_logprobs(engine._model, row).numpy()
                        assert abs(row.logprob_U[row.generated_U] - recomputed).max() < 1e-3
            batch = [Example((row,), (-1.0) ** i) for i, row in enumerate(rows)]
            stats = await engine.train_step(batch, LossSpec(), OptimSpec(learning_rate=1e-4, warmup_updates=0))
            assert stats.skipped == ""
            assert stats.grad_norm > 0.0
            assert stats.max_abs_log_ratio < 1e-3
            await engine.publish()
        await engine.export_hf(tmp_path / "policy")

    asyncio.run(run())
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "policy").eval()
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "policy")
    prompt = ChatFormat(tokenizer).prompt([{"role": "user", "content": "What is the capital of France?"}])
    with torch.no_grad():
        own = engine._model(torch.tensor([prompt])).logits
        assert torch.allclose(model(torch.tensor([prompt])).logits, own, atol=1e-3)
        answer = model.generate(torch.tensor([prompt]), max_new_tokens=20, do_sample=False)[0, len(prompt) :]
    assert "Paris" in tokenizer.decode(answer)
    (segment,) = asyncio.run(engine.sample(prompt, SamplingParams(20, temperature=0.01)))
    assert "Paris" in segment.text


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_its_format_continues_conversations_and_lets_no_text_become_a_control_token() -> None:
    chat = GenericFormat(AutoTokenizer.from_pretrained(pull("smollm2-135m")))
    assert "the chat template shows no tools" in chat.notice
    tools = list(SPECS.values())
    asked = [Message("system", "Use tools."), Message("user", "List the files.")]
    call = FunctionCall("call00000", "bash", {"command": "cat <<'E'\none\nE"})
    ids = chat.prompt(asked, tools) + chat.answer(Message("assistant", calls=(call,)), tools)
    assert chat.read(ids[len(chat.prompt(asked, tools)) :], tools).calls[0].arguments == call.arguments
    plain = chat.extend(ids, [Message("tool", "x")], tools)
    assert plain is not None
    assert plain[: len(ids)] == ids
    control = [i for i in plain[len(ids) :] if i in chat.safe.control_ids]
    for text in HOSTILE:
        longer = chat.extend(ids, [Message("tool", text)], tools)
        assert longer is not None
        assert [i for i in longer[len(ids) :] if i in chat.safe.control_ids] == control, text
