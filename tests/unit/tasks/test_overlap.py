"""Overlap of corpora: what it finds, what it leaves alone, how long it takes, and that training refuses it."""

import random
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from arise.cli.tasks import app
from arise.compose.corpora import require_tasks
from arise.config import Config
from arise.errors import AriseError, Exit
from arise.tasks.overlap import Match, Text, find_overlap
from tests.task_folders import DIFF_TEST, write_task
from tests.unit.tasks.instructions import REWORDED, distinct, nearly


def texts(prefix: str, instructions: Sequence[str]) -> list[Text]:
    return [Text(f"{prefix}{at}", instruction) for at, instruction in enumerate(instructions)]


@pytest.fixture(scope="module")
def planted() -> tuple[list[Text], list[Text], list[Match]]:
    """1,700 training and 180 held-out instructions; 20 of the latter come back nearly the same, 20 reworded."""
    every, rng = distinct(1880), random.Random(1)
    held_out = [*every[1700:1860], *(first for first, _ in REWORDED)]
    train = [*every[:1660], *(nearly(text, rng) for text in held_out[:20]), *(second for _, second in REWORDED)]
    ours, theirs = texts("t", train), texts("e", held_out)
    return ours, theirs, find_overlap(ours, theirs)


def test_planted_paraphrases_are_found(planted: tuple[list[Text], list[Text], list[Match]]) -> None:
    found = {(match.train, match.held_out): match.kind for match in planted[2]}
    near = [found.get((f"t{1660 + at}", f"e{at}")) for at in range(20)]
    reworded = [(f"t{1680 + at}", f"e{160 + at}") in found for at in range(20)]
    assert near == ["near-identical"] * 20
    assert sum(reworded) >= 15


def test_distinct_instructions_are_left_alone(planted: tuple[list[Text], list[Text], list[Match]]) -> None:
    real = {(f"t{1660 + at}", f"e{at}") for at in range(20)} | {(f"t{1680 + at}", f"e{160 + at}") for at in range(20)}
    alarms = {match.held_out for match in planted[2] if (match.train, match.held_out) not in real}
    assert len(alarms) <= 0.02 * 180


def test_comparing_them_takes_less_than_30_seconds(planted: tuple[list[Text], list[Text], list[Match]]) -> None:
    begun = time.perf_counter()
    find_overlap(planted[0], planted[1])
    assert time.perf_counter() - begun < 30


def test_identical_instructions_and_identical_tests_are_distinguished() -> None:
    train = [Text("a", "Sort the list, please!", "x"), Text("b", "Draw a house.", "y")]
    held_out = [Text("c", "sort the list please", "z"), Text("d", "Write a poem about rain.", "y")]
    found = [(match.train, match.held_out, match.kind) for match in find_overlap(train, held_out)]
    assert found == [("a", "c", "identical"), ("b", "d", "identical-tests")]


def test_an_embedding_finds_what_shares_no_word() -> None:
    def embed(given: Sequence[str]) -> "np.ndarray[tuple[int, ...], np.dtype[np.float32]]":
        return np.array([[1, 0] if "cat" in text or "feline" in text else [0, 1] for text in given], dtype=np.float32)

    train, held_out = [Text("a", "Feed my cat."), Text("b", "Sing.")], [Text("c", "Nourish the feline animal of mine.")]
    assert find_overlap(train, held_out) == []
    assert [(m.train, m.kind) for m in find_overlap(train, held_out, embed)] == [("a", "paraphrased")]


def corpus(folder: Path, name: str, instruction: str, test: str = DIFF_TEST) -> None:
    (write_task(folder / name, test=test) / "instruction.md").write_text(instruction)


def test_the_command_lists_repetitions_and_fails(tmp_path: Path) -> None:
    corpus(tmp_path / "train", "one", "Count the words in book.txt.")
    corpus(tmp_path / "eval", "two", "Count the words in book.txt", DIFF_TEST + "# two\n")
    done = CliRunner().invoke(app, ["overlap", str(tmp_path / "train"), str(tmp_path / "eval")])
    assert done.exit_code == Exit.TASKS
    assert "identical" in done.stdout
    assert "1 of 1 held-out tasks" in done.stdout


def test_training_refuses_repeated_tasks_unless_they_are_named(tmp_path: Path) -> None:
    corpus(tmp_path / "train", "one", "Count the words in book.txt.")
    corpus(tmp_path / "eval", "two", "Count the words in book.txt.", DIFF_TEST + "# two\n")
    given = {"kind": "harbor", "train": str(tmp_path / "train"), "evaluation": str(tmp_path / "eval")}
    with pytest.raises(AriseError, match="one repeats two") as caught:
        require_tasks(Config.model_validate({"tasks": given}))
    assert caught.value.exit_code is Exit.TASKS
    assert "tasks.allow_overlap" in caught.value.remedy
    require_tasks(Config.model_validate({"tasks": given | {"allow_overlap": ["two"]}}))
