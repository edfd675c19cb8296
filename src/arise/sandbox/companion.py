"""End what a killed process leaves of its sandboxes, without waiting for the next start.

bubblewrap dies with its owner, and the sandbox with bubblewrap. But bubblewrap's child waits for it before it asks for
that, so a kill in this moment leaves a process asleep for good. A companion, started with the first sandbox, waits for
the end of its owner and ends such processes. It uses the standard library only, to start fast.
"""

import contextlib
import functools
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

LOOKS = (0.05, 0.2, 0.5, 1.0, 2.0)
"""Seconds between two looks for processes; the last ones of a start may come late."""
_DETACHED = '"$@" &'


def start_time(pid: int) -> str:
    """Return the start time of a process, which distinguishes reused process ids; empty if the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def _arguments(folder: Path) -> list[str]:
    try:
        return (folder / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    except OSError:  # gone
        return []


def _is_first(folder: Path) -> bool:
    """Return whether a process is the first of a process namespace of its own."""
    try:
        lines = (folder / "status").read_text().splitlines()
    except OSError:
        return False
    numbers = next((line.split()[1:] for line in lines if line.startswith("NSpid:")), [])
    return len(numbers) > 1 and numbers[-1] == "1"


def first_processes(belongs: Callable[[str], bool]) -> list[tuple[int, str]]:
    """Return the first process of each sandbox with a name that `belongs`, and that name; it is among its arguments."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        name = next((word for word in _arguments(folder) if word.startswith("arise-") and belongs(word)), "")
        if name and _is_first(folder):
            found.append((int(folder.name), name))
    return found


def is_alone(pid: int, name: str) -> bool:
    """Return whether the parent of a sandbox's first process is gone, which is the bubblewrap of the same name."""
    try:
        parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
    except (OSError, IndexError):
        return False
    return name not in _arguments(Path("/proc", parent))


def end(belongs: Callable[[str], bool]) -> int:
    """Kill the first process of each sandbox with a name that `belongs`, and so the sandbox; return their number."""
    found = first_processes(belongs)
    for pid, _ in found:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    return len(found)


def start_companion() -> None:
    """Start the companion of this process, once; it is no child of this process, and ends shortly after it."""
    _start(os.getpid())


@functools.cache
def _start(pid: int) -> None:
    line = [sys.executable, "-I", "-S", __file__, str(pid), start_time(pid)]
    with contextlib.suppress(OSError):  # then the next start cleans up
        subprocess.run(
            ["/bin/sh", "-c", _DETACHED, "sh", *line],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            check=False,
            cwd="/",
        )


def main(pid: int, begun: str) -> None:
    """Wait for the end of a process, then end its sandboxes until none is left."""
    with contextlib.suppress(OSError):  # it is gone already
        owner = os.pidfd_open(pid)
        if start_time(pid) == begun:
            poller = select.poll()
            poller.register(owner, select.POLLIN)
            poller.poll()
    for seconds in LOOKS:
        end(lambda name: name.startswith(f"arise-{pid}-{begun}-"))
        time.sleep(seconds)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
