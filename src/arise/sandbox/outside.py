"""What ARISE does to a new sandbox from outside, before any command runs in it: limits on inotify, covers over /proc.

All sandboxes run as one user of the host; without a limit one can exhaust the inotify watches of the others. The kernel
also counts per user namespace, and bubblewrap creates one around each sandbox, in which ARISE is root. For each cover
bubblewrap would read the whole table of mounts, which was 40 % of a start.
"""

import contextlib
import fcntl
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from arise.sandbox.native_server import native_server

LIMITS = {"max_inotify_instances": 8, "max_inotify_watches": 8192}
_GET_PARENT = 0xB702  # ioctl of a namespace: NS_GET_PARENT
_WRITE = "; ".join(f"echo {value} > /proc/sys/user/{name}" for name, value in LIMITS.items())
_WORDS = [word for name, value in LIMITS.items() for word in (name, str(value))]
_UNLIMITED, _UNCOVERED = 1, 2
SECONDS = 20.0


@dataclass(frozen=True)
class Prepared:
    """Which preparations succeeded."""

    watches_capped: bool
    covered: bool


def prepare(pid: int, covers: Sequence[str] = ()) -> Prepared:
    """Set the limits of the sandbox whose process 1 is `pid`, and mount something empty over each path of `covers`."""
    neither = Prepared(watches_capped=False, covered=not covers)
    if native_server() is None and shutil.which("nsenter") is None:
        return neither
    with contextlib.ExitStack() as opened:

        def kept(fd: int) -> int:
            opened.callback(os.close, fd)
            return fd

        try:
            inner = kept(os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC))
            around = kept(fcntl.ioctl(inner, _GET_PARENT))
            if os.path.samestat(os.fstat(around), os.stat("/proc/self/ns/user")):
                return neither  # there is no namespace in between, and ARISE must not change the host's own limits
            mounts = kept(os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC))
            done = subprocess.run(
                _command(around, mounts, covers),
                pass_fds=[around, mounts],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return neither
    if native_server() is None:
        return Prepared(done.returncode == 0, neither.covered)
    known = 0 <= done.returncode <= _UNLIMITED | _UNCOVERED
    return Prepared(known and not done.returncode & _UNLIMITED, known and not done.returncode & _UNCOVERED)


def _command(namespace: int, mounts: int, covers: Sequence[str]) -> list[str]:
    """Return the command that prepares a sandbox; without the native server it can only set the limits."""
    if (program := native_server()) is not None:
        return [str(program), "prepare", str(namespace), str(mounts), *_WORDS, "--", *covers]
    return ["nsenter", "--preserve-credentials", f"--user=/proc/self/fd/{namespace}", "--", "sh", "-ec", _WRITE]
