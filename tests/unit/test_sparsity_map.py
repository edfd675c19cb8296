"""The map puts comparisons at several depths side by side, from what `arise compare` wrote."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
import tomli_w
from benchmarks.sparsity import Curve
from benchmarks.sparsity_map import draw, read, speed_up, stopped, table

NEVER = Curve(np.zeros(1), np.ones(1))


def depth(folder: Path, number: int, seeds: tuple[str, str] = ("0", "1"), iterations: int = 20) -> Path:
    first, second = seeds
    folder.mkdir()
    (folder / "base.toml").write_text(
        tomli_w.dumps({"tasks": {"depth": number}, "train": {"iterations": iterations, "seed": int(first)}})
    )
    ends = {"arise": {first: 90.0, second: 80.0}, "outcome-only": {first: 60.0}}
    page = {
        "curves": {
            "arise": {first: {"0": 0.0, "10": 40.0, "20": 90.0}, second: {"0": 0.0, "10": 60.0, "20": 80.0}},
            "outcome-only": {first: {"0": 0.0, "10": 10.0, "20": 60.0}},
        },
        "final": ends,
        "all_fail_at_start": {"arise": {first: [30, 32], second: [31, 32]}, "outcome-only": {first: [32, 32]}},
        "unfinished": {"outcome-only": {second: {"0": 0.0, "10": 5.0}}},
    }
    (folder / "results.json").write_text(json.dumps(page))
    lines = ["method,seed,iteration,task,attempt,domain,success,stop"]
    lines.append(f"outcome-only,{second},20,task-9,0,science,1,finished")  # of the run that is not finished
    for method, by_seed in ends.items():
        for seed, rate in by_seed.items():
            lines += [f"{method},{seed},20,task-{n},0,science,{int(n < rate / 10)},finished" for n in range(10)]
    (folder / "attempts.csv.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    return folder


def test_each_row_has_the_mean_curve_the_first_half_and_the_end(tmp_path: Path) -> None:
    (cells,) = read([depth(tmp_path / "depth-4", 4)])
    rows = table(cells)
    assert rows[3] == "| 4 | 95 | ARISE | 0, 1 | 0 | 50 | 85 | 10 | 85 (21 to 100) | +30 | +30 |"
    assert rows[2] == "| 4 | 100 | Outcome-only RL | 0 | 0 | 10 | 60 | 18 | 60 | – | – |"


def test_folders_with_the_same_depth_and_settings_are_seeds_of_one_comparison(tmp_path: Path) -> None:
    folders = [depth(tmp_path / "a", 4), depth(tmp_path / "deep", 5), depth(tmp_path / "b", 4, ("2", "3"))]
    four, five = read(folders)
    assert [tuple(cell.ends) for cell in four] == [("0", "2"), ("0", "1", "2", "3")]
    assert table(four)[3].endswith("| 85 (76 to 94) | +30 (+30 to +30) | +30 (+0 to +60) |"), "paired"
    assert {cell.depth for cell in five} == {5}
    with pytest.raises(SystemExit, match="c: arise with seed 0 is in another folder too"):
        read([*folders, depth(tmp_path / "c", 4)])
    with pytest.raises(SystemExit, match=r"d: base\.toml differs"):
        read([*folders, depth(tmp_path / "d", 4, ("4", "5"), iterations=30)])


def test_a_run_that_was_stopped_is_named_and_not_averaged(tmp_path: Path) -> None:
    assert stopped(depth(tmp_path / "d", 4)) == ["depth 4, Outcome-only RL, seed 1: 0 % at 0, 5 % at 10"]


def test_a_speed_up_is_a_lower_bound_where_the_reference_never_gets_there() -> None:
    assert speed_up(20, 40, 50) == (2.0, False)
    assert speed_up(20, None, 50) == (2.5, True)
    assert speed_up(None, 40, 50) is None


def test_the_picture_is_drawn(tmp_path: Path) -> None:
    draw(tmp_path / "map.png", read([depth(tmp_path / "d", 4)]), {4: [NEVER] * 3})
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")
