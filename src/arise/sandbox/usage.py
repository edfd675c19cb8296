"""Resource usage of a sandbox's processes, and a time limit that excludes waiting for a processor.

Executed inside by the server, with any Python 3.9 or later; it imports nothing slow.
"""

import os
import time

TICK_SECONDS = 0.1
MAX_STRETCH = 4.0  # upper bound on the wall-clock time of a time limit, as a multiple of it
_PER_SECOND = os.sysconf("SC_CLK_TCK")
_COARSE = 2 / _PER_SECOND  # user and system time are each rounded down to a clock tick
_PAGE = os.sysconf("SC_PAGE_SIZE")


def _processes() -> list[str]:
    """Return the /proc folders of all processes of the sandbox except this one."""
    own = str(os.getpid())
    return [f"/proc/{name}" for name in os.listdir("/proc") if name.isdigit() and name != own]


def _fields(path: str) -> list[str]:
    """Return the fields of a process's file, after its name if given; empty if the process is gone."""
    try:
        with open(path, "rb") as file:
            return file.read().rpartition(b")")[2].decode().split()
    except OSError:
        return []


def _any_thread_runs(folder: str) -> bool:
    try:
        return any(_fields(f"{folder}/task/{name}/stat")[:1] == ["R"] for name in os.listdir(f"{folder}/task"))
    except OSError:
        return False


class Usage:
    """Usage of the sandbox's processes, without its server, at one moment."""

    def __init__(self) -> None:
        self.threads = 0
        self.runnable = False
        """Whether any thread has a processor or waits for one."""
        dead = os.times()
        self.processor_seconds = dead.children_user + dead.children_system
        """Of running processes, and of ended ones that a parent has waited for."""
        for folder in _processes():
            fields = _fields(f"{folder}/stat")
            if not fields:
                continue
            threads = int(fields[17])
            self.threads += threads
            self.processor_seconds += sum(map(int, fields[11:15])) / _PER_SECOND
            if not self.runnable:
                self.runnable = fields[0] == "R" or (threads > 1 and _any_thread_runs(folder))


def private_memory() -> int:
    """Return the private memory of the sandbox's processes in bytes, without files."""
    found = [_fields(f"{folder}/statm") for folder in _processes()]
    return sum(int(fields[1]) - int(fields[2]) for fields in found if fields) * _PAGE


class Allowance:
    """A time limit that is extended when the machine is short of processors.

    While a process in the sandbox is runnable and all of them together ran for less than the elapsed time, the
    difference is added to the limit, up to `MAX_STRETCH` times the original. Sleeping and computing count.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds, self._starved, self._ahead = seconds, 0.0, 0.0
        self._began = self._looked = time.monotonic()
        self.usage = Usage()

    @property
    def left(self) -> float:
        """Return the remaining seconds as of the last update."""
        limit = min(self._seconds + self._starved, self._seconds * MAX_STRETCH)
        return self._began + limit - time.monotonic()

    @property
    def next_look(self) -> float:
        """Return the seconds until the next `look` is useful."""
        return max(0.0, min(self.left, self._looked + TICK_SECONDS - time.monotonic()))

    def look(self) -> bool:
        """Update the limit, at most once every `TICK_SECONDS` before its end; return whether it was updated."""
        now = time.monotonic()
        elapsed = now - self._looked
        if elapsed < TICK_SECONDS and self.left > 0:
            return False
        before, self.usage, self._looked = self.usage, Usage(), now
        if self.usage.runnable:
            missed = elapsed - max(0.0, self.usage.processor_seconds - before.processor_seconds) + self._ahead
            self._starved += max(0.0, missed)
            self._ahead = max(-_COARSE, min(0.0, missed))
        return True
