"""The report says what the run folders hold, and an independent script finds the same digits."""

import gzip
import json
import re
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from arise.errors import AriseError
from arise.evaluation.attempts import read_raw, write_raw
from arise.report.comparison.behaviour import table_endings, table_lives
from arise.report.comparison.document import Table, to_latex
from arise.report.comparison.fairness import checks
from arise.report.comparison.measures import read_study
from arise.report.comparison.report import write_report
from arise.report.comparison.statistics import Interval
from arise.report.comparison.tables import interval_text, table_1, table_6
from arise.report.figures.draw import draw
from tests.synthetic_runs import write_run
from tests.unit.report.comparison.comparisons import METHODS, SCRIPT, a_comparison, recompute

ROOT = Path(__file__).parents[4]
RESULTS = ROOT / "docs" / "results"


def test_an_independent_script_finds_the_same_digits(tmp_path: Path) -> None:
    folder = a_comparison(tmp_path)
    write_report(folder)
    done = recompute(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all as printed" in done.stdout


def test_a_published_report_is_recomputed_without_its_runs(tmp_path: Path) -> None:
    folder = a_comparison(tmp_path)
    write_report(folder)
    with_runs = recompute(folder).stdout
    shutil.rmtree(folder / "runs")
    (folder / "comparison.json").unlink()
    done = recompute(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    times = 2 * len(METHODS) * 3  # Table 11 is printed twice, and times are not published
    assert int(done.stdout.split()[0]) == int(with_runs.split()[0]) - times
    page = gzip.decompress((folder / "attempts.csv.gz").read_bytes()).decode()
    won = next(line for line in page.splitlines() if line.startswith("arise,1,6,") and ",1,finished" in line)
    (folder / "attempts.csv.gz").write_bytes(gzip.compress(page.replace(won, won.replace(",1,fin", ",0,fin")).encode()))
    assert "Table 1. row 2" in recompute(folder).stdout


@pytest.mark.parametrize("published", sorted(RESULTS.glob("**/attempts.csv.gz")), ids=lambda path: path.parent.name)
def test_published_tables_follow_from_their_published_attempts(published: Path) -> None:
    done = recompute(published.parent)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_independent_script_notices_one_changed_attempt(tmp_path: Path) -> None:
    folder = a_comparison(tmp_path)
    write_report(folder)
    run = folder / "runs/arise/seed-1"
    with closing(sqlite3.connect(run / "run.db")) as db, db:
        db.execute("UPDATE attempts SET success = 1 - success WHERE label='after' AND task_id='held-2' AND attempt=1")
    assert "do not hold the same attempts" in recompute(folder).stderr
    attempts = read_raw(run, "after")
    (place,) = [n for n, made in enumerate(attempts) if (made.task_id, made.attempt) == ("held-2", 1)]
    attempts[place] = replace(attempts[place], success=not attempts[place].success)
    write_raw(run, "after", attempts)
    done = recompute(folder)
    assert done.returncode == 1
    for table in ("Table 1. row 2", "Table 6. row 2", "by training seed row 1", "no skill shown row 1", "Paired diff"):
        assert table in done.stdout
    (run / "evaluations" / "after.jsonl").unlink()
    assert "nothing to recompute from" in recompute(folder).stderr


def test_the_independent_script_notices_methods_that_changed_places(tmp_path: Path) -> None:
    folder = a_comparison(tmp_path)
    write_report(folder)
    page = (folder / "tables.md").read_text()
    swapped = page.replace("ARISE", "?").replace("Outcome-only RL", "ARISE").replace("?", "Outcome-only RL")
    (folder / "tables.md").write_text(swapped)
    assert recompute(folder).returncode == 1


def test_the_independent_script_is_independent() -> None:
    text = SCRIPT.read_text()
    assert "import arise" not in text
    assert "from arise" not in text


def test_the_report_holds_every_part(tmp_path: Path) -> None:
    folder = a_comparison(tmp_path)
    written = write_report(folder, draw)
    assert written.summary["finished"] == 6
    page, web = (folder / "report.md").read_text(), (folder / "report.html").read_text()
    assert page.startswith(f"# {folder.name}: 2 methods, 3 seeds, ")
    for words in (
        "The paper's claims, here",
        "Final held-out pass rate",
        "Paired differences",
        "Iterations to outcome-only's final pass rate",
        "How held-out attempts end",
        "Rubrics of a run",
        "Figure 3.",
        "Figure 5.",
        "Table 11.",
        "Was it fair?",
        "arise compare base.toml --out DIR",
        "small-scale study on the embedded world",
    ):
        assert words in page, words
        assert words.replace("'", "&#x27;") in web, words
    assert web.count("<svg") == page.count("](figures/") >= 5
    assert "<script" not in web
    assert 'src="' not in web
    assert "@import" not in web


def test_unfinished_runs_are_left_out_and_reported(tmp_path: Path) -> None:
    folder = a_comparison(tmp_path)
    with closing(sqlite3.connect(folder / "runs/arise/seed-1/run.db")) as db, db:
        db.execute("DELETE FROM attempts WHERE label='after'")
    written = write_report(folder)
    assert written.summary["finished"] == 5
    assert "1 of 6 runs are not finished" in (folder / "report.md").read_text()
    assert recompute(folder).returncode == 0


def test_a_comparison_without_a_finished_run_says_so(tmp_path: Path) -> None:
    folder = a_comparison(tmp_path, seeds=1)
    for method in METHODS:
        with closing(sqlite3.connect(folder / f"runs/{method}/seed-0/run.db")) as db, db:
            db.execute("DELETE FROM iterations")
    assert "no run" in write_report(folder).text
    with pytest.raises(AriseError, match="holds no comparison"):
        write_report(tmp_path / "nowhere")


def test_rates_by_hand(tmp_path: Path) -> None:
    """Task 0 and 2 are of domain data, 1 and 3 of text; after training tasks 0 and 1 pass, task 3 had a fault once."""
    fault = {("held-3", 2)}
    write_run(
        tmp_path / "runs/arise/seed-0",
        seed=0,
        success=lambda task, attempt, k: None if (task, attempt) in fault else k > 0 and task in ("held-0", "held-1"),
    )
    study = read_study([tmp_path / "runs/arise/seed-0"])
    assert table_1(study).rows[1] == ["ARISE", "50.0", "60.0", "54.5"]  # 3/6, 3/5, 6/11
    assert table_6(study).rows[1] == ["ARISE", "50.0", "50.0", "66.7", "55.6 ± 9.6"]
    assert table_endings(study).rows[1] == ["ARISE", "63.6", "57.1", "36.4", "50.0"]  # 7/11, 4/7, 4/11, 2/4
    assert table_lives(study) is None


def test_lifecycles_of_rubrics_by_hand(tmp_path: Path) -> None:
    """Seed 0: r1 is born, retired and found again, r2 retired and taken back. Seed 1: one that stays."""
    found_again = [(2, "r1", "born"), (2, "r2", "born"), (4, "r1", "retire"), (4, "r2", "retire")]
    found_again += [(6, "r1-again", "born"), (6, "r2", "reopen")]
    for seed, events in enumerate((found_again, [(2, "r1", "born")])):
        folder = tmp_path / f"runs/arise/seed-{seed}"
        write_run(folder, seed=seed, success=lambda *_: True, events=events)
    lives = table_lives(read_study([tmp_path / f"runs/arise/seed-{seed}" for seed in range(2)]))
    assert lives is not None
    assert lives.rows == [["ARISE", "2.0", "0.5", "1.0", "0.5", "1.5", "–"]]


def test_watched_verdicts_are_pooled_over_runs(tmp_path: Path) -> None:
    for seed, seen in enumerate(({"watched": 8, "watched_passes": 7}, {"watched": 2, "watched_passes": 2})):
        folder = write_run(
            tmp_path / f"runs/watch/seed-{seed}", seed=seed, success=lambda *_: True, events=[(2, "r1", "born")]
        )
        with closing(sqlite3.connect(folder / "run.db")) as db, db:
            ((metrics,),) = db.execute("SELECT metrics FROM iterations WHERE k=4")
            db.execute("UPDATE iterations SET metrics=? WHERE k=4", (json.dumps(json.loads(metrics) | seen),))
    lives = table_lives(read_study([tmp_path / f"runs/watch/seed-{seed}" for seed in range(2)]))
    assert lives is not None
    assert lives.rows[0][0] == "ARISE, watch"
    assert lives.rows[0][-1] == "90.0"  # 9 of 10


@pytest.mark.parametrize(
    ("broken", "promise"),
    [
        ("UPDATE meta SET value='other' WHERE key='weights'", "the same initial weights"),
        ("UPDATE meta SET value='2' WHERE key='threads'", "the same number of threads"),
        ("UPDATE attempts SET task_id='elsewhere' WHERE task_id='held-0' AND attempt=0", "the same held-out tasks"),
        ("DELETE FROM groups WHERE k=2 AND slot=0", "the same rollouts"),
        ("UPDATE attempts SET skill_bytes=9 WHERE task_id='held-0' AND attempt=0", "no evolved skill"),
    ],
)
def test_a_violated_fairness_check_is_found(tmp_path: Path, broken: str, promise: str) -> None:
    folder = a_comparison(tmp_path, seeds=2)
    assert all(check.kept for check in checks(read_study([folder])))
    with closing(sqlite3.connect(folder / "runs/arise/seed-1/run.db")) as db, db:
        db.execute(broken)
    (found,) = [check.promise for check in checks(read_study([folder])) if not check.kept]
    assert found.startswith(promise)


def test_zero_differences_print_without_a_minus() -> None:
    assert interval_text(Interval(-1e-15, -0.04, 6.1, 5), signed=True) == "+0.0 (95 % +0.0 to +6.1)"
    assert interval_text(Interval(-1e-15, None, None, 1)) == "0.0 (one seed: no interval)"


def test_latex_is_escaped() -> None:
    text = to_latex(Table("a % of b", ["Method", "x_1"], [["A & B", "1.0 ± 0.1"]], frozenset({(0, 1)})))
    assert r"a \% of b" in text
    assert r"\textbf{x\_1}" in text
    assert r"A \& B & \textbf{1.0 $\pm$ 0.1} \\" in text


def test_runs_of_one_name_and_seed_are_not_merged(tmp_path: Path) -> None:
    for place in ("a/first", "b/first"):
        write_run(tmp_path / place, seed=0, success=lambda *_: True)
    with pytest.raises(AriseError, match="are both called 'first' and have seed 0"):
        read_study([tmp_path / "a/first", tmp_path / "b/first"])
    assert len(read_study([tmp_path / "a/first", tmp_path / "b/.." / "a/first"])["first"]) == 1


def test_speed_is_reported_over_the_seeds_that_both_methods_have(tmp_path: Path) -> None:
    folder = a_comparison(tmp_path)
    for seed in (1, 2):
        with closing(sqlite3.connect(folder / f"runs/outcome-only/seed-{seed}/run.db")) as db, db:
            db.execute("DELETE FROM attempts WHERE label='after'")
    write_report(folder)
    assert re.search(r"\| ARISE \| \w+ \| one seed: no interval \| [\d.]+ \| 1 \|", (folder / "report.md").read_text())
    assert recompute(folder).returncode == 0


def test_figures_of_runs_without_any_evaluation_are_drawn(tmp_path: Path) -> None:
    folder = a_comparison(tmp_path)
    with closing(sqlite3.connect(folder / "runs/arise/seed-1/run.db")) as db, db:
        db.execute("DELETE FROM attempts")
    assert draw(read_study([folder]), tmp_path / "figures", ["svg"])
