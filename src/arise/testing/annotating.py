"""Annotate task types from the words of an instruction, for an expert without a language model.

Rare words of the registry weigh more than common ones. A type matches if its score stands out; types that come close
are named for the second pass, which asks only about them with a lower threshold.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

CLEAR, FAIR, STRANGE = 0.4, 0.18, 0.8
"""Shares of an instruction's weight that match outright or come near; the weight of a word the registry lacks."""
_COMMON = {
    "and",
    "the",
    "for",
    "from",
    "with",
    "all",
    "one",
    "two",
    "are",
    "not",
    "into",
    "each",
    "every",
    "out",
    "its",
}
_ENDINGS = re.compile(r"(?:izations?|ations?|ements?|ings?|ions?|ments?|ness|ers?|ies|ed|es|al|s|e|y)$")


def annotate(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the reply to an annotation prompt in the requested format; a short registry uses a lower threshold."""
    registry, tasks = data["task_flow_registry"], data["tasks"]
    weights = _weights(registry)
    least = CLEAR if len(registry) > 10 else FAIR
    return {"judgments": [_judgment(task, registry, weights, least) for task in tasks]}


def _judgment(
    task: Mapping[str, Any], registry: Sequence[Mapping[str, str]], weights: Mapping[str, float], least: float
) -> dict[str, Any]:
    wanted = set(_stems(_demand(task["instruction"])))
    scores = {entry["id"]: _score(wanted, entry, weights) for entry in registry}
    ranked = sorted(scores, key=lambda name: -scores[name])
    best = scores[ranked[0]]
    matched = [name for name in ranked if scores[name] >= max(least, 0.8 * best)]
    near = [name for name in ranked[:3] if scores[name] >= FAIR / 2]
    return {
        "task_key": task["task_key"],
        "matched_tag_ids": matched,
        "match_rationale": "the instruction uses the words of the definition" if matched else "",
        "uncovered": None if matched else _uncovered(task["instruction"], near),
        "confidence": "high" if best >= 2 * least else "medium" if matched else "low",
    }


def _score(wanted: set[str], entry: Mapping[str, str], weights: Mapping[str, float]) -> float:
    """Return the share of the instruction's weight that a type explains; its name counts fully, its criteria partly."""
    name, definition = set(_stems(entry["id"].replace("-", " "))), set(_stems(entry["definition"]))
    criteria = set(_stems(entry["true_criteria"]))
    known = [word for word in wanted if word in weights]
    strange = len(wanted - weights.keys() - _COMMON) * STRANGE
    total = sum(weights[word] for word in known) + strange or 1.0
    parts = (1.0 if w in name else 0.7 if w in definition else 0.3 if w in criteria else 0.0 for w in known)
    return sum(part * weights[word] for part, word in zip(parts, known, strict=True)) / total


def _weights(registry: Sequence[Mapping[str, str]]) -> dict[str, float]:
    texts = [{w for key in ("id", "definition", "true_criteria") for w in _stems(e[key])} for e in registry]
    counts = Counter(word for text in texts for word in text)
    return {word: math.log((1 + len(texts)) / count) for word, count in counts.items() if word not in _COMMON}


def _demand(instruction: str) -> str:
    """Return the first sentence without file names: it states the request, later ones say how and where."""
    plain = re.sub(r"\S*[./]\w\S*", " ", instruction.strip())
    return re.split(r"[.!?:]\s|\n\n", plain, maxsplit=1)[0]


def _stems(text: str) -> list[str]:
    words = re.findall(r"[a-z]{3,}", text.lower().replace("-", " "))
    return [_ENDINGS.sub("", word) if len(word) > 4 else word for word in words]


def _uncovered(instruction: str, near: Sequence[str]) -> dict[str, Any]:
    words = re.findall(r"[a-z]{4,}", instruction.lower())[:2] or ["unnamed"]
    return {
        "process_name": "-".join(words),
        "definition": "a process that the registry does not name",
        "observable_outcome": "the result that the instruction asks for",
        "nearest_tag_ids": list(near),
        "distinction": "the instruction shares too few words with them" if near else "",
    }
