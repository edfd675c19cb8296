"""Names of a sandbox's resources on the host, by which the next start recognises those of a killed owner."""

import contextlib
import functools
import itertools
import os
import re
import signal
import time
from pathlib import Path

from arise.sandbox.companion import first_processes, is_alone, start_time

_NAME = re.compile(r"arise-(\d+)-(\d+)(-\d+)?")
_serial = itertools.count()
DYING_LOOKS, DYING_SECONDS = 10, 0.05


@functools.cache
def _mark(pid: int) -> str:
    return f"arise-{pid}-{start_time(pid)}"


def owner_mark() -> str:
    """Return the prefix of this process's names — `arise-4711-88231`: its id and its start time."""
    return _mark(os.getpid())


def new_name() -> str:
    """Return a name that is unique across calls, processes and boots."""
    return f"{owner_mark()}-{next(_serial)}"


def orphaned(name: str) -> bool:
    """Return whether a name belongs to a dead owner."""
    match = _NAME.fullmatch(name)
    return match is not None and start_time(int(match[1])) != match[2]


def orphans(folder: Path) -> list[Path]:
    """Return the entries of a folder that belong to dead owners."""
    return [path for path in folder.glob("arise-*") if orphaned(path.name)]


def end_orphans() -> None:
    """Kill the first processes of sandboxes whose owner and bubblewrap are dead.

    Sandboxes die with their owner, except in the instant that `companion.py` tells of. A live one of another container
    has its bubblewrap, so its owner's id, unknown here, does not matter; one that is just dying is waited for.
    """
    for _ in range(DYING_LOOKS):
        found = first_processes(orphaned)
        alone = {pid for pid, name in found if is_alone(pid, name)}
        for pid in alone:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if len(alone) == len(found):
            return
        time.sleep(DYING_SECONDS)
