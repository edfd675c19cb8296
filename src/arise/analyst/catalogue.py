"""Map texts to patterns: the analyst's own sentences match exactly, other texts the nearest pattern.

A text close to no pattern stays without one: the caller reports an absence with its reason, never a verdict.
"""

import math
import re
import tomllib
from collections import Counter
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files

from arise.analyst.vocabulary import vocabulary
from arise.taxonomy import Pattern, patterns
from arise.types import DiagnosticItem, Rubric

NEAR = 0.25
"""Least weighted word overlap at which a foreign text is about a pattern: the paper's rubrics score 0.33 and more,
unrelated ones 0.11 and less."""
_STOP = vocabulary("common_words")
_WORD = re.compile(r"[a-z]{3,}")


@dataclass(frozen=True)
class Miss:
    """One way to fail: what is observed, and what to do at that point."""

    signal: str
    advice: str


@dataclass(frozen=True)
class Wording:
    """All texts of the analyst about one pattern."""

    pattern: Pattern
    condition: str
    behaviour: str
    criterion: str
    applies: str
    rule: str
    skill: str
    again: str
    point: str
    seen: str
    misses: dict[str, Miss]


@cache
def wordings() -> dict[str, Wording]:
    """Return the wording of every pattern, by id."""
    rows = tomllib.loads(files(__package__).joinpath("texts.toml").read_text(encoding="utf-8"))
    return {
        pattern.id: Wording(
            pattern, **(rows[pattern.id] | {"misses": {k: Miss(*v) for k, v in rows[pattern.id]["misses"].items()}})
        )
        for pattern in patterns()
    }


@lru_cache(maxsize=4096)
def pattern_of_rubric(rubric: Rubric) -> str | None:
    """Return the pattern of a rubric: by its exact criterion, else by the similarity of its whole text."""
    exact = _by_sentence().get(_normal(rubric.criteria_text))
    if exact:
        return exact
    return _nearest(f"{rubric.criteria_text} {rubric.applicability_condition} {rubric.rule_text}", rubric.issue_tag)


@lru_cache(maxsize=8192)
def pattern_of_item(item: DiagnosticItem) -> str | None:
    """Return the pattern that a diagnostic item instantiates: by its exact condition, else by similarity."""
    condition = item.text.removeprefix("When ").partition(", the agent ")[0]
    return _by_sentence().get(_normal(condition)) or _nearest(item.text, item.issue_tag)


def miss_of_item(item: DiagnosticItem, pattern_id: str) -> str:
    """Return the way of failing that an item reports; empty if its signals name none."""
    for key, miss in wordings()[pattern_id].misses.items():
        if miss.signal in item.observable_signals:
            return key
    return ""


@cache
def _by_sentence() -> dict[str, str]:
    table = {_normal(w.condition): w.pattern.id for w in wordings().values()}
    return table | {_normal(w.criterion): w.pattern.id for w in wordings().values()}


def _normal(text: str) -> str:
    return " ".join(re.findall(r"[a-z]+", text.lower()))


def _stems(text: str) -> set[str]:
    """Return content words cut to their stems, so that `validated` and `validation` match."""
    return {word[:6] for word in _WORD.findall(text.lower()) if word not in _STOP}


@cache
def _profiles() -> tuple[dict[str, set[str]], dict[str, float]]:
    """Return the stems of each pattern, and how distinctive each stem is within the catalogue."""
    stems = {}
    for pattern_id, w in wordings().items():
        p = w.pattern
        parts = (
            p.name.replace("_", " "),
            p.when,
            p.good,
            p.bad,
            w.condition,
            w.behaviour,
            w.criterion,
            w.rule,
            w.skill,
        )
        stems[pattern_id] = _stems(" ".join(parts))
    spread = Counter(stem for own in stems.values() for stem in own)
    return stems, {stem: math.log(1 + len(stems) / count) for stem, count in spread.items()}


def _nearest(text: str, issue_tag: str) -> str | None:
    """Return the pattern with the same tag whose words cover the text best, if the coverage is sufficient."""
    profiles, weight = _profiles()
    stems = _stems(text)
    rare = max(weight.values())
    total = sum(weight.get(stem, rare) for stem in stems)
    if not total:
        return None
    tagged = [p.id for p in patterns() if p.issue_tag == issue_tag]
    scores = {i: sum(weight[stem] for stem in stems & profiles[i]) / total for i in tagged}
    best = max(scores, key=lambda i: scores[i], default=None)
    return best if best is not None and scores[best] >= NEAR else None
