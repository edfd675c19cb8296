"""Control groups of both versions; the second on a folder that stands in for its file system."""

import os
import subprocess
from pathlib import Path

from arise.sandbox import MIB, Limits
from arise.sandbox.cgroup import Cgroups, find_cgroups
from arise.sandbox.owner import owner_mark

LIMITS = Limits(memory_bytes=300 * MIB, processes=64)


def version_2(root: Path, own: str, delegating: str) -> Cgroups | None:
    """A tree in which only `delegating` hands its controllers on, with this process in the group `own`."""
    (root / own).mkdir(parents=True, exist_ok=True)
    here = root / own
    for folder in (here, *here.parents):
        if folder.is_relative_to(root):
            (folder / "cgroup.subtree_control").write_text("memory pids" if folder == root / delegating else "")
            if folder != root / delegating:
                (folder / "cgroup.subtree_control").unlink()
    membership = root / "membership"
    membership.write_text(f"0::/{own}\n")
    return find_cgroups(root, membership)


def test_version_2_goes_up_to_the_group_that_may_delegate(tmp_path: Path) -> None:
    cgroups = version_2(tmp_path, "user.slice/session", "user.slice")
    assert cgroups == Cgroups(2, (tmp_path / "user.slice",))


def test_version_2_writes_its_limits_and_reads_its_events(tmp_path: Path) -> None:
    cgroups = version_2(tmp_path, "session", "")
    assert cgroups is not None
    group = cgroups.create(LIMITS)
    (folder,) = group.folders
    written = {path.name: path.read_text() for path in folder.iterdir()}
    assert written == {"memory.max": str(300 * MIB), "pids.max": "65", "memory.swap.max": "0"}
    (folder / "memory.events").write_text("low 0\nmax 9\noom 2\noom_kill 2\noom_group_kill 7\n")
    assert group.out_of_memory_kills() == 2
    assert not cgroups.shares
    group.add(4711)
    assert (folder / "cgroup.procs").read_text() == "4711"


def test_version_2_gives_every_sandbox_the_same_weight_where_cpu_is_delegated(tmp_path: Path) -> None:
    (tmp_path / "cgroup.subtree_control").write_text("cpu memory pids")
    (tmp_path / "membership").write_text("0::/\n")
    cgroups = find_cgroups(tmp_path, tmp_path / "membership")
    assert cgroups == Cgroups(2, (tmp_path,), shares=True)
    (folder,) = cgroups.create(LIMITS).folders
    assert (folder / "cpu.weight").read_text() == "100"


def test_version_2_switches_on_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io memory pids")
    (tmp_path / "cgroup.subtree_control").write_text("")
    (tmp_path / "membership").write_text("0::/\n")
    find_cgroups(tmp_path, tmp_path / "membership")
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+cpu +memory +pids"


def test_version_1_has_a_separate_path_for_each_controller(tmp_path: Path) -> None:
    for name in ("memory/a/b", "pids", "cpu/c"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "membership").write_text("4:memory:/a/b\n8:pids:/\n2:cpu,cpuacct:/c\n0::/\n")
    cgroups = find_cgroups(tmp_path, tmp_path / "membership")
    assert cgroups == Cgroups(1, (tmp_path / "memory/a/b", tmp_path / "pids", tmp_path / "cpu/c"), shares=True)
    group = cgroups.create(LIMITS)
    written = {
        f"{path.parent.parent.name}/{path.name}": path.read_text() for f in group.folders for path in f.iterdir()
    }
    assert written == {"b/memory.limit_in_bytes": str(300 * MIB), "pids/pids.max": "65", "c/cpu.shares": "1024"}


def test_no_usable_group_is_none(tmp_path: Path) -> None:
    assert find_cgroups(tmp_path, tmp_path / "absent") is None
    (tmp_path / "membership").write_text("0::/nowhere\n5:cpu:/\n")
    assert find_cgroups(tmp_path, tmp_path / "membership") is None


def test_version_1_needs_both_controllers(tmp_path: Path) -> None:
    (tmp_path / "memory/own").mkdir(parents=True)
    (tmp_path / "membership").write_text("4:memory:/own\n")
    assert find_cgroups(tmp_path, tmp_path / "membership") is None
    (tmp_path / "pids").mkdir()
    (tmp_path / "membership").write_text("4:memory:/own\n8:pids:/\n0::/\n")
    found = find_cgroups(tmp_path, tmp_path / "membership")
    assert found == Cgroups(1, (tmp_path / "memory/own", tmp_path / "pids"))


def test_sweep_removes_groups_of_the_dead_only(tmp_path: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    names = [f"arise-{ended.pid}-123-0", f"arise-{os.getpid()}-1-0", f"{owner_mark()}-7", "arise-other", "else"]
    for name in names:
        (tmp_path / name).mkdir()
    assert Cgroups(2, (tmp_path,)).sweep() == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names[2:])
