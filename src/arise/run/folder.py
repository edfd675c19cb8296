"""The lock of a run folder. Imports little, so that a second process is refused before heavy imports."""

import fcntl
import os
import platform
import time
from contextlib import suppress
from pathlib import Path

from arise.errors import AriseError, Exit

CONFIG_FILE = "config.toml"
OWNER_FILE = "owner.txt"
LOCK_FILE = "run.lock"


BEFORE_A_RUN = (LOCK_FILE, OWNER_FILE, "calls.jsonl", "*calls.db", "*calls.db-*")
"""Files that may appear in a folder while a run is checked before its start."""


class RunLock:
    """A run folder locked by this process until `release()` or until the process ends."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._made = folder, _missing(folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._found = set(_before_a_run(folder))
            self._handle = _locked(folder / LOCK_FILE)
        except OSError:
            self._remove_made()
            raise

    def release(self) -> None:
        """Release the lock."""
        os.close(self._handle)

    def withdraw(self) -> None:
        """Release the lock and restore the folder, because no run was started."""
        for path in _before_a_run(self._folder):
            if path not in self._found:
                path.unlink(missing_ok=True)
        self._remove_made()
        self.release()

    def _remove_made(self) -> None:
        with suppress(OSError):  # keep files that others created there
            for folder in self._made:
                folder.rmdir()


def _locked(path: Path) -> int:
    """Open and lock a file; raise BlockingIOError if another process has locked it."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not (path.exists() and os.path.samestat(os.fstat(handle), path.stat())):
            raise BlockingIOError  # the previous owner withdrew meanwhile and removed the file
    except OSError:
        os.close(handle)
        raise
    return handle


def _missing(folder: Path) -> list[Path]:
    """Return the missing folders of a path, innermost first."""
    return [path for path in (folder, *folder.parents) if not path.exists()]


def _before_a_run(folder: Path) -> list[Path]:
    return [path for pattern in BEFORE_A_RUN for path in folder.glob(pattern)]


_early: dict[Path, RunLock] = {}
"""Locks acquired before the command was parsed, until the command claims them."""


def claim_early(folder: Path) -> None:
    """Lock a folder early, for the command of this process that will claim it."""
    _early[folder] = claim(folder)


def give_back() -> None:
    """Release a folder that no command claimed, and restore it."""
    while _early:
        _early.popitem()[1].withdraw()


def held(folder: Path) -> bool:
    """Return whether a process has locked the run."""
    try:
        handle = os.open(folder / LOCK_FILE, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def claim(folder: Path) -> RunLock:
    """Create the folder if needed and lock it for this process."""
    if folder in _early:
        return _early.pop(folder)
    owner = folder / OWNER_FILE
    lock = None
    try:
        lock = RunLock(folder)
        started = time.strftime("%Y-%m-%d %H:%M:%S")
        owner.write_text(f"host {platform.node()}, process {os.getpid()}, started {started}")
    except BlockingIOError:
        raise _in_use(folder) from None
    except OSError as error:
        if lock:
            lock.withdraw()
        raise unwritable(folder, error) from None
    return lock


def require_unlocked(folder: Path) -> None:
    """Refuse a run that a process has locked."""
    if held(folder):
        raise _in_use(folder)


def _in_use(folder: Path) -> AriseError:
    owner = folder / OWNER_FILE
    who = owner.read_text() if owner.exists() else "a process that has just started"
    return AriseError(
        "locked",
        Exit.LOCKED,
        f"{folder} is in use by {who}",
        "this process did not touch the run",
        "wait for it, stop it, or name another run folder",
    )


def require_run(folder: Path) -> None:
    """Refuse a folder without a run."""
    if not (folder / CONFIG_FILE).is_file():
        raise AriseError(
            "storage",
            Exit.STORAGE,
            f"{folder} holds no run",
            "nothing was done",
            "name a folder that `arise train` made",
        )


def unwritable(folder: Path, error: Exception) -> AriseError:
    """Return the error for a failed write."""
    if not (folder / CONFIG_FILE).exists():
        return AriseError(
            "storage",
            Exit.STORAGE,
            f"cannot write to {folder}: {error}",
            "no run was started",
            "free disk space or fix the folder, or name another one with --run-dir",
        )
    return AriseError(
        "storage",
        Exit.STORAGE,
        f"cannot write to {folder}: {error}",
        "the last committed iteration is intact",
        f"free disk space or fix the folder, then: arise resume {folder}",
    )
