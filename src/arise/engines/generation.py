"""Continuous batching on the engine's thread: rows join as they come, leave as they finish, and share what they can.

Must never let one row's tokens depend on another row: see `invariance` and `sampling`.
"""

import math
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from arise.engines.cache import IdArray, Prefix, PrefixStore, shared_length
from arise.engines.faults import EngineFault
from arise.engines.sampling import choose, stream_key, uniforms
from arise.engines.stopping import StopRules
from arise.types import SamplingParams, Segment

MIN_SHARED = 16
PREFILL_TOKENS = 2048
PATIENCE = 8
"""Prefixes shorter than MIN_SHARED are not worth waiting for; a newcomer waits up to PATIENCE tokens for company."""


class Decoder(Protocol):
    """Forwards rows of tokens and keeps their keys and values."""

    exact_prefix_only: bool
    prefill_chunk: int

    def load_weights(self, weights: Mapping[str, Tensor]) -> None: ...
    def forward(self, first: int, ids_RT: Tensor, start_R: Tensor, last_R: Tensor) -> Tensor: ...
    def logits(self, hidden_RD: Tensor) -> Tensor: ...
    def restore_row(self, row: int, saved: Any, length: int) -> None: ...
    def save_row(self, row: int, length: int) -> Any: ...
    def move_row(self, source: int, target: int, length: int) -> None: ...
    def saved_bytes(self, saved: Any) -> int: ...


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
    prefix: Prefix | None = None

    def __post_init__(self) -> None:
        self.ids = self.prompt.tolist()
        self.key = stream_key(self.params.seed, self.params.conversation, self.index)
        self.conversation = f"{self.params.conversation}#{self.index}" if self.params.conversation else ""

    @property
    def generated(self) -> list[int]:
        """The tokens sampled so far."""
        return self.ids[len(self.prompt) :]

    def segment(self, rules: StopRules) -> Segment:
        """What the caller of `sample` gets."""
        ids = tuple(self.generated)
        return Segment(ids, tuple(self.logprobs), tuple(self.versions), rules.text(ids), self.finish)


