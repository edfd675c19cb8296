"""What a test of sandboxes may not leave behind: processes, control groups, descriptors, temporary files."""

import contextlib
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from arise.sandbox.cgroup import find_cgroups
from arise.sandbox.owner import owner_mark

SLEEP = f"sleep 9{os.getpid()}"
"""A command that nothing else on this machine runs."""


def processes_with(text: str) -> list[int]:
    """Ids of the processes of this machine whose command line holds `text`, without the asking one."""
    text = text.replace(" ", "\0")
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if text.encode() in (folder / "cmdline").read_bytes() and int(folder.name) != os.getpid():
                found.append(int(folder.name))
    return found


def children() -> list[str]:
    """The command lines of this process's children."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (folder / "stat").read_text().rpartition(")")[2].split()[1] == str(os.getpid()):
                found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()[:80])
    return found


def groups(mark: str) -> list[Path]:
    """The control groups whose name begins with `mark`."""
    cgroups = find_cgroups()
    return [] if cgroups is None else [p for parent in cgroups.parents for p in parent.glob(f"{mark}*")]


def temporary_files(mark: str) -> list[str]:
    """The temporary files whose name begins with `mark`."""
    return [name for name in os.listdir(tempfile.gettempdir()) if name.startswith(mark)]


@contextlib.contextmanager
def nothing_left() -> Iterator[None]:
    """Fails when what runs inside leaves anything behind."""
    before = len(os.listdir("/proc/self/fd")), sorted(children())
    yield
    deadline = time.monotonic() + 30  # on a busy machine
    while (groups(owner_mark()) or sorted(children()) != before[1]) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert sorted(children()) == before[1]
    assert groups(owner_mark()) == []
    assert temporary_files(owner_mark()) == []
    assert len(os.listdir("/proc/self/fd")) <= before[0]
