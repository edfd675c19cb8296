"""One update of the policy: micro-batches within a token budget, the paper's loss back-propagated, AdamW.

The loss is `method.loss`: it gives the gradient per log-prob, and torch back-propagates it to the weights.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy

from arise.engines.checks import TrainingRow, UpdateCount, skip_reason, training_rows
from arise.engines.local import llama_training
from arise.engines.local.packing import Packed, pack
from arise.engines.local.weights import plain_model, trainable
from arise.method.loss import policy_loss
from arise.method.schedule import learning_rate
from arise.types import Example, LossSpec, OptimSpec, StepStats, Tokens

LogitsAt = Callable[[Any, Packed], Tensor]


@dataclass
class Totals:
    """Sums over the micro-batches of one update."""

    loss: float = 0.0
    kept_tokens: int = 0
    dual_clipped_tokens: int = 0
    max_abs_log_ratio: float = 0.0


class Trainer(UpdateCount):
    """Owns the optimizer and counts its updates."""

    def __init__(
        self, model: Any, token_budget: int, precision: str, context_length: int, device: torch.device, fast: bool
    ) -> None:
        super().__init__()
        self._model, self._token_budget, self._device = model, token_budget, device
        self._bf16, self._context_length, self._fast = precision == "bf16", context_length, fast
        self.parameters = trainable(model)
        self.optimizer = torch.optim.AdamW(self.parameters.values(), fused=True)

    def update(self, examples: Sequence[Example], loss: LossSpec, optim: OptimSpec) -> StepStats:
        """Take one update; skip it if the gradient is zero (nothing to learn) or not finite (a failure)."""
        rows = training_rows(examples, self._context_length)
        rate = learning_rate(self.updates, optim.learning_rate, optim.warmup_updates)
        tokens = sum(row.generated_tokens for row in rows)
        self.optimizer.zero_grad(set_to_none=True)
        totals, norm = self.backward(rows, loss, tokens), math.nan
        if math.isfinite(totals.loss):
            norm = float(torch.nn.utils.clip_grad_norm_(self.parameters.values(), optim.max_grad_norm))
        skipped = skip_reason(totals.loss, norm)
        if not skipped:
            for group in self.optimizer.param_groups:
                group.update(lr=rate, betas=optim.betas, weight_decay=optim.weight_decay)
            self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.count(skipped, math.isfinite(norm))
        kept, clipped, ratio = totals.kept_tokens, totals.dual_clipped_tokens, totals.max_abs_log_ratio
        return StepStats(totals.loss, norm, rate, tokens, kept, clipped, ratio, skipped)

    def backward(self, rows: Sequence[TrainingRow], loss: LossSpec, token_count: int) -> Totals:
        """Accumulate the gradient of Eq. 19 over all rows; stop at non-finite log-probs."""
        totals = Totals()
        for batch in micro_batches(rows, self._token_budget):
            with torch.autocast(self._device.type, torch.bfloat16) if self._bf16 else nullcontext():
                logprob = self._logprobs([row.tokens for row in batch], loss.temperature)
            logprob_U = logprob.detach().cpu().numpy().astype(np.float64)
            if not np.isfinite(logprob_U).all():
                totals.loss = math.nan
                return totals
            behaviour_U = np.concatenate([row.tokens.logprob_U[row.tokens.generated_U] for row in batch])
            advantage_U = np.concatenate([np.full(row.generated_tokens, row.advantage) for row in batch])
            result = _loss(logprob_U, behaviour_U, advantage_U, loss, token_count)
            gradient_U = torch.from_numpy(result.gradient_U).to(logprob)
            if bool(gradient_U.any()):
                logprob.backward(gradient_U)
            totals.loss += result.value
            totals.kept_tokens += result.kept_tokens
            totals.dual_clipped_tokens += result.dual_clipped_tokens
            worst = float(np.abs(logprob_U - behaviour_U).max())
            totals.max_abs_log_ratio = max(totals.max_abs_log_ratio, worst)
        return totals

    def score(self, row: Tokens, version: int, temperature: float) -> Tokens:
        """Return the row with log-probs of its generated tokens under the weights of `version`."""
        with torch.no_grad(), torch.autocast(self._device.type, torch.bfloat16) if self._bf16 else nullcontext():
            found_U = self._logprobs([row], temperature).cpu().numpy()
        logprob_U = np.zeros(len(row))
        logprob_U[row.generated_U] = found_U
        return Tokens(row.ids_U, row.generated_U, logprob_U, np.where(row.generated_U, version, -1))

    def _logprobs(self, rows: Sequence[Tokens], temperature: float) -> Tensor:
        model = plain_model(self._model)
        logits_at = llama_training.logits_at if self._fast else any_logits_at
        return token_logprobs(logits_at, model, rows, self._device, temperature)


def micro_batches(rows: Sequence[TrainingRow], token_budget: int) -> list[list[TrainingRow]]:
    """Group rows by prompt and length within `token_budget` tokens per batch (a longer row alone).

    Shared tokens and padding count too: the budget bounds memory.
    """
    longest: dict[bytes, int] = {}
    for row in rows:
        longest[row.prompt] = max(longest.get(row.prompt, 0), len(row.tokens))
    batches: list[list[TrainingRow]] = []
    for row in sorted(rows, key=lambda row: (-longest[row.prompt], row.prompt, -len(row.tokens))):
        enlarged = [*batches[-1], row] if batches else []
        if batches and max(len(each.tokens) for each in enlarged) * len(enlarged) <= token_budget:
            batches[-1] = enlarged
        else:
            batches.append([row])
    return batches


def token_logprobs(
    logits_at: LogitsAt, model: Any, rows: Sequence[Tokens], device: torch.device, temperature: float = 1.0
) -> Tensor:
    """Return log pi of every generated token, row by row; logits are computed only where needed."""
    packed = pack(rows, device)
    logits = logits_at(model, packed).float()
    tempered = logits if temperature == 1.0 else logits / temperature
    return -cross_entropy(tempered, packed.target_M, reduction="none")


def any_logits_at(model: Any, packed: Packed) -> Tensor:
    """Return the logits at the picked tokens, by the model's own forward over whole rows."""
    picked = packed.home_N[packed.picked_M]
    # Right padding is invisible to a causal model: no attention mask is needed.
    narrow = model.get_output_embeddings().register_forward_pre_hook(lambda _, args: (args[0].flatten(0, 1)[picked],))
    try:
        logits: Tensor = model(input_ids=packed.ids_N[packed.spread_BT], use_cache=False).logits
    finally:
        narrow.remove()
    return logits


def _loss(
    logprob_U: NDArray[np.float64],
    behaviour_U: NDArray[np.float64],
    advantage_U: NDArray[np.float64],
    spec: LossSpec,
    token_count: int,
) -> Any:
    return policy_loss(
        logprob_U,
        behaviour_U,
        advantage_U,
        np.ones(len(logprob_U), dtype=np.bool_),
        min_ratio=spec.min_ratio,
        max_ratio=spec.max_ratio,
        dual_clip=spec.dual_clip,
        token_count=token_count,
    )
