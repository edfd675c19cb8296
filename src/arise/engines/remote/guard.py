"""Run one command and end it, with everything it started, when the driver does: `python -P guard.py LOG COMMAND...`.

The driver holds the other end of standard input. As a subreaper this process gets descendants that leave their parent.
What is killed does not clean up, so that is done here. Only the standard library is imported, for a quick start.
"""

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
GRACE_SECONDS = 5.0
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108


def main() -> int:
    """Start the command, wait for it or for the end of standard input, and leave no process behind."""
    log, command = sys.argv[1], sys.argv[2:]
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the driver's to handle
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    # Its path is short, because sockets are made in it.
    with tempfile.TemporaryDirectory(prefix="arise-", ignore_cleanup_errors=True) as temporary:
        with Path(log).open("ab") as output:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, "TMPDIR": temporary},
                start_new_session=True,
                preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL),
            )
        watched = [sys.stdin.fileno()]
        while child.poll() is None:
            if select.select(watched, [], [], 0.1)[0] and not os.read(watched[0], 4096):
                break
        shared = shared_memory(descendants())
        end_descendants()
        for file in shared:
            file.unlink(missing_ok=True)
    return child.returncode if child.returncode is not None else 0


def shared_memory(processes: list[int]) -> set[Path]:
    """Return the files in shared memory that these processes have mapped."""
    found = set[Path]()
    for process in processes:
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{process}/maps").read_text().splitlines():
                path = Path(line[line.find("/") :]) if "/" in line else Path()
                if path.parent == SHARED_MEMORY:
                    found.add(path)
    return found


def end_descendants() -> None:
    """Ask every descendant to end, then kill those that have not."""
    for number, grace in ((signal.SIGTERM, GRACE_SECONDS), (signal.SIGKILL, GRACE_SECONDS)):
        for process in descendants():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)
        end = time.monotonic() + grace
        while time.monotonic() < end:
            alive = descendants()
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:  # also what has just died: a zombie would outlive this process
                    pass
            if not alive:
                return
            time.sleep(0.02)


def descendants() -> list[int]:
    """Return every process below this one, children first; zombies are not counted."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError):
                state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
                if state != "Z":
                    parents.setdefault(int(parent), []).append(int(entry.name))
    found, todo = list[int](), [os.getpid()]
    while todo:
        children = parents.get(todo.pop(), [])
        found += children
        todo += children
    return found


if __name__ == "__main__":
    sys.exit(main())
