"""Contamination: find held-out tasks that a training corpus repeats, identical, near-identical or paraphrased."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from arise.tasks.sources import tests_digest
from arise.types import TaskSpec

Kind = Literal["identical", "near-identical", "paraphrased", "identical-tests"]
Embed = Callable[[Sequence[str]], NDArray[np.float32]]
"""Turns texts into rows of unit length."""

SHINGLE_WORDS = 3
NEAR_JACCARD, NEAR_CONTAINMENT = 0.5, 0.8
MIN_SHINGLES = 12
PARAPHRASE_WORDS = 0.58
PARAPHRASE_EMBEDDING = 0.87
NEIGHBOURS = 10
OUT_WORDS, OUT_BOTH = 0.45, 0.75
"""How much a pair must stand out from its neighbours, by words alone and by the sum of words and meaning.

Chosen on the first two sets of tests/unit/tasks, between the paraphrases and the independent tasks.
"""
COMMON_SHARE, COMMON_AMONG = 0.02, 100
"""Shingles in more than this share of a larger corpus are boilerplate and are ignored."""
_WORD = re.compile(r"[a-z]+|\d+")
_FILE = re.compile(r"[\w-]+\.[a-z]\w*")
_SUFFIX = re.compile(r"(?<=\w{3})(?:ings?|edly|ed|es|s|ly|ions?|ers?|or|e)$")


@dataclass(frozen=True)
class Text:
    """The compared parts of a task — `Text("csv-007", instruction, digest_of_tests)`."""

    task_id: str
    instruction: str
    tests: str = ""
    """A digest of its tests, or "" to skip their comparison."""


@dataclass(frozen=True)
class Match:
    """A held-out task that a training task repeats — `Match("a", "b", "near-identical", 0.83)`."""

    train: str
    held_out: str
    kind: Kind
    score: float


def find_overlap(train: Sequence[Text], held_out: Sequence[Text], embed: Embed | None = None) -> list[Match]:
    """Return every pair of overlapping tasks with its strongest kind of overlap, best first.

    Paraphrases are found by shared rare words, and with `embed` also by embedding similarity: by much similarity, or by
    more than a task has to its other neighbours.
    """
    found: dict[tuple[int, int], Match] = {}
    pairs = (*_same(train, held_out), *_near(train, held_out), *_paraphrased(train, held_out, embed))
    for (i, j), kind, score in pairs:
        found.setdefault((i, j), Match(train[i].task_id, held_out[j].task_id, kind, round(score, 3)))
    order: tuple[Kind, ...] = ("identical", "identical-tests", "near-identical", "paraphrased")
    return sorted(found.values(), key=lambda m: (order.index(m.kind), -m.score, m.held_out, m.train))


Pair = tuple[tuple[int, int], Kind, float]
Shingles = list[set[tuple[str, ...]]]


def words(text: str) -> list[str]:
    """Return lower-case words and numbers, without punctuation."""
    return _WORD.findall(text.lower())


def _same(train: Sequence[Text], held_out: Sequence[Text]) -> list[Pair]:
    by_words, by_tests = defaultdict(list), defaultdict(list)
    for j, text in enumerate(held_out):
        by_words[tuple(words(text.instruction))].append(j)
        if text.tests:
            by_tests[text.tests].append(j)
    found: list[Pair] = []
    for i, text in enumerate(train):
        found += [((i, j), "identical", 1.0) for j in by_words.get(tuple(words(text.instruction)), ())]
        found += [((i, j), "identical-tests", 1.0) for j in by_tests.get(text.tests, ()) if text.tests]
    return found


def _shingles(texts: Sequence[Text]) -> Shingles:
    found = []
    for text in texts:
        found_words = words(text.instruction)
        ends = range(max(1, len(found_words) - SHINGLE_WORDS + 1))
        found.append({tuple(found_words[at : at + SHINGLE_WORDS]) for at in ends})
    return found


def _rare(sides: tuple[Shingles, Shingles]) -> tuple[Shingles, Shingles]:
    """Remove boilerplate: shingles shared by many instructions of a large corpus are no evidence of overlap."""
    count = sum(map(len, sides))
    if count <= COMMON_AMONG:
        return sides
    seen = Counter(shingle for side in sides for shingles in side for shingle in shingles)
    common = {shingle for shingle, times in seen.items() if times > COMMON_SHARE * count}
    ours, theirs = ([shingles - common for shingles in side] for side in sides)
    return ours, theirs


def _near(train: Sequence[Text], held_out: Sequence[Text]) -> list[Pair]:
    """Return pairs that share most of their shingles, using an index of the held-out side."""
    ours, theirs = _rare((_shingles(train), _shingles(held_out)))
    index = defaultdict(list)
    for j, shingles in enumerate(theirs):
        for shingle in shingles:
            index[shingle].append(j)
    found: list[Pair] = []
    for i, shingles in enumerate(ours):
        for j, shared in Counter(j for shingle in shingles for j in index.get(shingle, ())).items():
            small, large = sorted((len(shingles), len(theirs[j])))
            jaccard, contained = shared / (small + large - shared), shared / small
            if jaccard >= NEAR_JACCARD or (contained >= NEAR_CONTAINMENT and small >= MIN_SHINGLES):
                found.append(((i, j), "near-identical", max(jaccard, contained)))
    return found


def _paraphrased(train: Sequence[Text], held_out: Sequence[Text], embed: Embed | None) -> list[Pair]:
    texts = [text.instruction for text in (*train, *held_out)]
    words_alike = _cosine(rare_words, texts, len(train))
    rules = [(words_alike, words_alike >= PARAPHRASE_WORDS), (words_alike, _standing_out(words_alike) >= OUT_WORDS)]
    if embed is not None:
        meaning_alike = _cosine(embed, texts, len(train))
        both = words_alike + meaning_alike
        rules.append((meaning_alike, meaning_alike >= PARAPHRASE_EMBEDDING))
        rules.append((both / 2.0, _standing_out(both) >= OUT_BOTH))
    found: list[Pair] = []
    for score, chosen in rules:
        found += [((int(i), int(j)), "paraphrased", float(score[i, j])) for i, j in np.argwhere(chosen)]
    return sorted(found, key=lambda pair: -pair[2])


def _cosine(measure: Embed, texts: Sequence[str], count: int) -> NDArray[np.float32]:
    """Return the similarity of each of the first `count` texts to each of the others."""
    rows = measure(texts)
    return rows[:count] @ rows[count:].T


def _standing_out(alike: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return how much more similar each pair is than the nearest other tasks of both its sides are on average.

    Tasks written after one template resemble each other all alike; a paraphrase resembles one task and few others.
    Minus infinity if a side has too few tasks to tell.
    """
    if min(alike.shape) <= NEIGHBOURS:
        return np.full_like(alike, -np.inf)
    return np.asarray(alike - (_others(alike)[:, None] + _others(alike.T)[None, :]) / 2.0, dtype=np.float32)


