"""Behaviour cloning: the plain likelihood of demonstrated answers, to start a policy from."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from arise.engines.training import TrainingRow, micro_batches, token_logprobs
from arise.engines.weights import plain_model, trainable
from arise.types import Tokens


@dataclass(frozen=True)
class CloneSpec:
    """How long and how fast: AdamW, warm-up over the first twentieth, then a linear fall to zero."""

    epochs: int = 6
    learning_rate: float = 3e-3
    tokens_per_update: int = 8192
    weight_decay: float = 0.01
    seed: int = 0


def clone(
    model: Any, rows: Sequence[Tokens], spec: CloneSpec, tell: Callable[[int, int, float], None] | None = None
) -> float:
    """Train `model` to say what `rows` mark as generated; gives the mean loss of the last epoch."""
    parameters = trainable(model)
    optimizer = torch.optim.AdamW(
        parameters.values(), lr=0.0, betas=(0.9, 0.98), weight_decay=spec.weight_decay, fused=True
    )
    random = np.random.default_rng(spec.seed)
    device = next(iter(parameters.values())).device
    batches_an_epoch = max(1, math.ceil(sum(map(len, rows)) / spec.tokens_per_update))
    updates, done, losses = spec.epochs * batches_an_epoch, 0, list[float]()
    for _ in range(spec.epochs):
        losses = []
        for chosen in np.array_split(random.permutation(len(rows)), batches_an_epoch):
            batch = [TrainingRow(rows[i], 1.0) for i in chosen]
            count = sum(row.generated_tokens for row in batch)
            total = 0.0
            for part in micro_batches(batch, spec.tokens_per_update):
                loss = -token_logprobs(plain_model(model), [row.tokens for row in part], device).sum() / count
                loss.backward()
                total += float(loss.detach())
            torch.nn.utils.clip_grad_norm_(parameters.values(), 1.0)
            rate = spec.learning_rate * min(1.0, 20.0 * (done + 1) / updates) * (1.0 - done / updates)
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            done += 1
            losses.append(total)
            if tell:
                tell(done, updates, total)
    return float(np.mean(losses))
