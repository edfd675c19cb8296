"""Conversations of given lengths, by the engine and by transformers.generate."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from arise.config import SmallModel
from arise.engines.chat import ChatFormat
from arise.engines.local import LocalEngine
from arise.engines.local.models import LoadedModel
from arise.engines.local.small_model import small_model
from arise.types import SamplingParams, Tokens
from benchmarks.side_by_side import ROUNDS

CORPUS = Path(__file__).resolve().parents[1].joinpath("README.md").read_text().split("\n") + Path(
    __file__
).read_text().split("\n")
Prompts = Sequence[list[int]]
Lengths = Sequence[Sequence[int]]


def fresh_model() -> LoadedModel:
    """The small model of `make train`."""
    shape = SmallModel()
    return small_model(CORPUS, hidden=shape.hidden, layers=shape.layers)


def conversations(
    tokenizer: Any, count: int, groups: int, prompt_tokens: int, first_word: str = "work"
) -> list[list[int]]:
    """Opening prompts: a shared system text, then one task a group; another first word shares nothing."""
    chat, text = ChatFormat(tokenizer), "\n".join(CORPUS)
    system = tokenizer.decode(tokenizer(text)["input_ids"][: prompt_tokens - 31])
    system = f"{first_word} {system}"
    tasks = [{"role": "user", "content": f"task {group}: count the lines"} for group in range(groups)]
    prompts = [chat.prompt([{"role": "system", "content": system}, task]) for task in tasks]
    return [prompts[i * groups // count] for i in range(count)]


OBSERVATION = "exit code 0, 3 lines of output were written to out.txt"


async def converse(engine: LocalEngine, name: str, ids: list[int], lengths: Sequence[int], seed: int) -> Tokens:
    """Take turns of the given lengths as fast as the engine answers."""
    chat = ChatFormat(engine.tokenizer)
    generated, logprob = [False] * len(ids), [0.0] * len(ids)
    for length in lengths:
        (segment,) = await engine.sample(ids, SamplingParams(length, seed=seed, conversation=name))
        generated, logprob = generated + [True] * length, [*logprob, *segment.logprobs]
        so_far = [*ids, *segment.ids]
        ids = chat.extend(so_far, OBSERVATION)
        generated, logprob = generated + [False] * (len(ids) - len(so_far)), logprob + [0.0] * (len(ids) - len(so_far))
    end = len(so_far)
    mask = np.array(generated[:end])
    return Tokens(np.array(so_far), mask, np.array(logprob[:end]), mask - 1)


async def all_conversations(engine: LocalEngine, prompts: Prompts, lengths: Lengths, seed: int) -> list[Tokens]:
    """All conversations at once."""
    work = [converse(engine, f"{seed}/{i}", ids, lengths[i], seed) for i, ids in enumerate(prompts)]
    return await asyncio.gather(*work)


def cold_rounds(engine: LocalEngine, count: int, groups: int, prompt_tokens: int) -> list[list[list[int]]]:
    """Prompts for each round that no cache of an earlier round covers."""
    words = ("work", "shell", "answer", "task")
    return [conversations(engine.tokenizer, count, groups, prompt_tokens, words[i]) for i in range(ROUNDS + 1)]


def run_ours(engine: LocalEngine, rounds: Sequence[Prompts], lengths: Lengths, seed: int) -> None:
    """Sample on cold caches."""
    asyncio.run(all_conversations(engine, rounds[seed], lengths, seed))


GENERATE: Any = {"do_sample": True, "top_k": 0, "pad_token_id": 0, "eos_token_id": None}


def padded(rows: Prompts) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows filled up on the left, and which of their places are real."""
    longest = max(map(len, rows))
    ids = torch.tensor([[0] * (longest - len(row)) + row for row in rows])
    return ids, torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows])


def run_generate(
    model: Any, rounds: Sequence[Prompts], lengths: Lengths, observation: list[int], seed: int = 0
) -> list[list[int]]:
    """transformers.generate, all conversations in one left-padded batch a turn; it does not even give log-probs.

    Called anew each turn as trainers do: it reads the conversation so far again.
    """
    rows = [list(prompt) for prompt in rounds[seed]]
    for turn in range(len(lengths[0])):
        wanted = [length[turn] for length in lengths]
        ids, mask = padded(rows)
        with torch.inference_mode():
            out = model.generate(ids, attention_mask=mask, max_new_tokens=max(wanted), **GENERATE)
        fresh = out[:, ids.shape[1] :].tolist()
        after = [] if turn == len(lengths[0]) - 1 else observation
        rows = [row + new[:count] + after for row, new, count in zip(rows, fresh, wanted, strict=True)]
    return rows


def run_generate_with_cache(
    model: Any, rounds: Sequence[Prompts], lengths: Lengths, observation: list[int], seed: int = 0
) -> None:
    """The same with its keys and values handed from turn to turn, which asks for turns of equal length."""
    (ids, mask), cache = padded(rounds[seed]), None
    more = torch.tensor(observation).expand(len(ids), -1)
    for length in lengths[0]:
        with torch.inference_mode():
            out = model.generate(
                ids,
                attention_mask=mask,
                max_new_tokens=length,
                past_key_values=cache,
                return_dict_in_generate=True,
                **GENERATE,
            )
        cache, ids = out.past_key_values, torch.cat([out.sequences, more], dim=1)
        mask = torch.cat([mask, mask.new_ones(len(ids), ids.shape[1] - mask.shape[1])], dim=1)
