"""The map puts comparisons at several depths side by side, from what `arise compare` wrote."""

import json
from pathlib import Path

import numpy as np
import tomli_w
from benchmarks.sparsity import Curve
from benchmarks.sparsity_map import draw, read, speed_up, stopped, table

NEVER = Curve(np.zeros(1), np.ones(1))


def depth(folder: Path, number: int) -> Path:
    folder.mkdir()
    (folder / "base.toml").write_text(tomli_w.dumps({"tasks": {"depth": number}, "train": {"iterations": 20}}))
    page = {
        "curves": {
            "arise": {"0": {"0": 0.0, "10": 40.0, "20": 90.0}, "1": {"0": 0.0, "10": 60.0, "20": 80.0}},
            "outcome-only": {"0": {"0": 0.0, "10": 10.0, "20": 60.0}},
        },
        "final": {"arise": {"0": 90.0, "1": 80.0}, "outcome-only": {"0": 60.0}},
        "all_fail_at_start": {"arise": {"0": [30, 32], "1": [31, 32]}, "outcome-only": {"0": [32, 32]}},
        "unfinished": {"outcome-only": {"1": {"0": 0.0, "10": 5.0}}},
    }
    (folder / "results.json").write_text(json.dumps(page))
    return folder


def test_each_row_has_the_mean_curve_the_first_half_and_the_end(tmp_path: Path) -> None:
    rows = table(read(depth(tmp_path / "depth-4", 4)))
    assert rows[3] == "| 4 | 95 | ARISE | 0, 1 | 0 | 50 | 85 | 10 | 85 (21 to 100) |"
    assert rows[2] == "| 4 | 100 | Outcome-only RL | 0 | 0 | 10 | 60 | 18 | 60 |"


def test_a_run_that_was_stopped_is_named_and_not_averaged(tmp_path: Path) -> None:
    assert stopped(depth(tmp_path / "d", 4)) == ["depth 4, Outcome-only RL, seed 1: 0 % at 0, 5 % at 10"]


def test_a_speed_up_is_a_lower_bound_where_the_reference_never_gets_there() -> None:
    assert speed_up(20, 40, 50) == (2.0, False)
    assert speed_up(20, None, 50) == (2.5, True)
    assert speed_up(None, 40, 50) is None


def test_the_picture_is_drawn(tmp_path: Path) -> None:
    draw(tmp_path / "map.png", [read(depth(tmp_path / "d", 4))], {4: [NEVER] * 3})
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")
