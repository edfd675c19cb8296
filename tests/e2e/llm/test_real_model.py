"""A real, weak model behind the endpoint: valid verdicts or typed absences, never an exception.

Opt-in: `arise models pull smollm2-135m`, then `ARISE_REAL_MODEL=smollm2-135m pytest -m slow -k real_model`.
"""

import asyncio
import os
from typing import Any

import pytest

from arise.config.llm import CallsConfig, EndpointConfig, ModelJudge
from arise.llm.check.cases import read_cases
from arise.llm.client.client import Client
from arise.llm.client.spend import Budget
from arise.llm.judge.judge import LanguageModelJudge
from arise.run.calls import Store
from arise.testing import Action, Ask, FakeLLM, Say
from arise.types import Judgment, Pool

NAME = os.environ.get("ARISE_REAL_MODEL", "")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not NAME, reason="set ARISE_REAL_MODEL to the name or folder of a chat model"),
    pytest.mark.timeout(3000),
]


class Model:
    """Answers with what the model generates greedily."""

    def __init__(self, name: str) -> None:
        from arise.engines.local.models import load

        self.loaded = load(name, lora=False)
        self.said: list[str] = []

    async def __call__(self, ask: Ask) -> Action:
        text, prompt, completion = await asyncio.to_thread(self._generate, ask)
        self.said.append(text)
        return Say(text, prompt_tokens=prompt, completion_tokens=completion, finish="length")

    def _generate(self, ask: Ask) -> tuple[str, int, int]:
        import torch

        tokenizer: Any = self.loaded.tokenizer
        chat = tokenizer.apply_chat_template(ask.body["messages"], add_generation_prompt=True, tokenize=False)
        inputs = tokenizer(chat, return_tensors="pt", truncation=True, max_length=8192 - 256)
        with torch.inference_mode():
            output = self.loaded.model.generate(**inputs, max_new_tokens=160, do_sample=False)
        length = inputs["input_ids"].shape[1]
        return str(tokenizer.decode(output[0, length:], skip_special_tokens=True)), length, output.shape[1] - length


def test_a_real_model_judges_or_is_absent() -> None:
    cases = read_cases()
    task, rollout = cases.rollouts[0]

    async def run() -> tuple[Judgment, Judgment, list[str]]:
        model = Model(NAME)
        async with FakeLLM(model) as fake:
            endpoint = EndpointConfig(model=NAME, base_url=fake.base_url, context_tokens=8192, max_tokens=256)
            calls = CallsConfig(
                concurrency=1, request_timeout=900, deadline=900, transport_attempts=1, format_attempts=2
            )
            store = Store()
            client = Client(endpoint, calls, store, Budget(store), purpose="judge")
            judge = LanguageModelJudge(client, ModelJudge(endpoint=endpoint, calls=calls, chars_per_token=4.2))
            judged = await judge.judge(task, rollout, cases.pool)
            analysed = await judge.judge(task, rollout, Pool())
            await client.close()
        return judged, analysed, model.said

    judged, analysed, said = asyncio.run(run())
    print(f"\nthe model said: {said[0][:300]!r}\nverdicts {dict(judged.verdicts)}\nabsent {dict(judged.absent)}")
    print(f"diagnostic {analysed.diagnostic} {analysed.diagnostic_absent!r}")
    assert said
    assert set(judged.verdicts) | set(judged.absent) == {rubric.id for rubric in cases.pool.rubrics}
    assert all(judged.absent.values())
    assert (analysed.diagnostic is None) == bool(analysed.diagnostic_absent)
