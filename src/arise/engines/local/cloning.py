"""Behaviour cloning on demonstrated answers, to initialise a policy."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from arise.engines.checks import TrainingRow
from arise.engines.local import llama, llama_training
from arise.engines.local.training import any_logits_at, micro_batches, token_logprobs
from arise.engines.local.weights import plain_model, trainable
from arise.types import Tokens


@dataclass(frozen=True)
class CloneSpec:
    """Schedule: AdamW, warm-up over the first 5 %, then linear decay to zero."""

    epochs: int = 6
    learning_rate: float = 3e-3
    tokens_per_update: int = 8192
    weight_decay: float = 0.01
    seed: int = 0


def clone(
    model: Any,
    rows_of: Callable[[int], Sequence[Tokens]],
    spec: CloneSpec,
    tell: Callable[[int, int, float], None] | None = None,
) -> float:
    """Train `model` on the generated tokens of each epoch's rows; return the mean loss of the last epoch."""
    parameters = trainable(model)
    optimizer = torch.optim.AdamW(
        parameters.values(), lr=0.0, betas=(0.9, 0.98), weight_decay=spec.weight_decay, fused=True
    )
    logits_at = llama_training.logits_at if llama.supports(plain_model(model).config) else any_logits_at
    random = np.random.default_rng(spec.seed)
    device = next(iter(parameters.values())).device
    batches_an_epoch = max(1, math.ceil(sum(map(len, rows_of(0))) / spec.tokens_per_update))
    updates, done, losses = spec.epochs * batches_an_epoch, 0, list[float]()
    for epoch in range(spec.epochs):
        losses, rows = [], rows_of(epoch)
        for chosen in np.array_split(random.permutation(len(rows)), batches_an_epoch):
            batch = [TrainingRow(rows[i], 1.0) for i in chosen]
            count = sum(row.generated_tokens for row in batch)
            total = 0.0
            for part in micro_batches(batch, spec.tokens_per_update):
                loss = (
                    -token_logprobs(logits_at, plain_model(model), [row.tokens for row in part], device).sum() / count
                )
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
