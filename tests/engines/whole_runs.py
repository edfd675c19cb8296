"""One `arise train` on other processes: how tests start, disturb and check it."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save
from transformers import AutoModelForCausalLM

from arise.engines.environments import default_folder
from arise.run.reader import RunReader
from arise.types import Tokens
from tests.conformance.rollouts import full_logprobs

SETTINGS = {
    "model": ["kind='small'", "heads=2", "demonstrations=300", "epochs=5"],
    "train": ["iterations=10", "tasks_per_iteration=3", "group_size=4"],
    "optimizer": ["learning_rate=2e-3", "warmup_updates=1"],
    "tasks": ["eval_tasks=4"],
    "evaluation": ["attempts=1"],
    "storage": ["keep_every=1"],
    "policy": ["device='cpu'", "token_budget=4096", "gradient_checkpointing=false"],
    "policy.sampler": ["cache_gib=1.0"],
}


class WholeRun:
    """One `arise train` in a separate process, with a cache that other runs share."""

    def __init__(self, folder: Path, library: str, cache: Path, changes: Sequence[str] = ()) -> None:
        self.folder, self.library = folder, library
        self._cache = cache
        places = [
            f"policy.environment='{default_folder(library)}'",
            f"policy.sampler.environment='{default_folder('vllm')}'",
        ]
        words = [f"{section}.{change}" for section, found in SETTINGS.items() for change in found]
        chosen = (f"policy.kind='{library}'", *places, *words, *changes)
        self._output = (folder.parent / f"{folder.name}.out").open("w+")
        named = [part for word in chosen for part in ("--set", word)]
        self.process = self._start("train", "configs/embedded.toml", *named, "--run-dir", str(folder))

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "ARISE_CACHE": str(self._cache)}
        command = [sys.executable, "-m", "arise", *words]
        return subprocess.Popen(command, stdout=self._output, stderr=self._output, env=environment)

    def resume(self) -> None:
        self.process = self._start("resume", str(self.folder))

    def finished(self) -> int:
        """Iterations that were committed."""
        if not (self.folder / "run.db").exists():
            return 0
        try:
            return int(self.rows("SELECT count(*) FROM iterations")[0][0])
        except sqlite3.OperationalError:  # its tables are not made yet
            return 0

    def pids(self, word: str) -> list[int]:
        """Processes of this run whose command line has this word, oldest first; guards have it too and are left out."""
        found = list[tuple[float, int]]()
        for child in psutil.Process(self.process.pid).children(recursive=True):
            try:
                line, born = child.cmdline(), child.create_time()
            except psutil.NoSuchProcess:
                continue
            if any(word in part for part in line) and not any("guard.py" in part for part in line):
                found.append((born, child.pid))
        return [pid for _, pid in sorted(found)]

    def await_iteration(self, number: int) -> None:
        while self.finished() < number:
            self.require_running()
            time.sleep(0.1)

    def require_running(self) -> None:
        assert self.process.poll() is None, self.said()

    def end(self) -> None:
        assert self.process.wait(1800) == 0, self.said()

    def close(self) -> None:
        """End the run if its test did not."""
        self.process.kill()
        self.process.wait()
        self._output.close()

    def said(self) -> str:
        self._output.seek(0)
        return self._output.read()

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(f"file:{self.folder / 'run.db'}?mode=ro", uri=True)) as db:
            return db.execute(query).fetchall()

    def metrics(self, name: str) -> list[float]:
        return [json.loads(row[0])[name] for row in self.rows("SELECT metrics FROM iterations ORDER BY k")]

    def trained_rows(self) -> Iterator[tuple[int, Tokens]]:
        """Every row of tokens with its iteration, counted from 0."""
        with RunReader.open(self.folder) as run:
            for k, rollout_id in run.query("SELECT k, id FROM rollouts ORDER BY k, id"):
                stored = run.trajectory(rollout_id)
                assert stored is not None
                for row in stored.whole().trajectory.rows:
                    yield int(k), row

    def policy(self, version: int) -> Any:
        """The weights of a version, from the checkpoint of the run and without the engine."""
        (start,) = (self._cache / "starts").iterdir()
        model = AutoModelForCausalLM.from_pretrained(start).eval()
        if version:
            whole = self.folder.parent / f"{self.folder.name}-{version}.pt"
            dcp_to_torch_save(self.folder / "checkpoints" / f"k{version:05d}", whole)
            state = torch.load(whole, weights_only=False)
            whole.unlink()
            model.load_state_dict(state.get("dcp", state)["model"], strict=False)
        return model


def kill(pids: Sequence[int]) -> None:
    assert pids
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def require_every_draw_trained_once(run: WholeRun, iterations: int) -> None:
    """Every task that was drawn was trained with its whole group, no attempt was lost, none was made twice."""
    drawn = run.rows("SELECT k, slot, task_id FROM draws ORDER BY k, slot")
    assert drawn == run.rows("SELECT k, slot, task_id FROM groups ORDER BY k, slot")
    assert len(drawn) == 3 * iterations
    assert set(run.rows("SELECT size, rewarded FROM groups")) == {(4, 4)}
    assert run.rows("SELECT count(*), count(DISTINCT id) FROM rollouts") == [(12 * iterations, 12 * iterations)]
    assert run.rows("SELECT count(*) FROM rollouts WHERE fault != ''") == [(0,)]


def require_tokens_of_their_versions(run: WholeRun, ahead: int) -> None:
    """Every trained token has the log-prob that the weights of its version give it; none is older than `ahead`."""
    models: dict[int, Any] = {}
    lags, worst, other = set[int](), 0.0, 0.0
    for k, row in run.trained_rows():
        found = set(row.version_U[row.generated_U].tolist())
        lags |= {k - version for version in found}
        for version in found:
            if version not in models:
                models[version] = run.policy(version)
            own = row.version_U[row.generated_U] == version
            worst = max(worst, _largest_difference(models[version], row, own))
            if version - 1 in models:
                other = max(other, _largest_difference(models[version - 1], row, own))
    print(f"{run.library}: versions {min(models)} to {max(models)}, lags {sorted(lags)}, log-probs off by {worst:.1e}")
    print(f"  and by {other:.1e} under the weights of the version before")
    assert lags <= set(range(ahead + 1))
    assert ahead in lags
    assert worst < 1e-4
    assert other > 1e-2, "no update changed the policy: this cannot tell one version from another"


def _largest_difference(model: Any, row: Tokens, chosen: Any) -> float:
    with torch.no_grad():
        found = full_logprobs(model, row).numpy()
    return float(np.abs(found - row.logprob_U[row.generated_U])[chosen].max(initial=0.0))
