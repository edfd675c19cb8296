"""A start of a sandbox that is held at the moment in which a kill of its owner leaves a process behind.

bubblewrap has asked to die with its owner, and its child, which has not, still waits for it. It writes the id of the
child in between; here it writes that into a pipe that is full.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from arise.sandbox.companion import first_processes

_BWRAP = """#!{python} -IS
import fcntl, os, sys
read, write = os.pipe()
fcntl.fcntl(write, 1031, 4096)  # F_SETPIPE_SZ
os.write(write, bytes(4096))
os.set_inheritable(read, True)
os.set_inheritable(write, True)
line = sys.argv[:]
line[line.index("--info-fd") + 1] = str(write)
os.execv({bwrap!r}, line)
"""
SECONDS = 60.0


def write_bwrap(folder: Path) -> None:
    """Write a program bwrap that starts the real one and holds it there."""
    bwrap = shutil.which("bwrap")
    assert bwrap is not None
    folder.mkdir()
    (folder / "bwrap").write_text(_BWRAP.format(python=sys.executable, bwrap=bwrap))
    (folder / "bwrap").chmod(0o755)


def of(pid: int) -> list[int]:
    """The first process of each sandbox of an owner."""
    return [found for found, _ in first_processes(lambda name: name.startswith(f"arise-{pid}-"))]


def wait_for(pid: int, there: bool) -> bool:
    """Wait until an owner has a sandbox, or none; return whether it came to that."""
    deadline = time.monotonic() + SECONDS
    while bool(of(pid)) != there and time.monotonic() < deadline:
        time.sleep(0.02)
    return bool(of(pid)) == there


def companions(pid: int) -> list[int]:
    """The processes that wait for the end of an owner."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            line = (folder / "cmdline").read_bytes().split(b"\0")
            if str(pid).encode() in line and any(word.endswith(b"sandbox/companion.py") for word in line):
                found.append(int(folder.name))
    return found


@contextlib.contextmanager
def held_start(folder: Path, program: str, *arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a Python program whose first sandbox is held in its start; yield it once that is so."""
    write_bwrap(folder / "bin")
    path = {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
    with subprocess.Popen([sys.executable, "-c", program, *arguments], env=path, start_new_session=True) as owner:
        try:
            assert wait_for(owner.pid, there=True)
            time.sleep(0.2)  # from the child's birth until bubblewrap waits to write
            yield owner
        finally:
            owner.kill()
            owner.wait()
            for pid in of(owner.pid):
                with contextlib.suppress(OSError):
                    os.kill(pid, 9)
