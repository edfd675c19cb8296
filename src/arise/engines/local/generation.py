"""Continuous batching on the engine's thread, with shared prefixes.

One row's tokens must never depend on another row: see `invariance` and `sampling`.
"""

import math
import time
from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from arise.engines.faults import EngineFault
from arise.engines.local.cache import IdArray, Prefix, PrefixStore, shared_length
from arise.engines.local.decoding import Decoder, Row, SharedPrompt
from arise.engines.local.sampling import uniforms
from arise.engines.stopping import StopRules

MIN_SHARED = 16
PREFILL_TOKENS = 2048
PATIENCE = 8
"""Prefixes shorter than MIN_SHARED are not worth waiting for; a newcomer waits up to PATIENCE tokens for company."""
CONVERSATIONS = 65_536
"""For how many conversations it is known where they opened."""


SpanT = TypeVar("SpanT", SharedPrompt, Row)


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
        self._store = PrefixStore(cache_bytes)
        self._opened: OrderedDict[str, int] = OrderedDict()
        self._waiting: deque[Row] = deque()
        self._active: list[Row] = []
        self._waited = 0
        self.version = 0

    @property
    def decoder_name(self) -> str:
        """Return which implementation computes the samples."""
        return type(self._decoder).__name__

    @property
    def busy(self) -> bool:
        """Return whether any row is waiting or running."""
        return bool(self._waiting or self._active)

    def submit(self, row: Row) -> None:
        """Queue a row; safe from any thread."""
        self._waiting.append(row)

    def load_weights(self, weights: Mapping[str, Tensor], version: int) -> None:
        """Sample from new weights; unfinished rows are recomputed with them and continue."""
        self._decoder.load_weights(weights)
        self.version = version
        self._store.clear()
        self._waiting.extendleft(reversed(self._active))
        self._active = []

    def abandon(self) -> None:
        """Drop all rows after an error."""
        self._waiting.clear()
        self._active = []

    @torch.inference_mode()
    def run_burst(self, seconds: float = 0.25) -> list[Row]:
        """Sample until a row finishes or `seconds` have passed; return the finished rows."""
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
        """Start waiting rows: compute shared openings once, then each row's own part."""
        self._waited = 0
        newcomers: list[Row] = []
        while self._waiting and len(newcomers) + len(self._active) < self._batch_rows:
            row = self._waiting.popleft()
            if not row.cancelled:
                newcomers.append(row)
        return self._start(newcomers) if newcomers else []

    def _start(self, rows: list[Row]) -> list[Row]:
        resumed = {row: known for row in rows if (known := self._store.continued(row.conversation, np.array(row.ids)))}
        opening_of = {row: self._opening(row) for row in rows if row not in resumed}
        openings = self._openings({ids.tobytes(): ids for ids in opening_of.values() if len(ids)})
        shared = {row: openings[ids.tobytes()] for row, ids in opening_of.items() if len(ids)}
        for row in rows:
            known = resumed.get(row) or shared.get(row)
            row.cached = len(known.ids) if known else 0
        # Longest first, so that unfinished rows stay contiguous.
        rows.sort(key=lambda row: row.cached - len(row.ids))
        for place, row in enumerate(rows, len(self._active)):
            if row in resumed:
                self._decoder.restore_row(place, resumed[row].saved)
            elif row in shared:
                self._decoder.share_row(place, shared[row].saved)
            else:
                self._decoder.start_row(place, None, 0)
        hidden = self._compute(rows)
        self._active += rows
        return self._accept(rows, torch.stack([hidden[row] for row in rows]))

    def _opening(self, row: Row) -> IdArray:
        """Return a row's shareable opening: its conversation's first prompt, so later turns compute the same bits."""
        length = len(row.prompt) - 1
        if row.conversation:
            length = min(self._opened.setdefault(row.conversation, length), length)
            self._opened.move_to_end(row.conversation)
            if len(self._opened) > CONVERSATIONS:
                self._opened.popitem(last=False)
        return row.prompt[:length]

    def _openings(self, wanted: Mapping[bytes, IdArray]) -> dict[bytes, Prefix]:
        """Return all openings, cached or computed in waves, since openings may share prefixes themselves."""
        found = {key: known for key in wanted if (known := self._store.find(key))}
        while missing := [SharedPrompt(ids) for key, ids in wanted.items() if key not in found]:
            wave: list[SharedPrompt] = []
            for opening in missing:
                known, covered = self._store.longest(opening.ids) if self._decoder.cuts_prefixes else (None, 0)
                if covered + MIN_SHARED >= self._sharable(opening, wave):
                    opening.cached, opening.known = covered, known
                    wave.append(opening)
            wave.sort(key=lambda opening: opening.cached - len(opening.ids))
            for place, opening in enumerate(wave, len(self._active)):
                self._decoder.start_row(place, opening.known.saved if opening.known else None, opening.cached)
            self._compute(wave)
            for place, opening in enumerate(wave, len(self._active)):
                key = opening.ids.tobytes()
                found[key] = self._keep(key, place, opening.ids)
        return found

    def _sharable(self, opening: SharedPrompt, wave: Sequence[SharedPrompt]) -> int:
        """Return how many tokens an opening could reuse after a wave."""
        lengths = (shared_length(other.ids, opening.ids) for other in wave)
        return max(lengths, default=0) if self._decoder.cuts_prefixes else 0

    def _compute(self, spans: Sequence[SpanT]) -> dict[SpanT, Tensor]:
        """Prefill uncached tokens in the slots after the active rows; return the last hidden states."""
        hidden: dict[SpanT, Tensor] = {}
        while unfinished := [span for span in spans if span.cached < len(span.ids)]:
            longest = min(self._decoder.prefill_chunk, max(len(span.ids) - span.cached for span in unfinished))
            at_once = max(1, PREFILL_TOKENS // longest)
            for begin in range(0, len(unfinished), at_once):
                part = unfinished[begin : begin + at_once]
                hidden.update(zip(part, self._forward_chunk(len(self._active) + begin, part), strict=True))
        return hidden

    def _forward_chunk(self, first: int, spans: Sequence[SharedPrompt | Row]) -> Tensor:
        chunks = [span.ids[span.cached : span.cached + self._decoder.prefill_chunk] for span in spans]
        ids_RT = torch.zeros(len(spans), max(map(len, chunks)), dtype=torch.long)
        for target, chunk in zip(ids_RT, chunks, strict=True):
            target[: len(chunk)] = torch.as_tensor(chunk)
        start_R = torch.tensor([span.cached for span in spans])
        last_R = torch.tensor([len(chunk) - 1 for chunk in chunks])
        for span, chunk in zip(spans, chunks, strict=True):
            span.cached += len(chunk)
        return self._decoder.forward(first, ids_RT.to(self._device), start_R.to(self._device), last_R.to(self._device))

    def _keep(self, key: str | bytes, place: int, ids: IdArray) -> Prefix:
        saved = self._decoder.save_row(place, len(ids))
        prefix = Prefix(ids, saved, self._decoder.saved_bytes(saved))
        self._store.keep(key, prefix)
        return prefix

    def _decode(self) -> list[Row]:
        rows = self._active
        ids_RT = torch.tensor([row.ids[-1:] for row in rows], device=self._device)
        start_R = torch.tensor([row.cached for row in rows], device=self._device)
        hidden = self._decoder.forward(0, ids_RT, start_R, torch.zeros_like(start_R))
        for row in rows:
            row.cached += 1
        return self._accept(rows, hidden)

    def _accept(self, rows: Sequence[Row], hidden_RD: Tensor) -> list[Row]:
        """Sample each row's next token; finished rows leave the batch."""
        uniform_R = uniforms([row.key for row in rows], [len(row.ids) for row in rows])
        ids, logprobs = self._decoder.choose(hidden_RD, uniform_R, [row.params for row in rows])
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
        """Cache prefixes of finished rows and compact the batch."""
        for row in rows:
            place = self._active.index(row)
            if row.conversation and not row.cancelled:
                self._keep(row.conversation, place, np.array(row.ids[: row.cached]))
            self._decoder.drop_row(place)
            last = self._active.pop()
            if last is not row:
                self._decoder.move_row(len(self._active), place, last.cached)
                self._active[place] = last
