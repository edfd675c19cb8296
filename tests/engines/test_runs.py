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

    def tasks(self) -> list[list[str]]:
        """The tasks of every iteration, in the order of their draws."""
        with closing(sqlite3.connect(self.folder / "run.db")) as db:
            rows = db.execute("SELECT k, task_id FROM groups ORDER BY k, task_id").fetchall()
        return [[task for k, task in rows if k == number] for number in range(self.finished())]


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
    run = Run(tmp_path / "run", library, [f"train.max_staleness={ahead}"])
    run.end()
    lags = run.metrics("max_staleness")
    assert max(lags) == ahead
    assert all(lag <= ahead for lag in lags)


def test_servers_and_the_trainer_are_killed(library: str, tmp_path: Path) -> None:
    run = Run(tmp_path / "run", library, ["train.max_staleness=1", "policy.sampler.servers=2"])
    for iteration in (2, 5, 7):
        run.await_iteration(iteration)
        kill(sorted(run.pids("vllm.entrypoints"), key=lambda pid: psutil.Process(pid).create_time())[:1])
        if iteration == 5:
            run.await_iteration(6)
            kill(run.pids("boot.py"))
    run.end()
    said = run.said()
    assert said.count("is down") >= 2, "the oldest server was killed each time, so at least two were in use"
    assert said.count("it is started again from update") == 1
    assert run.finished() == 10
    assert max(run.metrics("max_staleness")) <= 1
    assert all(len(set(tasks)) == 3 for tasks in run.tasks())
    assert run.faults() == 0


def test_no_process_is_left_when_the_driver_is_killed(library: str, tmp_path: Path) -> None:
    run = Run(tmp_path / "run", library)
    run.await_iteration(1)
    family = psutil.Process(run.process.pid).children(recursive=True)
    assert run.pids("vllm.entrypoints")
    kill([run.process.pid])
    run.process.wait()
    _, alive = psutil.wait_procs(family, timeout=60)
    assert [process.cmdline() for process in alive if process.is_running()] == []
