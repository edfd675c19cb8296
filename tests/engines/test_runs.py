"""Whole runs through `arise train`: on each trainer, ahead of the update, and while servers and trainers are killed."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import psutil
import pytest

SETTINGS = {
    "model": ["kind='small'", "heads=2", "demonstrations=300", "epochs=5"],
    "train": ["iterations=10", "tasks_per_iteration=3", "group_size=4"],
    "tasks": ["eval_tasks=4"],
    "evaluation": ["attempts=1"],
    "policy": ["device='cpu'", "token_budget=4096", "gradient_checkpointing=false"],
    "policy.sampler": ["cache_gib=1.0"],
}


class Run:
    """One `arise train` in a process of its own."""

    def __init__(self, folder: Path, library: str, changes: Sequence[str] = ()) -> None:
        self.folder = folder
        words = [f"{section}.{change}" for section, found in SETTINGS.items() for change in found]
        chosen = [part for word in (f"policy.kind='{library}'", *words, *changes) for part in ("--set", word)]
        command = [sys.executable, "-m", "arise", "train", "configs/embedded.toml", *chosen, "--run-dir", str(folder)]
        folder.parent.mkdir(parents=True, exist_ok=True)
        self._output = (folder.parent / f"{folder.name}.out").open("w+")
        self.process = subprocess.Popen(command, stdout=self._output, stderr=self._output, env=os.environ)

    def finished(self) -> int:
        """Iterations that were committed."""
        if not (self.folder / "run.db").exists():
            return 0
        with closing(sqlite3.connect(f"file:{self.folder / 'run.db'}?mode=ro", uri=True)) as db:
            try:
                return int(db.execute("SELECT count(*) FROM iterations").fetchone()[0])
            except sqlite3.OperationalError:
                return 0

    def pids(self, word: str) -> list[int]:
        """Processes of this run whose command line has this word; its guard has it too and is left out."""
        found = []
        for child in psutil.Process(self.process.pid).children(recursive=True):
            try:
                line = child.cmdline()
            except psutil.NoSuchProcess:
                continue
            if any(word in part for part in line) and not any("guard.py" in part for part in line):
                found.append(child.pid)
        return found

    def await_iteration(self, number: int) -> None:
        while self.finished() < number:
            assert self.process.poll() is None, self.said()
            time.sleep(0.2)

    def end(self) -> None:
        assert self.process.wait(1800) == 0, self.said()

    def said(self) -> str:
        self._output.seek(0)
        return self._output.read()

    def metrics(self, name: str) -> list[float]:
        with closing(sqlite3.connect(self.folder / "run.db")) as db:
            return [json.loads(row[0])[name] for row in db.execute("SELECT metrics FROM iterations ORDER BY k")]

    def faults(self) -> int:
        with closing(sqlite3.connect(self.folder / "run.db")) as db:
            return int(db.execute("SELECT count(*) FROM rollouts WHERE fault != ''").fetchone()[0])

    def rows(self, query: str) -> list[tuple[object, ...]]:
        with closing(sqlite3.connect(f"file:{self.folder / 'run.db'}?mode=ro", uri=True)) as db:
            return db.execute(query).fetchall()

    def resumed(self) -> None:
        command = [sys.executable, "-m", "arise", "resume", str(self.folder)]
        self.process = subprocess.Popen(command, stdout=self._output, stderr=self._output, env=os.environ)


def require_every_draw_trained_once(run: Run, iterations: int) -> None:
    """Every task that was drawn was trained with its whole group, no attempt was lost, none was made twice."""
    drawn = run.rows("SELECT k, slot, task_id FROM draws ORDER BY k, slot")
    assert drawn == run.rows("SELECT k, slot, task_id FROM groups ORDER BY k, slot")
    assert len(drawn) == 3 * iterations
    assert set(run.rows("SELECT size, rewarded FROM groups")) == {(4, 4)}
    assert run.rows("SELECT count(*), count(DISTINCT id) FROM rollouts") == [(12 * iterations, 12 * iterations)]
    assert run.faults() == 0


def kill(pids: Sequence[int]) -> None:
    assert pids
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def test_ten_iterations_with_two_updates_of_the_pool(library: str, tmp_path: Path) -> None:
    run = Run(tmp_path / "run", library)
    run.end()
    assert run.finished() == 10
    assert run.metrics("max_staleness") == [0.0] * 10
    assert run.said().count(" (+") >= 2, "both windows of four iterations change the pool"


@pytest.mark.parametrize("ahead", [1, 2])
def test_rollouts_ahead_of_the_update(library: str, tmp_path: Path, ahead: int) -> None:
    run = Run(tmp_path / "run", library, [f"train.max_staleness={ahead}", "train.iterations=5"])
    run.end()
    lags = run.metrics("max_staleness")
    assert max(lags) == ahead
    assert all(lag <= ahead for lag in lags)
    require_every_draw_trained_once(run, 5)


def test_servers_and_the_trainer_are_killed(library: str, tmp_path: Path) -> None:
    changes = ["train.max_staleness=1", "train.iterations=8", "policy.sampler.servers=2"]
    run = Run(tmp_path / "run", library, changes)
    for iteration in (1, 3, 5):
        run.await_iteration(iteration)
        kill(sorted(run.pids("vllm.entrypoints"), key=lambda pid: psutil.Process(pid).create_time())[:1])
        if iteration == 3:
            run.await_iteration(4)
            kill(run.pids("boot.py"))
    run.end()
    said = run.said()
    assert said.count("is down") >= 2, "the oldest server was killed each time, so at least two were in use"
    assert said.count("it is started again from update") == 1
    assert run.finished() == 8
    assert max(run.metrics("max_staleness")) <= 1
    require_every_draw_trained_once(run, 8)


def test_a_killed_driver_leaves_no_process_and_its_run_goes_on(library: str, tmp_path: Path) -> None:
    run = Run(tmp_path / "run", library, ["train.iterations=2"])
    run.await_iteration(1)
    while not (finished := set(run.rows("SELECT k, task_id, content FROM inflight WHERE k = 1"))):
        time.sleep(0.02)
    family = psutil.Process(run.process.pid).children(recursive=True)
    assert run.pids("vllm.entrypoints")
    kill([run.process.pid])
    run.process.wait()
    _, alive = psutil.wait_procs(family, timeout=60)
    assert [process.cmdline() for process in alive if process.is_running()] == []
    before = set(run.rows("SELECT k, id, reward, generated_tokens FROM rollouts"))
    run.resumed()
    run.end()
    assert before <= set(run.rows("SELECT k, id, reward, generated_tokens FROM rollouts"))
    assert finished <= set(run.rows("SELECT k, task_id, content FROM inflight"))
    require_every_draw_trained_once(run, 2)


@pytest.mark.slow
def test_a_run_learns(library: str, tmp_path: Path) -> None:
    """The settings of the comparison in docs/log.md."""
    shape = ["model.demonstrations=900", "model.epochs=8", "tasks.depth=1", "optimizer.learning_rate=5e-4"]
    size = ["train.iterations=12", "train.tasks_per_iteration=8", "train.group_size=8"]
    run = Run(tmp_path / "run", library, [*shape, *size])
    run.end()
    rates = run.metrics("pass_rate")
    print(f"{library}: pass rates in training {' '.join(f'{100 * rate:.0f}' for rate in rates)} %")
    assert sum(rates[-3:]) / 3 > sum(rates[:3]) / 3 + 0.3
