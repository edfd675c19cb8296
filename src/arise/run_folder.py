"""Who may write to a run folder. Light on purpose: a second process is turned away before anything heavy is loaded."""

import os
import platform
import time
from pathlib import Path

from filelock import FileLock, Timeout

from arise.errors import AriseError, Exit

CONFIG_FILE = "config.toml"
OWNER_FILE = "owner.txt"


def claim(folder: Path) -> FileLock:
    """The folder, made if need be, for this process alone; `release()` of what it returns gives it back."""
    lock, owner = FileLock(folder / "run.lock"), folder / OWNER_FILE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
        started = time.strftime("%Y-%m-%d %H:%M:%S")
        owner.write_text(f"host {platform.node()}, process {os.getpid()}, started {started}")
    except Timeout:
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
