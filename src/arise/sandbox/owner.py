"""Names of a sandbox's resources on the host, by which the next start recognises those of a killed owner."""

import functools
import itertools
import os
import re
from pathlib import Path

_NAME = re.compile(r"arise-(\d+)-(\d+)(-\d+)?")
_serial = itertools.count()


def _start_time(pid: int) -> str:
    """Return the start time of a process, which distinguishes reused process ids; empty if the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


@functools.cache
def _mark(pid: int) -> str:
    return f"arise-{pid}-{_start_time(pid)}"


def owner_mark() -> str:
    """Return the prefix of this process's names — `arise-4711-88231`: its id and its start time."""
    return _mark(os.getpid())


def new_name() -> str:
    """Return a name that is unique across calls, processes and boots."""
    return f"{owner_mark()}-{next(_serial)}"


def orphaned(name: str) -> bool:
    """Return whether a name belongs to a dead owner."""
    match = _NAME.fullmatch(name)
    return match is not None and _start_time(int(match[1])) != match[2]


def orphans(folder: Path) -> list[Path]:
    """Return the entries of a folder that belong to dead owners."""
    return [path for path in folder.glob("arise-*") if orphaned(path.name)]


def orphan_processes() -> list[int]:
    """Return processes whose last argument is the mark of a dead owner and whose parent is process 1.

    Sandboxes die with their owner, except in the instant after bwrap created its child and before it requested that. A
    live sandbox of another container has a parent there, so its owner's id, unknown here, is not checked.
    """
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            last = (folder / "cmdline").read_bytes().rstrip(b"\0").rpartition(b"\0")[2].decode()
            if orphaned(last) and (folder / "stat").read_text().rpartition(")")[2].split()[1] == "1":
                found.append(int(folder.name))
        except (OSError, ValueError):  # gone, or not a name
            continue
    return found
