"""Rows being sampled, and the decoder protocol."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from arise.engines.local.cache import IdArray, Prefix
from arise.engines.local.sampling import stream_key
from arise.engines.stopping import StopRules
from arise.types import SamplingParams, Segment


class Decoder(Protocol):
    """Forwards rows of tokens and keeps their keys and values."""

    cuts_prefixes: bool
    """Whether a row can begin with a part of a saved one."""
    prefill_chunk: int

    def load_weights(self, weights: Mapping[str, Tensor]) -> None: ...
    def forward(self, first: int, ids_RT: Tensor, start_R: Tensor, last_R: Tensor) -> Tensor: ...
    def logits(self, hidden_RD: Tensor) -> Tensor: ...
    def choose(
        self, hidden_RD: Tensor, uniform_R: NDArray[np.float64], params: Sequence[SamplingParams]
    ) -> tuple[list[int], list[float]]: ...
    def start_row(self, row: int, known: Any, length: int) -> None: ...
    def share_row(self, row: int, prefix: Any) -> None: ...
    def restore_row(self, row: int, saved: Any) -> None: ...
    def save_row(self, row: int, length: int) -> Any: ...
    def move_row(self, source: int, target: int, length: int) -> None: ...
    def drop_row(self, row: int) -> None: ...
    def saved_bytes(self, saved: Any) -> int: ...


@dataclass(eq=False)
class SharedPrompt:
    """A prompt without its last token, computed once for all rows that start with it."""

    ids: IdArray
    cached: int = 0
    known: Prefix | None = None
    """The saved prompt that covers those."""


@dataclass(eq=False)
class Row:
    """One turn being sampled; `cached` counts the leading tokens whose keys and values the decoder holds."""

    prompt: IdArray
    params: SamplingParams
    index: int
    ids: list[int] = field(init=False)
    logprobs: list[float] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)
    finish: str = ""
    cached: int = 0
    cancelled: bool = False

    def __post_init__(self) -> None:
        self.ids = self.prompt.tolist()
        self.key = stream_key(self.params.seed, self.params.conversation, self.index)
        self.conversation = f"{self.params.conversation}#{self.index}" if self.params.conversation else ""

    @property
    def generated(self) -> list[int]:
        """The tokens sampled so far."""
        return self.ids[len(self.prompt) :]

    def segment(self, rules: StopRules) -> Segment:
        """Return the segment that the caller of `sample` gets."""
        ids = tuple(self.generated)
        return Segment(ids, tuple(self.logprobs), tuple(self.versions), rules.text(ids), self.finish)
