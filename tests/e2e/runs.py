"""Small real runs through the command line: how tests make, interrupt and compare them."""

import hashlib
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import zstandard

from tests.e2e.commands import Command, Done

TINY = (
    "train.iterations=4",
    "train.tasks_per_iteration=2",
    "train.group_size=4",
    "optimizer.learning_rate=1e-3",
    "optimizer.warmup_updates=1",
    "optimizer.precision=fp32",
    "pool.update_every=2",
    "evidence.window=2",
    "tasks.train_tasks=6",
    "tasks.eval_tasks=2",
    "evaluation.attempts=1",
    "model.hidden=48",
    "model.layers=2",
    "model.demonstrations=160",
    "model.epochs=6",
    "agent.max_turns=6",
    "agent.command_seconds=120",
)
PATIENT = """
from arise.sandbox import launch
launch.START_SECONDS = 600.0
from arise.cli.main import main
main()
"""
"""`arise` on a busy machine: a sandbox that starts late would be a fault, and a fault changes what is collected."""


def arise(*arguments: str) -> list[str]:
    """The command line of a command in a fresh interpreter."""
    return [sys.executable, "-c", PATIENT, *arguments]


def environment(cache: Path) -> dict[str, str]:
    return os.environ | {"ARISE_CACHE": str(cache), "OMP_NUM_THREADS": "1", "NO_COLOR": "1"}


def start(cache: Path, *arguments: str, folder: Path | None = None) -> Command:
    """Start a command in a forked process, in `folder` if one is given."""
    return Command(environment(cache), *arguments, folder=folder)


def call(cache: Path, *arguments: str, folder: Path | None = None) -> Done:
    """Run a command in a forked process to its end, in `folder` if one is given."""
    return start(cache, *arguments, folder=folder).wait()


def call_afresh(cache: Path, *arguments: str) -> Done:
    """Run a command in a fresh interpreter to its end, as a shell would."""
    done = subprocess.run(
        arise(*arguments), env=environment(cache), capture_output=True, text=True, timeout=280, check=False
    )
    return Done(done.returncode, done.stdout, done.stderr)


def settings(changes: Sequence[str] = ()) -> list[str]:
    return [part for change in (*TINY, *changes) for part in ("--set", change)]


def digest(run: Path) -> str:
    """Pool, ledger, sampler, generator and evidence of the last commit, and the policy's weights."""
    with closing(sqlite3.connect(run / "run.db")) as db:
        state, checkpoint = db.execute("SELECT state, checkpoint FROM iterations ORDER BY k DESC LIMIT 1").fetchone()
    manifest = json.loads((run / checkpoint / "manifest.json").read_text())
    content = zstandard.decompress(state) + json.dumps(manifest["sha256"], sort_keys=True).encode()
    return hashlib.sha256(content).hexdigest()
