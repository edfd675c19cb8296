"""Names for what a sandbox keeps on the host, by which the next start knows what a killed owner left behind."""

import itertools
import os
import re
from pathlib import Path

_NAME = re.compile(r"arise-(\d+)-(\d+)-\d+")
_serial = itertools.count()


def _start_time(pid: int) -> str:
    """The start time of a process, which tells a reused process id from its former owner; empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def owner_mark() -> str:
    """What this process's names begin with — `arise-4711-88231`: its id and its start time."""
    return f"arise-{os.getpid()}-{_start_time(os.getpid())}"


def new_name() -> str:
    """A name that no other call, process or boot gives."""
    return f"{owner_mark()}-{next(_serial)}"


def orphans(folder: Path) -> list[Path]:
    """What lies in a folder under the name of an owner that is dead."""
    found = ((path, _NAME.fullmatch(path.name)) for path in folder.glob("arise-*"))
    return [path for path, match in found if match and _start_time(int(match[1])) != match[2]]
