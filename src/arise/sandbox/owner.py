"""Names for what a sandbox keeps on the host, by which the next start knows what a killed owner left behind."""

import functools
import itertools
import os
import re
from pathlib import Path

_NAME = re.compile(r"arise-(\d+)-(\d+)(-\d+)?")
_serial = itertools.count()


def _start_time(pid: int) -> str:
    """The start time of a process, which tells a reused process id from its former owner; empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


@functools.cache
def _mark(pid: int) -> str:
    return f"arise-{pid}-{_start_time(pid)}"


def owner_mark() -> str:
    """What this process's names begin with — `arise-4711-88231`: its id and its start time."""
    return _mark(os.getpid())


def new_name() -> str:
    """A name that no other call, process or boot gives."""
    return f"{owner_mark()}-{next(_serial)}"


def orphaned(name: str) -> bool:
    """Whether a name was given by an owner that is dead."""
    match = _NAME.fullmatch(name)
    return match is not None and _start_time(int(match[1])) != match[2]


def orphans(folder: Path) -> list[Path]:
    """What lies in a folder under the name of an owner that is dead."""
    return [path for path in folder.glob("arise-*") if orphaned(path.name)]


def orphan_processes() -> list[int]:
    """Processes started with the mark of a dead owner as last argument, and left to process 1.

    Sandboxes die with their owner, but for the instant in which bwrap has made its child and not yet asked for that.
    A living sandbox of another container has a parent there, so that its owner's id, unknown here, is not asked for.
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
