"""Kernel limits on memory, processes and CPU share: cgroup version 1 or 2, one group per sandbox."""

import contextlib
from dataclasses import dataclass
from pathlib import Path

from arise.sandbox.limits import Limits
from arise.sandbox.owner import new_name, orphans

ROOT = Path("/sys/fs/cgroup")
NEEDED = ("memory", "pids")
WEIGHT = {1: ("cpu.shares", "1024"), 2: ("cpu.weight", "100")}
"""By version, the file and value that give every sandbox the same processor share, however many processes it runs."""
CPU_PERIOD = 100_000  # microseconds


@dataclass(frozen=True)
class ControlGroup:
    """The cgroup of one sandbox: one folder in version 2, one per controller in version 1."""

    folders: tuple[Path, ...]
    events: Path

    def add(self, pid: int) -> None:
        """Move a process into the group; its later children start inside it."""
        for folder in self.folders:
            (folder / "cgroup.procs").write_text(str(pid))

    def out_of_memory_kills(self) -> int:
        """Return how many processes of the group the kernel has OOM-killed."""
        try:
            lines = self.events.read_text().splitlines()
        except OSError:
            return 0
        return sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))

    def remove(self) -> None:
        """Remove the folders; leave a busy one for the next sweep."""
        for folder in self.folders:
            with contextlib.suppress(OSError):
                folder.rmdir()


@dataclass(frozen=True)
class Cgroups:
    """The parent cgroups: one each for memory, pids and cpu in version 1, a single one in version 2."""

    version: int
    parents: tuple[Path, ...]
    shares: bool = False
    """Whether each sandbox gets an equal share of the processors."""

    def create(self, limits: Limits) -> ControlGroup:
        """Create one group and write its limits."""
        name = new_name()
        folders = tuple(parent / name for parent in self.parents)
        memory, pids, cpu = folders[0], folders[0 if self.version == 2 else 1], folders[-1]
        group = ControlGroup(
            tuple(dict.fromkeys(folders)), memory / _of(self.version, "memory.oom_control", "memory.events")
        )
        try:
            for folder in group.folders:
                folder.mkdir()
            (memory / _of(self.version, "memory.limit_in_bytes", "memory.max")).write_text(str(limits.memory_bytes))
            (pids / "pids.max").write_text(str(limits.processes + 1))  # plus the sandbox's own server
            if self.shares:
                file, weight = WEIGHT[self.version]
                (cpu / file).write_text(weight)
                _limit_cpus(cpu, self.version, limits.cpus)
            if self.version == 2:
                with contextlib.suppress(OSError):  # absent where the kernel has no swap accounting
                    (memory / "memory.swap.max").write_text("0")
        except OSError:
            group.remove()
            raise
        return group

    def sweep(self) -> int:
        """Remove the groups of dead owners and return their number."""
        removed = 0
        for folder in (folder for parent in self.parents for folder in orphans(parent)):
            with contextlib.suppress(OSError):
                folder.rmdir()
                removed += 1
        return removed


def _limit_cpus(group: Path, version: int, cpus: float | None) -> None:
    if cpus is None:
        return
    quota = int(cpus * CPU_PERIOD)
    if version == 2:
        (group / "cpu.max").write_text(f"{quota} {CPU_PERIOD}")
    else:
        (group / "cpu.cfs_period_us").write_text(str(CPU_PERIOD))
        (group / "cpu.cfs_quota_us").write_text(str(quota))


def _of(version: int, first: str, second: str) -> str:
    """Return the name of a file in this version of cgroups."""
    return first if version == 1 else second


def _usable(parent: Path) -> bool:
    """Return whether a group can be created and removed under `parent`."""
    probe = parent / new_name()
    try:
        probe.mkdir()
        probe.rmdir()
    except OSError:
        return False
    return True


def _version1(root: Path, own: dict[str, str]) -> Cgroups | None:
    """Find the parent groups in version 1, where each controller has its own hierarchy and path."""
    parents = {name: root / name / own[name].lstrip("/") for name in (*NEEDED, "cpu") if name in own}
    usable = {name: parent for name, parent in parents.items() if _usable(parent)}
    if not usable.keys() >= set(NEEDED):
        return None
    return Cgroups(1, tuple(usable.values()), "cpu" in usable)


def _delegated(parent: Path) -> set[str]:
    """Return the controllers delegated to children of `parent`, enabling missing ones if permitted."""
    switch = parent / "cgroup.subtree_control"
    # A group with processes or of another user cannot enable controllers: use those that are already enabled.
    with contextlib.suppress(OSError):
        there = set((parent / "cgroup.controllers").read_text().split())
        off = there & {*NEEDED, "cpu"} - set(switch.read_text().split())
        if off:
            switch.write_text(" ".join(f"+{name}" for name in sorted(off)))
    try:
        return set(switch.read_text().split())
    except OSError:
        return set()


def _version2(root: Path, own: str) -> Cgroups | None:
    here = root / own.lstrip("/")
    for parent in (here, *here.parents):
        if not parent.is_relative_to(root):
            return None
        controllers = _delegated(parent)
        if controllers >= set(NEEDED) and _usable(parent):
            return Cgroups(2, (parent,), "cpu" in controllers)
    return None


def find_cgroups(root: Path = ROOT, membership: Path = Path("/proc/self/cgroup")) -> Cgroups | None:
    """Return the cgroups that this process may use, or None."""
    try:
        lines = [line.split(":", 2) for line in membership.read_text().splitlines()]
    except OSError:
        return None
    own = {name: path for _, names, path in lines for name in names.split(",")}
    return _version1(root, own) or (_version2(root, own[""]) if "" in own else None)
