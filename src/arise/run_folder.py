"""Who may write to a run folder. Light on purpose: a second process is turned away before anything heavy is loaded."""

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


class RunLock:
    """A run folder held by this process until `release()` or its end, however it ends."""

    def __init__(self, folder: Path) -> None:
        self._handle = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._handle)
            raise

    def release(self) -> None:
        """Let others have it."""
        os.close(self._handle)


_early: dict[Path, tuple[RunLock, bool]] = {}
"""What this process took hold of before its command was parsed, until the command claims it, and whether it is new."""


def claim_early(folder: Path) -> None:
    """Claim a folder for the command of this process that will claim it by and by."""
    new = not folder.exists()
    _early[folder] = claim(folder), new


def give_back() -> None:
    """Let go of a folder that no command claimed after all; one that was made for it is removed."""
    while _early:
        folder, (lock, new) = _early.popitem()
        if new:
            with suppress(OSError):  # whatever else came to lie there stays
                (folder / OWNER_FILE).unlink()
                (folder / LOCK_FILE).unlink()
                folder.rmdir()
        lock.release()


def held(folder: Path) -> bool:
    """Whether a process holds the run."""
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
    """The folder, made if need be, for this process alone."""
    if folder in _early:
        return _early.pop(folder)[0]
    owner = folder / OWNER_FILE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = RunLock(folder)
        started = time.strftime("%Y-%m-%d %H:%M:%S")
        owner.write_text(f"host {platform.node()}, process {os.getpid()}, started {started}")
    except BlockingIOError:
        who = owner.read_text() if owner.exists() else "a process that has just started"
        raise AriseError(
            "locked",
            Exit.LOCKED,
            f"{folder} is in use by {who}",
            "this process did not touch the run",
            "wait for it, stop it, or give another --run-dir",
        ) from None
    except OSError as error:
        raise unwritable(folder, error) from None
    return lock


def require_run(folder: Path) -> None:
    """Refuse a folder that holds no run."""
    if not (folder / CONFIG_FILE).is_file():
        raise AriseError(
            "storage",
            Exit.STORAGE,
            f"{folder} holds no run",
            "nothing was done",
            "name a folder that `arise train` made",
        )


def unwritable(folder: Path, error: Exception) -> AriseError:
    """What a person is told when a write failed."""
    return AriseError(
        "storage",
        Exit.STORAGE,
        f"cannot write to {folder}: {error}",
        "the last committed iteration is intact",
        f"free disk space or mend the folder, then: arise resume {folder}",
    )
