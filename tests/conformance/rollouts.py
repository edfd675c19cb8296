"""Conversations and training rows that the conformance tests share."""

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from arise.engines.chat import ChatFormat
from arise.engines.local import LocalEngine
from arise.types import Example, SamplingParams, Segment, Tokens

SYSTEM = "list the files, then count the words in each of them and write the answer down"


def opening(engine: LocalEngine, text: str) -> list[int]:
    """The prompt of a new conversation."""
    chat = ChatFormat(engine.tokenizer)
    return chat.prompt([{"role": "system", "content": SYSTEM}, {"role": "user", "content": text}])


async def converse(
    engine: LocalEngine,
    name: str,
    text: str,
    turns: int = 3,
    seed: int = 0,
    max_tokens: int = 12,
    temperature: float = 1.0,
) -> tuple[Tokens, list[Segment]]:
    """Several turns with a tool's answer between them; gives the row to train on and the segments."""
    chat, ids = ChatFormat(engine.tokenizer), opening(engine, text)
    segments: list[Segment] = []
    marks: list[tuple[int, Segment]] = []
    params = SamplingParams(max_tokens, temperature=temperature, seed=seed, conversation=name)
    for turn in range(turns):
        segment = (await engine.sample(ids, params))[0]
        segments.append(segment)
        marks.append((len(ids), segment))
        ids = [*ids, *segment.ids]
        if turn < turns - 1:
            ids = chat.extend(ids, f"{turn} words in {name}")
    return row_of(ids, marks), segments


def row_of(ids: Sequence[int], marks: Sequence[tuple[int, Segment]]) -> Tokens:
    """The token record of a conversation whose segments begin at the marked positions."""
    generated = np.zeros(len(ids), dtype=np.bool_)
    logprob = np.zeros(len(ids))
    version = np.full(len(ids), -1)
    for begin, segment in marks:
        part = slice(begin, begin + len(segment.ids))
        generated[part], logprob[part], version[part] = True, segment.logprobs, segment.versions
    return Tokens(np.array(ids), generated, logprob, version)


async def rollouts(engine: LocalEngine, count: int = 6, seed: int = 0, temperature: float = 1.0) -> list[Example]:
    """A batch with advantages of both signs and conversations of different lengths."""
    work = [
        converse(engine, f"r{i}", "count " * (1 + i), turns=1 + i % 3, seed=seed, temperature=temperature)
        for i in range(count)
    ]
    rows = [row for row, _ in await asyncio.gather(*work)]
    return [Example((row,), advantage) for row, advantage in zip(rows, np.linspace(-1.5, 2.0, count), strict=True)]


def moved(example: Example, by: float) -> Example:
    """The same example as if an older policy had sampled it: behaviour log-probs shifted by up to `by`."""
    rows = []
    for row in example.rows:
        shift = np.random.default_rng(len(row)).uniform(-by, by, len(row))
        rows.append(Tokens(row.ids_U, row.generated_U, row.logprob_U + shift, row.version_U))
    return Example(tuple(rows), example.advantage)


def full_logprobs(model: Any, row: Tokens, temperature: float = 1.0) -> torch.Tensor:
    """Log pi of the generated tokens by one plain forward over the whole row."""
    logits = model(torch.from_numpy(row.ids_U)[None]).logits[0, :-1] / temperature
    logprob = logits.log_softmax(-1).gather(1, torch.from_numpy(row.ids_U[1:])[:, None]).squeeze(1)
    picked: torch.Tensor = logprob[torch.from_numpy(row.generated_U[1:])]
    return picked
