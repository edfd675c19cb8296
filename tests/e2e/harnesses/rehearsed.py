"""A real local engine that speaks from a script: the ids are given, their log-probs are what the engine gives them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from transformers import LlamaConfig, LlamaForCausalLM

from arise.engines.formats.generic import GenericFormat
from arise.engines.local import LocalEngine
from arise.types import SamplingParams, Segment, Tokens
from arise.types.chat import Message
from tests.unit.engines.formats.families import tokenizer_of

WINDOW = 32_768


def tiny_qwen() -> tuple[LocalEngine, GenericFormat]:
    """A model of two narrow layers with Qwen's tool format, far from uniform, so that numerical slips show."""
    import torch

    tokenizer = tokenizer_of("qwen3")
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=WINDOW,
        tie_word_embeddings=True,
    )
    model = LlamaForCausalLM(config)
    for parameter in model.parameters():
        parameter.data.mul_(4.0 if parameter.dim() == 2 else 1.0)
    chat = GenericFormat(tokenizer)
    return LocalEngine(model, tokenizer, end_ids=chat.stop_ids, token_budget=WINDOW), chat


@dataclass
class Rehearsed:
    """Answers the first calls of each scripted conversation from a script and samples everything else."""

    engine: LocalEngine
    format: GenericFormat
    scripts: Mapping[str, Sequence[Message]]
    """By the key of the rollout."""
    spoken: dict[str, int] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    async def sample(self, prompt_ids: Sequence[int], params: SamplingParams, n: int = 1) -> list[Segment]:
        """Speak the next line of the conversation's script, scored by the engine."""
        key = params.conversation.rpartition("/")[0]
        turn = self.spoken.get(key, 0)
        lines = self.scripts.get(key, ())
        if turn >= len(lines):
            return await self.engine.sample(prompt_ids, params, n)
        self.spoken[key] = turn + 1
        ids = self.format.answer(lines[turn])
        row = Tokens(
            np.array([*prompt_ids, *ids], dtype=np.int64),
            np.array([False] * len(prompt_ids) + [True] * len(ids)),
            np.zeros(len(prompt_ids) + len(ids)),
            np.full(len(prompt_ids) + len(ids), -1, dtype=np.int64),
        )
        scored = (await self.engine.score(row, params.temperature)).logprob_U[len(prompt_ids) :]
        return [Segment(tuple(ids), tuple(map(float, scored)), (self.engine.version,) * len(ids), "", "stop")]