def _others(alike: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the mean similarity of each row's nearest neighbours, without the nearest of all."""
    nearest = np.sort(np.partition(alike, -NEIGHBOURS - 1, axis=1)[:, -NEIGHBOURS - 1 :], axis=1)
    return np.asarray(nearest[:, :-1].mean(axis=1))


def rare_words(texts: Sequence[str]) -> NDArray[np.float32]:
    """Return word stems and file names weighted by inverse document frequency, as unit-length rows."""
    stems = [
        Counter([*(_SUFFIX.sub("", word) for word in words(text)), *_FILE.findall(text.lower())]) for text in texts
    ]
    seen = Counter(stem for counted in stems for stem in counted)
    column = {stem: at for at, stem in enumerate(sorted(seen))}
    rows = np.zeros((len(texts), len(column)), dtype=np.float32)
    for row, counted in zip(rows, stems, strict=True):
        for stem, times in counted.items():
            row[column[stem]] = (1.0 + math.log(times)) * math.log((1.0 + len(texts)) / seen[stem])
    norm = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(norm > 0.0, norm, 1.0), dtype=np.float32)


def text_of(task: TaskSpec) -> Text:
    """Return the compared parts of a task."""
    verifiers = [step.verifier for step in task.steps] or [task.verifier]
    return Text(
        task.task.id,
        task.task.instruction,
        " ".join(tests_digest(folder) for each in verifiers for folder in each.folders),
    )
