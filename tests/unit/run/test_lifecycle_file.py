"""The pool that a run starts from, read from the exported life of another."""

import json
from dataclasses import replace
from pathlib import Path

from arise.method.lifecycle import evolve
from arise.run.lifecycle_file import FORMAT, VERSION, starting_pool
from arise.types.codec import to_json
from tests.unit.llm.builders import rubric
from tests.unit.text.test_rules import PROPOSAL


def exported(path: Path, numbers: list[int]) -> Path:
    pairs = [
        {"rubric": to_json(rubric(number)), "skills": [{"text": f"Keep habit {number}.", "revision": 0}]}
        for number in numbers
    ]
    path.write_text(json.dumps({"format": FORMAT, "version": VERSION, "iterations": 9, "pairs": pairs}))
    return path


def test_an_imported_id_is_never_given_again(tmp_path: Path) -> None:
    """A run that was itself started from an export has gaps in its numbers."""
    pool = starting_pool(exported(tmp_path / "life.json", [1, 3]))
    proposals = [replace(PROPOSAL, criteria_text=f"Criterion {n}.") for n in range(3)]
    later = evolve(pool, {}, iteration=10, proposals=proposals).pool
    assert [one.id for one in later.rubrics] == ["r001", "r003", "r004", "r005", "r006"]
