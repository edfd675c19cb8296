"""Speed and memory: a small version always, the full one with the slow tests."""

from pathlib import Path

import pytest
from benchmarks.analyze import measure, write


def grown(folder: Path, few: int, many: int, turns: int) -> tuple[float, float]:
    """Processor seconds for many attempts, and by how many megabytes the peak exceeds that for few."""
    found = []
    for count in (few, many):
        write(folder / f"{count}.jsonl", count, turns)
        found.append(measure(folder / f"{count}.jsonl"))
    return found[1]["cpu_seconds"], found[1]["peak_mb"] - found[0]["peak_mb"]


def test_memory_does_not_grow_with_the_number_of_attempts(tmp_path: Path) -> None:
    _, more = grown(tmp_path, 20, 200, 20)
    assert more < 25


@pytest.mark.slow
def test_two_thousand_attempts_of_fifty_turns(tmp_path: Path) -> None:
    seconds, more = grown(tmp_path, 200, 2000, 50)
    assert seconds <= 60
    assert more <= 100
