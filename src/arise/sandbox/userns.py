"""User namespaces in which every user of an image exists, created in advance because each needs a process start.

Users keep their numeric ids, so that file ownership matches the image, but have no power over the host: root's
capabilities apply only inside.
"""

import asyncio
import os
import subprocess
from pathlib import Path

from arise.ports import SandboxLost
from arise.sandbox.outside import LIMITS

USERS = 65536
SECONDS = 20.0
_LIMITS = "; ".join(f"echo {value} > /proc/sys/user/{name}" for name, value in LIMITS.items())
_SCRIPT = f"echo made; read -r _; {{ {_LIMITS}; }} 2>/dev/null; echo limited; read -r _"


def make_namespace() -> int:
    """Return a descriptor of a new user namespace with all users mapped and inotify capped; for root only."""
    process = subprocess.Popen(
        ["unshare", "--user", "sh", "-c", _SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        if process.stdout.readline() != "made\n":
            raise SandboxLost("a user namespace cannot be made here")
        for kind in ("uid_map", "gid_map"):
            Path(f"/proc/{process.pid}/{kind}").write_text(_same_users(Path(f"/proc/self/{kind}").read_text()))
        process.stdin.write("\n")
        process.stdin.flush()
        process.stdout.readline()
        return os.open(f"/proc/{process.pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise SandboxLost(f"a user namespace cannot be made here: {error}") from error
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait()


def _same_users(own: str) -> str:
    """Return a map to the users of this namespace: the kernel wants each line to lie within one line of its own map."""
    ranges = (list(map(int, line.split())) for line in own.splitlines())
    kept = ((start, min(count, USERS - start)) for start, _, count in ranges if start < USERS)
    return "".join(f"{start} {start} {count}\n" for start, count in kept)


class UserNamespaces:
    """A few prepared namespaces; each one taken is replaced."""

    def __init__(self, ready: int = 4) -> None:
        self._ready, self._waiting = ready, list[asyncio.Task[int]]()

    async def take(self) -> int:
        """Return a descriptor that the caller must close."""
        while len(self._waiting) <= self._ready:
            self._waiting.append(asyncio.create_task(asyncio.to_thread(make_namespace)))
        return await self._waiting.pop(0)

    async def close(self) -> None:
        """Close the unused ones."""
        for found in await asyncio.gather(*self._waiting, return_exceptions=True):
            if isinstance(found, int):
                os.close(found)
        self._waiting.clear()
