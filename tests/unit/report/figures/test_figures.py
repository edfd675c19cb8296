"""Figures are drawn in every format from run folders alone, and the same numbers give the same bytes."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from typer.testing import CliRunner

from arise.cli.app import app
from arise.report.comparison.measures import read_study
from arise.report.figures.draw import FIGURES, draw
from arise.report.figures.efficiency import every_curve
from arise.report.figures.retention import retention_after_retirement
from tests.synthetic_runs import write_run

BEGINNINGS = {"pdf": b"%PDF", "svg": b"<?xml", "png": b"\x89PNG"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("study") / "runs"
    found = []
    for method in ("arise", "no-skill-injection", "outcome-only"):
        for seed in (0, 1):
            events = [(2, "r1", "born"), (4, "r1", "retire")] if method != "outcome-only" else []
            found.append(
                write_run(
                    folder / method / f"seed-{seed}",
                    seed=seed,
                    success=lambda _, attempt, k, seed=seed: k + attempt + seed > 3,  # type: ignore[misc]
                    events=events,
                    retention={"r1": {6: "1101"}} if method == "arise" else None,
                )
            )
    return found


def test_every_figure_in_every_format(runs: list[Path], tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["figures", *map(str, runs), "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    for name in FIGURES:
        for kind, beginning in BEGINNINGS.items():
            assert (tmp_path / f"{name}.{kind}").read_bytes().startswith(beginning)
        ElementTree.parse(tmp_path / f"{name}.svg")  # noqa: S314 - our own file


def test_the_same_numbers_give_the_same_bytes(runs: list[Path], tmp_path: Path) -> None:
    study = read_study(runs)
    for place in ("one", "two"):
        draw(study, tmp_path / place)
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes(), path.name


def test_a_place_without_a_method_is_left_blank(tmp_path: Path) -> None:
    methods = ("arise", "outcome-only", "vade", "online-rubrics", "frozen-rubrics")
    study = read_study([write_run(tmp_path / "runs" / m / "seed-0", seed=0, success=lambda *_: True) for m in methods])
    panels = every_curve(study).axes
    assert [axes.get_visible() for axes in panels] == [True] * 5 + [False]
    assert [bool(axes.xaxis.get_tick_params()["labelbottom"]) for axes in panels[:5]] == [
        False,
        False,
        True,
        True,
        True,
    ]


def test_figures_of_a_single_run_are_drawn(tmp_path: Path) -> None:
    write_run(tmp_path / "mine", seed=0, success=lambda *given: given[2] > 2)
    done = CliRunner().invoke(app, ["figures", str(tmp_path / "mine"), "--out", str(tmp_path), "--formats", "svg"])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "figure-3.svg").is_file()
    assert not (tmp_path / "figure-6.svg").exists()  # nobody asked for its retention


def test_retention_is_drawn_at_the_checkpoints_that_the_schedule_keeps(tmp_path: Path) -> None:
    write_run(
        tmp_path / "mine",
        seed=0,
        success=lambda *_: True,
        iterations=12,
        changes={"storage": {"keep_every": 4}},
        events=[(2, "r1", "born"), (4, "r1", "retire")],
        retention={"r1": {8: "1111", 11: "0000", 12: "1101"}},
    )
    figure = retention_after_retirement(read_study([tmp_path / "mine"]))
    assert figure is not None
    drawn = figure.axes[0].lines[-1]
    assert np.asarray(drawn.get_xydata()).tolist() == [[8, 1.0], [12, 0.75]]


def test_a_run_under_way_has_no_final_rate(tmp_path: Path) -> None:
    write_run(tmp_path / "mine", seed=0, success=lambda *given: given[2] > 2, events=[(2, "r1", "born")])
    with closing(sqlite3.connect(tmp_path / "mine/run.db")) as db, db:
        db.execute("DELETE FROM attempts WHERE label='after'")
    done = CliRunner().invoke(app, ["figures", str(tmp_path / "mine"), "--out", str(tmp_path), "--formats", "svg"])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "figure-4.svg").is_file()
    assert not (tmp_path / "figure-3.svg").exists()
    done = CliRunner().invoke(app, ["tables", str(tmp_path / "mine"), "--out", str(tmp_path)])
    assert done.exit_code == 5
    assert "has its last evaluation yet" in done.output


def test_tables_from_runs(runs: list[Path], tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["tables", *map(str, runs), "--out", str(tmp_path), "--json"])
    assert done.exit_code == 0, done.output
    assert "Table 6." in (tmp_path / "tables.md").read_text()
    assert r"\begin{tabular}" in (tmp_path / "tables.tex").read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [(["figures", "nowhere"], 5, "holds no run"), (["figures", "nowhere", "--formats", "bmp"], 2, "none of pdf")],
)
def test_errors_are_one_message(arguments: list[str], code: int, message: str) -> None:
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == code
    assert message in done.output


def test_without_matplotlib_the_remedy_is_named(tmp_path: Path) -> None:
    run = write_run(tmp_path / "mine", seed=0, success=lambda *_: True)
    code = "import sys; sys.modules['matplotlib'] = None; from arise.cli.app import app; app(['figures', sys.argv[1]])"
    done = subprocess.run(
        [sys.executable, "-c", code, str(run)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 2
    assert "pip install 'arise-rl[figures]'" in done.stderr
    assert "Traceback" not in done.stderr
