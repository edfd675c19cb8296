"""Eq. 19 on the log-probs of a training library: the closed-form gradient of `method.loss`, and sums over a group."""

import math
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from arise.engines.remote.workers.loop import Taken, UpdateSpec
from arise.method.loss import policy_loss


class Totals:
    """Sums over the micro-batches of one update; `summed` adds those of the other processes."""

    def __init__(self, spec: UpdateSpec) -> None:
        self._spec = spec
        self.loss, self.kept, self.clipped, self.worst = 0.0, 0, 0, 0.0

    def add(self, logprob: Any, mask: Any, behaviour: Any, advantage: Any) -> Any:
        """Count one micro-batch; return its part of the loss times `token_count` over its own generated tokens.

        The value is not the loss, but its gradient is: a sum of log-probs times dL / d log pi. The library multiplies
        it by the micro-batch's share of all generated tokens.
        """
        picked = mask.reshape(-1).bool()
        chosen = logprob.reshape(-1)[picked]
        logprob_U = chosen.detach().double().cpu().numpy()
        behaviour_U = behaviour.reshape(-1)[picked].double().cpu().numpy()
        if not np.isfinite(logprob_U).all():
            self.loss = math.nan
            return chosen.sum() * 0.0
        found = policy_loss(
            logprob_U,
            behaviour_U,
            advantage.reshape(-1)[picked].double().cpu().numpy(),
            np.ones(len(logprob_U), dtype=np.bool_),
            min_ratio=self._spec.min_ratio,
            max_ratio=self._spec.max_ratio,
            dual_clip=self._spec.dual_clip,
        )
        share = len(logprob_U) / max(self._spec.token_count, 1)
        self.loss += found.value * share
        self.kept += found.kept_tokens
        self.clipped += found.dual_clipped_tokens
        self.worst = max(self.worst, float(np.abs(logprob_U - behaviour_U).max(initial=0.0)))
        return (chosen * torch.from_numpy(found.gradient_U).to(chosen)).sum()

    def summed(self, group: Any, device: Any) -> "Totals":
        """Return the sums of all processes of the group."""
        sums = torch.tensor([self.loss, self.kept, self.clipped], dtype=torch.float64, device=device)
        worst = torch.tensor([self.worst], dtype=torch.float64, device=device)
        dist.all_reduce(sums, group=group)
        dist.all_reduce(worst, op=dist.ReduceOp.MAX, group=group)
        whole = Totals(self._spec)
        whole.loss, whole.worst = float(sums[0]), float(worst[0])
        whole.kept, whole.clipped = int(sums[1]), int(sums[2])
        return whole

    def taken(self, grad_norm: float) -> Taken:
        """Return what the update did."""
        return Taken(self.loss, grad_norm, self.kept, self.clipped, self.worst)
