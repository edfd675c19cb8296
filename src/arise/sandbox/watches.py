"""Limit one sandbox's share of the machine's inotify instances and watches, which the kernel counts per user.

All sandboxes run as one user of the host; without a limit one of them can exhaust the watches of the others. The kernel
also counts per user namespace, and bubblewrap creates one around each sandbox in which ARISE is root and may set the
limit.
"""

import contextlib
import fcntl
import os
import shutil
import subprocess

from arise.sandbox.native_server import native_server

LIMITS = {"max_inotify_instances": 8, "max_inotify_watches": 8192}
_GET_PARENT = 0xB702  # ioctl of a namespace: NS_GET_PARENT
_WRITE = "; ".join(f"echo {value} > /proc/sys/user/{name}" for name, value in LIMITS.items())
_WORDS = [word for name, value in LIMITS.items() for word in (name, str(value))]
SECONDS = 20.0


def cap_watches(pid: int) -> bool:
    """Set the limits of the sandbox whose process 1 is `pid`; return whether that was possible."""
    if native_server() is None and shutil.which("nsenter") is None:
        return False
    with contextlib.ExitStack() as opened:
        try:
            inner = os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
            opened.callback(os.close, inner)
            around = fcntl.ioctl(inner, _GET_PARENT)
            opened.callback(os.close, around)
            if os.path.samestat(os.fstat(around), os.stat("/proc/self/ns/user")):
                return False  # there is no namespace in between, and ARISE must not change the host's own limits
            done = subprocess.run(
                _command(around),
                pass_fds=[around],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
    return done.returncode == 0


def _command(namespace: int) -> list[str]:
    """Return the command that writes the limits inside a user namespace."""
    if (program := native_server()) is not None:
        return [str(program), "limits", str(namespace), *_WORDS]
    return ["nsenter", "--preserve-credentials", f"--user=/proc/self/fd/{namespace}", "--", "sh", "-ec", _WRITE]
