"""`arise compare` from nothing to the report: killed on the way, continued, not repeated."""

import json
import signal
import sqlite3
import subprocess
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.runs import TINY, arise, environment
from tests.leftovers import processes_with

pytestmark = pytest.mark.timeout(1200)
BASE = Path(__file__).parents[2] / "configs" / "embedded.toml"
SMALL = ("train.iterations=2", "pool.update_every=1", "evidence.window=1", "evaluation.every=1")


@dataclass(frozen=True)
class Comparison:
    """Two methods over some seeds, in a folder."""

    folder: Path
    seeds: int

    def command(self, *changes: str) -> list[str]:
        return command(self.folder, self.seeds, *changes)


def command(folder: Path, seeds: int, *changes: str) -> list[str]:
    sets = [part for change in (*TINY, *SMALL, *changes) for part in ("--set", change)]
    methods = ["--methods", "arise,frozen-rubrics", "--seeds", f"0-{seeds - 1}"]
    return ["compare", str(BASE), *methods, "--out", str(folder), "--jobs", "2", *sets]


def call(cache: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Four runs in a row take longer than one command may elsewhere."""
    line, given = arise(*arguments), environment(cache)
    return subprocess.run(line, env=given, capture_output=True, text=True, timeout=800, check=False)


def committed(run: Path) -> int:
    try:
        with closing(sqlite3.connect(f"file:{run / 'run.db'}?mode=ro", uri=True)) as db:
            return int(db.execute("SELECT COUNT(*) FROM iterations").fetchone()[0])
    except sqlite3.OperationalError:
        return 0


def until(what: str, seconds: float, condition: object) -> None:
    deadline = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        time.sleep(0.05)


@pytest.fixture(scope="module", params=[1, pytest.param(2, marks=pytest.mark.slow)], ids=["one seed", "two seeds"])
def compared(request: pytest.FixtureRequest, cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """A comparison whose first process was killed by force while it worked, then finished by a second."""
    found = Comparison(tmp_path_factory.mktemp("comparison") / "out", request.param)
    folder = found.folder
    process = subprocess.Popen(arise(*found.command()), env=environment(cache), stdout=subprocess.DEVNULL)
    try:
        until("a first iteration", 600, lambda: committed(folder / "runs/arise/seed-0") or process.poll() is not None)
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()
    until("its runs to end with it", 60, lambda: not processes_with(str(folder)))
    assert committed(folder / "runs/arise/seed-0") >= 1
    done = call(cache, *found.command())
    assert done.returncode == 0, done.stdout + done.stderr
    assert "arise seed 0: train\n" not in done.stdout  # it was there, so it was resumed or only exported
    return found


def test_every_run_is_finished_with_the_same_start_and_the_rubrics_of_its_seed(compared: Comparison) -> None:
    folder, last = compared.folder, compared.seeds - 1
    starts = set()
    for method in ("arise", "frozen-rubrics"):
        for seed in range(compared.seeds):
            run = folder / "runs" / method / f"seed-{seed}"
            assert committed(run) == 2
            with closing(sqlite3.connect(run / "run.db")) as db:
                facts = dict(db.execute("SELECT key, value FROM meta"))
                labels = {label for (label,) in db.execute("SELECT DISTINCT label FROM attempts")}
            starts.add((facts["weights"], facts["threads"]))
            assert {"before", "k00001", "after"} <= labels
    assert len(starts) == 1
    exported = json.loads((folder / f"runs/arise/seed-{last}/lifecycle.json").read_text())
    with closing(sqlite3.connect(folder / f"runs/frozen-rubrics/seed-{last}/run.db")) as db:
        imported = {rubric for (rubric,) in db.execute("SELECT rubric_id FROM events WHERE kind='imported'")}
    assert imported == {pair["rubric"]["id"] for pair in exported["pairs"]}


def test_the_report_is_written(compared: Comparison) -> None:
    folder = compared.folder
    assert json.loads((folder / "results.json").read_text())["finished"] == 2 * compared.seeds
    assert all(check["kept"] for check in json.loads((folder / "results.json").read_text())["fair"])
    assert "ARISE − Frozen Rubrics" in (folder / "report.md").read_text()
    assert (folder / "figures" / "figure-3.pdf").is_file()


def test_the_same_command_again_runs_nothing(compared: Comparison, cache: Path) -> None:
    folder = compared.folder
    before = {path: path.stat().st_mtime_ns for path in (folder / "logs").iterdir()}
    done = call(cache, *compared.command(), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["finished"] == 2 * compared.seeds
    assert {path: path.stat().st_mtime_ns for path in (folder / "logs").iterdir()} == before


def test_another_budget_in_the_same_folder_is_refused(compared: Comparison, cache: Path) -> None:
    done = call(cache, *compared.command("agent.max_turns=5"))
    assert done.returncode == 2
    assert "agent.max_turns" in done.stderr
    assert "Traceback" not in done.stderr


def test_ctrl_c_leaves_no_process_and_can_be_continued(cache: Path, tmp_path: Path) -> None:
    process = subprocess.Popen(
        arise(*command(tmp_path / "out", 1)), env=environment(cache), stderr=subprocess.PIPE, text=True
    )
    try:
        until("a run", 200, lambda: (tmp_path / "out/runs/arise/seed-0/config.toml").is_file())
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=200)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130
    assert "run the same command again" in errors
    assert processes_with(str(tmp_path / "out")) == []


def test_two_comparisons_in_one_folder_are_refused(compared: Comparison, cache: Path) -> None:
    from filelock import FileLock

    with FileLock(compared.folder / "comparison.lock"):
        done = call(cache, *compared.command())
    assert done.returncode == 6
    assert "another `arise compare`" in done.stderr
