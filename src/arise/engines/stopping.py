"""When a turn ends: an end-of-turn token, a stop string, the token limit, or a full context window."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any


class StopRules:
    """Stop rules of one tokenizer; pieces are decoded once, so most tokens need only a set lookup."""

    def __init__(self, tokenizer: Any, end_ids: frozenset[int]) -> None:
        self._tokenizer, self.end_ids = tokenizer, end_ids
        self._may_end: dict[tuple[str, ...], frozenset[int]] = {}

    @cached_property
    def _pieces(self) -> list[str]:
        """Decode each token after another one: some tokenizers drop a leading space."""
        before = len(self._tokenizer.decode([0]))
        pieces: list[str] = self._tokenizer.batch_decode([[0, i] for i in range(len(self._tokenizer))])
        return [piece[before:] for piece in pieces]

    def ends_with_stop(self, generated: Sequence[int], stop: tuple[str, ...]) -> bool:
        """Return whether the last token completed a stop string."""
        if not stop or generated[-1] not in self._completing(stop):
            return False
        longest = max(map(len, stop))
        tail = self.text(generated[-4 * longest :])  # a character may take up to four tokens
        return any(s in tail for s in stop)

    def end_of(self, generated: Sequence[int], stop: tuple[str, ...]) -> int:
        """Return how many tokens a turn keeps: up to the first that completed a stop string."""
        ends = (n for n in range(1, len(generated) + 1) if stop and self.ends_with_stop(generated[:n], stop))
        return next(ends, len(generated))

    def _completing(self, stop: tuple[str, ...]) -> frozenset[int]:
        if stop not in self._may_end:
            last = {s[-1] for s in stop}
            plain = all(character.isascii() for character in last)
            self._may_end[stop] = frozenset(
                i for i, piece in enumerate(self._pieces) if not plain or any(c in last for c in piece)
            )
        return self._may_end[stop]

    def text(self, ids: Sequence[int]) -> str:
        """Return the text of generated ids, without the end-of-turn token."""
        return str(self._tokenizer.decode([i for i in ids if i not in self.end_ids], skip_special_tokens=False))
