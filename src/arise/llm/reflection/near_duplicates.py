"""Detect proposals that repeat a criterion: equal words always do; for similar words the model and the record decide.

A proposal says on which rollouts it would fail (its issue evidence) and pass (its contrast evidence). If a similar
rubric was judged on them, its verdicts show whether it measures the same.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from arise.types import Pair, Proposal, Verdict

_GRAM = 4
_ENOUGH, _CONFIRMED, _REFUTED = 6, 0.9, 0.5


class VerdictMatch(NamedTuple):
    """How often a rubric's recorded verdicts are those a proposal expects — `VerdictMatch(14, 15, both=True)`."""

    same: int = 0
    shared: int = 0
    both: bool = False
    """Whether passes and fails were expected: agreement on one kind alone says little."""

    @property
    def rate(self) -> float | None:
        """Share of equal verdicts, None if there are too few."""
        return self.same / self.shared if self.both and self.shared >= _ENOUGH else None

    def __str__(self) -> str:
        return f"the verdicts it asks for were given on {self.same} of {self.shared} rollouts"


def verdict_match(proposal: Proposal, rubric_id: str, verdicts: Mapping[str, Mapping[str, Verdict]]) -> VerdictMatch:
    """Compare a rubric's recorded verdicts with those the proposal's evidence implies; missing ones do not count."""
    expected = dict.fromkeys(proposal.issue_refs, Verdict.FAIL) | dict.fromkeys(proposal.contrast_refs, Verdict.PASS)
    given = {ref: verdicts.get(ref, {}).get(rubric_id) for ref in expected}
    judged = [ref for ref, verdict in given.items() if verdict is not None]
    same = sum(given[ref] is expected[ref] for ref in judged)
    return VerdictMatch(same, len(judged), len({expected[ref] for ref in judged}) == 2)


def repeats(says_same: bool | None, agreed: VerdictMatch) -> bool:
    """Return the model's decision unless the record refutes it; without a decision, the record decides."""
    if says_same is None:
        return agreed.rate is not None and agreed.rate >= _CONFIRMED
    return says_same and not (agreed.rate is not None and agreed.rate <= _REFUTED)


def same_words(proposal: Proposal, criteria_text: str, rule_text: str) -> bool:
    """Return whether criterion or rule are equal up to case, spaces and punctuation."""
    return _plain(proposal.criteria_text) == _plain(criteria_text) or _plain(proposal.rule_text) == _plain(rule_text)


def shortlist(proposal: Proposal, avoid: Sequence[Pair], threshold: float, limit: int = 3) -> list[Pair]:
    """Return the pairs most similar to a proposal, at or above `threshold`."""
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
