"""Kernel limits on memory and processes, by control group version 1 or 2, one group a sandbox."""

import contextlib
from dataclasses import dataclass
from pathlib import Path

from arise.sandbox.limits import Limits
from arise.sandbox.owner import new_name, orphans

ROOT = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Group:
    """The control group of one sandbox: one folder in version 2, one for each controller in version 1."""

    folders: tuple[Path, ...]
    events: Path

    def add(self, pid: int) -> None:
        """Moves a process in; its later children are born inside."""
        for folder in self.folders:
            (folder / "cgroup.procs").write_text(str(pid))

    def out_of_memory_kills(self) -> int:
        """How many of its processes the kernel has ended for want of memory."""
        try:
            lines = self.events.read_text().splitlines()
        except OSError:
            return 0
        return sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))

    def remove(self) -> None:
        """Removes the folders; one that is still busy is left for the next sweep."""
        for folder in self.folders:
            with contextlib.suppress(OSError):
                folder.rmdir()


@dataclass(frozen=True)
class Cgroups:
    """Where groups can be made: `parents` by controller in version 1, one parent in version 2."""

    version: int
    parents: tuple[Path, ...]

    def create(self, limits: Limits) -> Group:
        """Makes one group with its limits written."""
        name = new_name()
        folders = tuple(parent / name for parent in self.parents)
        events = folders[0] / ("memory.events" if self.version == 2 else "memory.oom_control")
        group = Group(folders, events)
        try:
            for folder in folders:
                folder.mkdir()
            memory = "memory.max" if self.version == 2 else "memory.limit_in_bytes"
            (folders[0] / memory).write_text(str(limits.memory_bytes))
            (folders[-1] / "pids.max").write_text(str(limits.processes + 1))  # and the sandbox's own server
            if self.version == 2:
                with contextlib.suppress(OSError):  # absent where the kernel has no swap accounting
                    (folders[0] / "memory.swap.max").write_text("0")
        except OSError:
            group.remove()
            raise
        return group

    def sweep(self) -> int:
        """Removes the groups of owners that are dead, and says how many."""
        removed = 0
        for folder in (folder for parent in self.parents for folder in orphans(parent)):
            with contextlib.suppress(OSError):
                folder.rmdir()
                removed += 1
        return removed


def _usable(parent: Path) -> bool:
    """Whether a group can be made, and removed, under `parent`."""
    probe = parent / new_name()
    try:
        probe.mkdir()
        probe.rmdir()
    except OSError:
        return False
    return True


def _version1(root: Path, own: dict[str, str]) -> Cgroups | None:
    parents = tuple(root / name / own[name].lstrip("/") for name in ("memory", "pids") if name in own)
    return Cgroups(1, parents) if len(parents) == 2 and all(_usable(parent) for parent in parents) else None


def _delegates(parent: Path) -> bool:
    """Whether children of `parent` get the memory and process controllers, switching them on where that is allowed."""
    switch = parent / "cgroup.subtree_control"
    try:
        if {"memory", "pids"} <= set(switch.read_text().split()):
            return True
        switch.write_text("+memory +pids")
    except OSError:  # a group that holds processes cannot delegate, and neither can one owned by somebody else
        return False
    return {"memory", "pids"} <= set(switch.read_text().replace("+", "").split())


def _version2(root: Path, own: str) -> Cgroups | None:
    here = root / own.lstrip("/")
    for parent in (here, *here.parents):
        if not parent.is_relative_to(root):
            return None
        if _delegates(parent) and _usable(parent):
            return Cgroups(2, (parent,))
    return None


def find_cgroups(root: Path = ROOT, membership: Path = Path("/proc/self/cgroup")) -> Cgroups | None:
    """The control groups that this process may use, or None."""
    try:
        lines = [line.split(":", 2) for line in membership.read_text().splitlines()]
    except OSError:
        return None
    own = {name: path for _, names, path in lines for name in names.split(",")}
    return _version1(root, own) or (_version2(root, own[""]) if "" in own else None)
