"""The policy loss with ratio filtering and dual clipping, and its closed-form gradient (App. "Optimization Objective").

Processes tokens in cache-sized blocks, since a batch has millions of them.
"""

from dataclasses import dataclass
from math import isfinite

import numpy as np
from numpy.typing import ArrayLike, NDArray

from arise.method.arrays import same_length
from arise.types import LossSpec

BLOCK = 32_768


@dataclass(frozen=True, eq=False)
class PolicyLoss:
    """L_policy, dL / d log pi of every token, and the mask m~ with its counts."""

    value: float
    gradient_U: NDArray[np.floating]
    kept_U: NDArray[np.bool_]
    kept_tokens: int
    dual_clipped_tokens: int


def importance_ratio(
    logprob_U: NDArray[np.floating], behaviour_U: NDArray[np.floating], out: NDArray[np.floating] | None = None
) -> NDArray[np.floating]:
    """Eq. 18 — omega = pi_theta / pi_beh of each token, from log-probabilities."""
    log_ratio_U: NDArray[np.floating] = np.subtract(logprob_U, behaviour_U, out=out)
    np.exp(log_ratio_U, out=log_ratio_U)
    return log_ratio_U


def policy_loss(
    logprob_U: ArrayLike,
    behaviour_U: ArrayLike,
    advantage_U: ArrayLike,
    generated_U: ArrayLike,
    *,
    min_ratio: float = 0.5,
    max_ratio: float = 5.0,
    dual_clip: float = 3.0,
    token_count: int | None = None,
) -> PolicyLoss:
    """Eq. 19 — the loss over all generated tokens, with its gradient per token.

    `token_count` is the number of generated tokens of the whole batch, if this is a part of one. `gradient_U` of the
    result is dL / d log pi: back-propagate it through the log-probs of your model, for example in torch with
    `logprob.backward(torch.from_numpy(loss.gradient_U))`.
    """
    tokens = _Tokens.of(logprob_U, behaviour_U, advantage_U, generated_U)
    if not 0.0 <= min_ratio < max_ratio:
        raise ValueError(f"need 0 <= min_ratio < max_ratio, got min_ratio = {min_ratio}, max_ratio = {max_ratio}")
    if not dual_clip > 0.0:
        raise ValueError(f"dual_clip = {dual_clip} must be positive")
    denominator = _denominator(tokens.generated_U, token_count)
    bounds = LossSpec(min_ratio, max_ratio, dual_clip)
    gradient_U = np.empty_like(tokens.logprob_U)
    kept_U = np.empty(gradient_U.shape, dtype=np.bool_)
    scratch = np.empty((2, BLOCK), dtype=gradient_U.dtype)
    total, dual_clipped_tokens = 0.0, 0
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(gradient_U), BLOCK):
            block = slice(start, start + BLOCK)
            loss, clipped = _block_loss(tokens, block, bounds, gradient_U[block], kept_U[block], scratch)
            gradient_U[block] *= -1.0 / denominator
            total, dual_clipped_tokens = total + loss, dual_clipped_tokens + clipped
    return PolicyLoss(total / denominator, gradient_U, kept_U, int(np.count_nonzero(kept_U)), dual_clipped_tokens)


def _block_loss(
    tokens: "_Tokens",
    block: slice,
    bounds: LossSpec,
    term: NDArray[np.floating],
    kept: NDArray[np.bool_],
    scratch: NDArray[np.floating],
) -> tuple[float, int]:
    """Sum one block's terms and count the dual-clipped; fill `kept`, and `term` with minus the gradient."""
    ratio, mask = scratch[:, : len(term)]
    importance_ratio(tokens.logprob_U[block], tokens.behaviour_U[block], out=ratio)
    advantage = tokens.advantage_U[block]
    lowest, highest = ratio.min(), ratio.max()  # nan where any ratio is nan, hence the negated tests below
    kept[:] = tokens.generated_U[block]
    if not (lowest > bounds.min_ratio and highest < bounds.max_ratio):
        kept &= (ratio > bounds.min_ratio) & (ratio < bounds.max_ratio)
    mask[:] = kept  # a mask of the same type multiplies faster than a boolean one
    # omega * A is minus the unclipped loss term and, as d omega / d log pi = omega, minus its derivative too.
    np.multiply(ratio, advantage, out=term)
    term *= mask
    loss = -float(term.sum())
    if not (isfinite(loss) and lowest > 0.0):
        tokens.require_finite(block)
        term[~kept] = 0.0  # an overflowing ratio times the mask's 0 is nan
        loss = -float(term.sum())
    if highest <= bounds.dual_clip:
        return loss, 0
    clipped = np.flatnonzero(kept & (ratio > bounds.dual_clip) & (advantage < 0.0))
    loss += float((term[clipped] + bounds.dual_clip * np.abs(advantage[clipped])).sum())
    term[clipped] = 0.0
    return loss, len(clipped)


@dataclass(frozen=True, eq=False)
class _Tokens:
    """The four token arrays, checked and of one floating type."""

    logprob_U: NDArray[np.floating]
    behaviour_U: NDArray[np.floating]
    advantage_U: NDArray[np.floating]
    generated_U: NDArray[np.bool_]

    @classmethod
    def of(
        cls, logprob_U: ArrayLike, behaviour_U: ArrayLike, advantage_U: ArrayLike, generated_U: ArrayLike
    ) -> "_Tokens":
        given = {
            "logprob_U": logprob_U,
            "behaviour_U": behaviour_U,
            "advantage_U": advantage_U,
            "generated_U": generated_U,
        }
        arrays = {name: np.asarray(values) for name, values in given.items()}
        for name, array in arrays.items():
            if array.ndim != 1:
                raise ValueError(f"{name} must be 1-d, got shape {array.shape}")
        same_length(**arrays)
        mask = arrays.pop("generated_U")
        if mask.dtype != np.bool_ and not np.isin(mask, (0, 1)).all():
            place = int(np.flatnonzero(~np.isin(mask, (0, 1)))[0])
            raise ValueError(f"generated_U[{place}] = {mask[place]} must be 0 (context) or 1 (generated)")
        for name, array in arrays.items():
            if array.dtype.kind not in "fiub":
                raise ValueError(f"{name} must hold numbers, got an array of {array.dtype}")
        dtype = np.float32 if all(array.dtype == np.float32 for array in arrays.values()) else np.float64
        return cls(
            np.asarray(arrays["logprob_U"], dtype=dtype),
            np.asarray(arrays["behaviour_U"], dtype=dtype),
            np.asarray(arrays["advantage_U"], dtype=dtype),
            np.asarray(mask, dtype=np.bool_),
        )

    def require_finite(self, block: slice) -> None:
        """Only context tokens may carry nan or infinity; the error names the token's place in the whole batch."""
        for name in ("logprob_U", "behaviour_U", "advantage_U"):
            values = getattr(self, name)[block]
            bad = np.flatnonzero(~np.isfinite(values) & self.generated_U[block])
            if len(bad):
                place = block.start + bad[0]
                raise ValueError(f"{name}[{place}] = {values[bad[0]]} of a generated token is not finite")


def _denominator(generated_U: NDArray[np.bool_], token_count: int | None) -> int:
    """Sum of m over the whole batch, before filtering; 1 where there is none, since the numerator is then 0."""
    local = int(np.count_nonzero(generated_U))
    if token_count is None:
        return max(local, 1)
    if token_count < local:
        raise ValueError(
            f"token_count = {token_count} is the whole batch's count, but this part alone has {local} generated tokens"
        )
    return max(token_count, 1)
