"""The report shows curves over training, also those of runs that were stopped."""

import json
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from arise.report.comparison.report import write_report
from tests.synthetic_runs import write_run
from tests.unit.report.comparison.comparisons import a_comparison, recompute


@pytest.mark.parametrize("published", [False, True], ids=["with runs", "published"])
def test_a_run_that_was_stopped_is_shown_as_far_as_it_came_and_counts_nowhere_else(
    tmp_path: Path, published: bool
) -> None:
    folder = a_comparison(tmp_path)
    run = folder / "runs" / "arise" / "seed-2"
    with closing(sqlite3.connect(run / "run.db")) as db, db:
        db.execute("DELETE FROM iterations WHERE k >= 5")
        db.execute("DELETE FROM attempts WHERE label='after'")
    summary = write_report(folder).summary
    assert (summary["finished"], summary["planned"]) == (5, 6)
    assert list(summary["unfinished"]["arise"][2]) == [0, 2, 4]
    assert list(summary["final"]["arise"]) == [0, 1]
    page = (folder / "report.md").read_text()
    assert re.search(r"^\| ARISE \| 2 \| 5 of 6 \| 0.0 \| [\d.]+ \| [\d.]+ \|$", page, re.MULTILINE)
    if published:
        shutil.rmtree(folder / "runs")
        (folder / "comparison.json").unlink()
    done = recompute(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    (folder / "report.md").write_text(page.replace("5 of 6 | 0.0", "5 of 6 | 0.1"))
    assert "Runs that are not finished row 1" in recompute(folder).stdout


def test_the_report_says_when_the_mean_curve_stands_at_half(tmp_path: Path) -> None:
    def at_once(task: str, attempt: int, k: int) -> bool:
        return k > 2 or (k == 2 and task == "held-0")

    for seed in range(2):
        write_run(tmp_path / "runs" / "arise" / f"seed-{seed}", seed=seed, success=at_once)
        write_run(tmp_path / "runs" / "vade" / f"seed-{seed}", seed=seed, success=lambda *_: False)
    page = {"base": "a.toml", "bases": ["a.toml", "b.toml"], "methods": ["arise", "vade"], "seeds": [0, 1]}
    (tmp_path / "comparison.json").write_text(json.dumps(page | {"jobs": 1, "threads": 1}))
    write_report(tmp_path)
    report = (tmp_path / "report.md").read_text()
    assert "a with b" in report.splitlines()[0]
    assert "| ARISE | 2 | 4 | 4 to 4 | 0.0 | 25.0 | 100.0 | 100.0 |" in report
    assert "| VADE | 2 | never | never to never | 0.0 | 0.0 | 0.0 | 0.0 |" in report
    (tmp_path / "report.md").write_text(report.replace("| 2 | 4 | 4 to 4", "| 2 | 2 | 4 to 4"))
    assert "over training row 1" in recompute(tmp_path).stdout
