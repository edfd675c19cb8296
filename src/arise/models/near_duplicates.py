"""Whether a proposal repeats a criterion: the same words are, similar words are put to the model for a decision."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from arise.types import Pair, Proposal

_GRAM = 4


def same_words(proposal: Proposal, criteria_text: str, rule_text: str) -> bool:
    """Whether criterion or rule are equal but for case, spaces and punctuation."""
    return _plain(proposal.criteria_text) == _plain(criteria_text) or _plain(proposal.rule_text) == _plain(rule_text)


def shortlist(proposal: Proposal, avoid: Sequence[Pair], threshold: float, limit: int = 3) -> list[Pair]:
    """The pairs most similar to a proposal, among those at least as similar as `threshold`."""
    text = f"{proposal.criteria_text} {proposal.rule_text}"
    scored = [(similarity(text, f"{p.rubric.criteria_text} {p.rubric.rule_text}"), p) for p in avoid]
    near = sorted((entry for entry in scored if entry[0] >= threshold), key=lambda entry: -entry[0])
    return [pair for _, pair in near[:limit]]


def similarity(first: str, second: str) -> float:
    """Cosine of character four-grams: 1 for equal words, near 0 for unrelated ones."""
    a, b = _grams(first), _grams(second)
    shared = sum(count * b[gram] for gram, count in a.items() if gram in b)
    norm = math.sqrt(sum(c * c for c in a.values()) * sum(c * c for c in b.values()))
    return shared / norm if norm else 0.0


@lru_cache(maxsize=1024)
def _grams(text: str) -> Counter[str]:
    plain = f" {_plain(text)} "
    return Counter(plain[i : i + _GRAM] for i in range(len(plain) - _GRAM + 1))


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))
