"""Next-token sampling: one uniform number per token, a pure function of seed, conversation and position.

The draw does not depend on the batch or on restarts.
"""

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from arise.types import SamplingParams


def stream_key(seed: int, conversation: str, index: int) -> int:
    """Return the 64-bit key of the random stream of sample `index` of a conversation."""
    return int.from_bytes(blake2b(f"{seed}/{index}/{conversation}".encode(), digest_size=8).digest(), "little")


def uniforms(keys: Sequence[int], positions: Sequence[int]) -> NDArray[np.float64]:
    """Return a number in [0, 1) per (stream, token position): SplitMix64 of the position in the stream."""
    with np.errstate(over="ignore"):
        z = np.array(keys, dtype=np.uint64) + np.array(positions, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    result: NDArray[np.float64] = (z >> np.uint64(11)) * 2.0**-53
    return result


def choose(
    logits_RV: Tensor, uniform_R: NDArray[np.float64], params: Sequence[SamplingParams]
) -> tuple[list[int], list[float]]:
    """Sample one token per row by inverse CDF; return ids and their log-probs under the sampling distribution."""
    logprob_RV = distribution(logits_RV, params)
    cumulative_RV = logprob_RV.exp().cumsum(-1, dtype=torch.float64)
    level_R = torch.from_numpy(uniform_R).to(cumulative_RV.device) * cumulative_RV[:, -1]
    id_R = torch.searchsorted(cumulative_RV, level_R[:, None], right=True).clamp_(max=logits_RV.shape[1] - 1)
    chosen: list[int] = id_R.squeeze(1).tolist()
    logprobs: list[float] = logprob_RV.gather(1, id_R).squeeze(1).tolist()
    return chosen, logprobs


def distribution(logits_RV: Tensor, params: Sequence[SamplingParams]) -> Tensor:
    """Log-probs after temperature and top-p, renormalised."""
    if any(p.temperature != 1.0 for p in params):
        logits_RV = logits_RV / torch.tensor([p.temperature for p in params], device=logits_RV.device)[:, None]
    logprob_RV = logits_RV.log_softmax(-1)
    for row, p in enumerate(params):
        if p.top_p < 1.0:
            logprob_RV[row] = _nucleus(logprob_RV[row], p.top_p)
    return logprob_RV


def _nucleus(logprob_V: Tensor, top_p: float) -> Tensor:
    """Keep the smallest set of most likely tokens that holds `top_p` of the mass."""
    ordered, order = logprob_V.sort(descending=True, stable=True)
    before = ordered.exp().cumsum(-1, dtype=torch.float64) - ordered.exp()
    return logprob_V.index_fill(0, order[before >= top_p], -torch.inf).log_softmax(-1)