class Generator:
    """The rows being sampled; every method but `submit` runs on the engine's thread."""

    def __init__(
        self,
        decoder: Decoder,
        rules: StopRules,
        context_length: int,
        batch_rows: int,
        cache_bytes: int,
        device: torch.device,
    ) -> None:
        self._decoder, self.rules, self._device = decoder, rules, device
        self._context_length, self._batch_rows = context_length, batch_rows
        self._store = PrefixStore(cache_bytes, decoder.exact_prefix_only)
        self._waiting: deque[Row] = deque()
        self._active: list[Row] = []
        self._waited = 0
        self.version = 0

    @property
    def busy(self) -> bool:
        """Whether any row waits or runs."""
        return bool(self._waiting or self._active)

    def submit(self, row: Row) -> None:
        """Queue a row; safe from any thread."""
        self._waiting.append(row)

    def load_weights(self, weights: Mapping[str, Tensor], version: int) -> None:
        """Sample from new weights; unfinished rows are computed again under them and continue."""
        self._decoder.load_weights(weights)
        self.version = version
        self._store.clear()
        self._waiting.extendleft(reversed(self._active))
        self._active = []

    def abandon(self) -> None:
        """Forget all rows, after an error."""
        self._waiting.clear()
        self._active = []

    @torch.inference_mode()
    def run_burst(self, seconds: float = 0.25) -> list[Row]:
        """Sample until some row finishes, or for `seconds`; gives the finished rows."""
        deadline = time.monotonic() + seconds
        finished: list[Row] = []
        while self.busy and not finished and time.monotonic() < deadline:
            self._leave([row for row in self._active if row.cancelled])
            if self._ready_to_admit():
                finished += self._admit()
            if self._active:
                finished += self._decode()
                self._waited += bool(self._waiting)
        return finished

    def _ready_to_admit(self) -> bool:
        room = self._batch_rows - len(self._active)
        if not self._waiting or room <= 0:
            return False
        enough = min(room, 1 + len(self._active) // 8)
        return len(self._waiting) >= enough or self._waited >= PATIENCE

    def _admit(self) -> list[Row]:
        """Prefill waiting rows in waves: a row that can share more with this wave than with the store waits for it."""
        self._waited = 0
        newcomers: list[Row] = []
        while self._waiting and len(newcomers) + len(self._active) < self._batch_rows:
            row = self._waiting.popleft()
            if not row.cancelled:
                newcomers.append(row)
        finished: list[Row] = []
        while newcomers:
            wave: list[Row] = []
            later: list[Row] = []
            for row in newcomers:
                row.prefix, row.cached = self._store.longest(row.conversation, np.array(row.ids))
                gain = max((self._sharable(other, row) for other in wave), default=0)
                (later if gain > row.cached + MIN_SHARED else wave).append(row)
            finished += self._prefill(wave)
            newcomers = later
        return finished

    def _sharable(self, leader: Row, row: Row) -> int:
        """How many tokens `row` could take over once `leader` is prefilled."""
        shared = shared_length(leader.prompt[:-1], row.prompt[:-1])
        same = len(leader.prompt) == len(row.prompt) == shared + 1
        return shared if same or not self._decoder.exact_prefix_only else 0

    def _prefill(self, wave: list[Row]) -> list[Row]:
        """Compute what no prefix covers, longest first so that the rows still at work stay neighbours."""
        wave.sort(key=lambda row: row.cached - len(row.ids))
        first = len(self._active)
        for place, row in enumerate(wave, first):
            if row.prefix is not None:
                self._decoder.restore_row(place, row.prefix.saved, row.cached)
                row.prefix = None
        hidden: dict[int, Tensor] = {}
        while unfinished := [row for row in wave if row.cached < len(row.ids)]:
            longest = min(self._decoder.prefill_chunk, max(len(row.ids) - row.cached for row in unfinished))
            rows_at_once = max(1, PREFILL_TOKENS // longest)
            for begin in range(0, len(unfinished), rows_at_once):
                part = unfinished[begin : begin + rows_at_once]
                for row, state in zip(part, self._forward_chunk(first + begin, part), strict=True):
                    hidden[id(row)] = state
        self._active += wave
        for place, row in enumerate(wave, first):
            self._keep_prompt(place, row)
        logits = self._decoder.logits(torch.stack([hidden[id(row)] for row in wave]))
        return self._accept(wave, logits)

    def _forward_chunk(self, first: int, rows: Sequence[Row]) -> Tensor:
        chunks = [row.ids[row.cached : row.cached + self._decoder.prefill_chunk] for row in rows]
        ids_RT = torch.zeros(len(rows), max(map(len, chunks)), dtype=torch.long)
        for target, chunk in zip(ids_RT, chunks, strict=True):
            target[: len(chunk)] = torch.tensor(chunk)
        start_R = torch.tensor([row.cached for row in rows])
        last_R = torch.tensor([len(chunk) - 1 for chunk in chunks])
        for row, chunk in zip(rows, chunks, strict=True):
            row.cached += len(chunk)
        return self._decoder.forward(first, ids_RT.to(self._device), start_R.to(self._device), last_R.to(self._device))

    def _keep_prompt(self, place: int, row: Row) -> None:
        """Only an opening prompt is likely to be shared: a later turn's is covered by its own conversation."""
        ids = row.prompt[:-1]
        key = ids.tobytes()
        opening = not (row.conversation and self._store.holds(row.conversation))
        if opening and len(ids) and not self._store.holds(key):
            self._keep(key, place, ids)

    def _keep(self, key: str | bytes, place: int, ids: IdArray) -> None:
        saved = self._decoder.save_row(place, len(ids))
        if saved is not None:
            self._store.keep(key, Prefix(ids, saved, self._decoder.saved_bytes(saved)))

    def _decode(self) -> list[Row]:
        rows = self._active
        ids_RT = torch.tensor([row.ids[-1:] for row in rows], device=self._device)
        start_R = torch.tensor([row.cached for row in rows], device=self._device)
        hidden = self._decoder.forward(0, ids_RT, start_R, torch.zeros_like(start_R))
        for row in rows:
            row.cached += 1
        return self._accept(rows, self._decoder.logits(hidden))

    def _accept(self, rows: Sequence[Row], logits_RV: Tensor) -> list[Row]:
        """Draw each row's next token; rows that end with it leave the batch."""
        uniform_R = uniforms([row.key for row in rows], [len(row.ids) for row in rows])
        ids, logprobs = choose(logits_RV, uniform_R, [row.params for row in rows])
        if not all(map(math.isfinite, logprobs)):
            raise EngineFault(f"the policy of version {self.version} gives no probabilities any more: it has diverged")
        for row, token, logprob in zip(rows, ids, logprobs, strict=True):
            row.ids.append(token)
            row.logprobs.append(logprob)
            row.versions.append(self.version)
            row.finish = self._finish(row, token)
        finished = [row for row in rows if row.finish]
        self._leave(finished)
        return finished

    def _finish(self, row: Row, token: int) -> str:
        if token in self.rules.end_ids or (
            row.params.stop and self.rules.ends_with_stop(row.generated, row.params.stop)
        ):
            return "stop"
        if len(row.logprobs) >= row.params.max_tokens:
            return "length"
        return "context" if len(row.ids) >= self._context_length else ""

    def _leave(self, rows: Sequence[Row]) -> None:
        """Save what the next turn will need and close the gaps, so that running rows stay neighbours."""
        for row in rows:
            place = self._active.index(row)
            if row.conversation and not row.cancelled:
                self._keep(row.conversation, place, np.array(row.ids[: row.cached]))
            last = self._active.pop()
            if last is not row:
                self._decoder.move_row(len(self._active), place, last.cached)
                self._active[place] = last
