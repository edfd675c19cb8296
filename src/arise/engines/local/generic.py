"""Decoder for other architectures: the model's own forward and cache, one conversation at a time.

Slower than `llama`, but it makes no assumption about the model, and rows are independent.
"""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import DynamicCache

from arise.engines.local.sampling import choose
from arise.types import SamplingParams


class GenericDecoder:
    """Holds a copy of the model, so training does not change the weights being sampled."""

    cuts_prefixes = False
    prefill_chunk = 512

    def __init__(self, model: Any, dtype: torch.dtype) -> None:
        self._model = copy.deepcopy(model).to(dtype).eval().requires_grad_(False)
        self._rows: dict[int, Any] = {}

    def load_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Take a snapshot of transformers-named weights."""
        self._model.load_state_dict(weights, strict=False)

    def forward(self, first: int, ids_RT: Tensor, start_R: Tensor, last_R: Tensor) -> Tensor:
        """Append tokens 0 ... `last_R` at position `start_R` of each row; return each row's last logits."""
        return torch.stack(
            [
                self._forward_row(first + row, ids_RT[row, : int(last) + 1], int(start))
                for row, (start, last) in enumerate(zip(start_R, last_R, strict=True))
            ]
        )

    def _forward_row(self, row: int, ids_T: Tensor, start: int) -> Tensor:
        if start == 0:
            self._rows[row] = DynamicCache(config=self._model.config)
        # Forward the last token alone, so that a row with a shared prefix computes the same bits.
        logits = torch.empty(0)
        for part in (ids_T[:-1], ids_T[-1:]):
            if len(part):
                logits = self._model(part[None], past_key_values=self._rows[row], logits_to_keep=1).logits[0, -1]
        return logits

    def logits(self, hidden_RD: Tensor) -> Tensor:
        """Next-token logits in float32."""
        return hidden_RD.float()

    def choose(
        self, hidden_RD: Tensor, uniform_R: NDArray[np.float64], params: Sequence[SamplingParams]
    ) -> tuple[list[int], list[float]]:
        """Sample one token per row."""
        return choose(self.logits(hidden_RD), uniform_R, params)

    def start_row(self, row: int, known: Any, length: int) -> None:  # noqa: ARG002 - prompts are shared whole or not
        """Start an empty row."""
        self._rows.pop(row, None)

    def share_row(self, row: int, prefix: Any) -> None:
        """Start a row from a saved one."""
        self.restore_row(row, prefix)

    def restore_row(self, row: int, saved: Any) -> None:
        """Continue a saved row."""
        self._rows[row] = copy.deepcopy(saved)

    def save_row(self, row: int, length: int) -> Any:
        """Return a copy of a row's cache."""
        assert self._rows[row].get_seq_length() == length, "only whole rows are saved"
        return copy.deepcopy(self._rows[row])

    def move_row(self, source: int, target: int, length: int) -> None:  # noqa: ARG002 - a cache knows its own length
        """Move a row into a free slot."""
        self._rows[target] = self._rows.pop(source)

    def drop_row(self, row: int) -> None:
        """Drop a finished row."""
        self._rows.pop(row, None)

    def saved_bytes(self, saved: Any) -> int:
        """Memory of a saved prefix."""
        return sum(
            value.nbytes for layer in saved.layers for value in vars(layer).values() if isinstance(value, Tensor)
        )
