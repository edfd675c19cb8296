"""Folders that are made once per session and shared by all xdist workers."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock


def once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """Return the folder `name` that all workers share, filled by `make` in the first worker that asks for it."""
    base = factory.getbasetemp()
    session = base.parent if base.name.startswith("popen-") else base
    folder = session / "shared" / name
    folder.parent.mkdir(exist_ok=True)
    with FileLock(folder.with_suffix(".lock")):
        if not folder.with_suffix(".made").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            folder.with_suffix(".made").touch()
    return folder


def copied_run(run: Path, to: Path) -> Path:
    """Copy a finished run that others may be reading: readers' journals come and go, and hold nothing."""
    return shutil.copytree(run, to, ignore=shutil.ignore_patterns("*-wal", "*-shm"))
