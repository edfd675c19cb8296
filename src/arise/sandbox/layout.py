"""The view from inside a sandbox, as a bwrap command line: parts of the host read-only, everything else new."""

import json
import os
import platform
import shutil
import sys
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from arise.ports import SandboxLost
from arise.sandbox.etc_folder import OF_THE_HOST, OWN, etc_folder
from arise.sandbox.limits import MIB, Limits
from arise.sandbox.native_server import INNER, as_lines, native_server
from arise.sandbox.seccomp import guard_settings

INSTALL = "apt-get install bubblewrap"
_INNER = "/run/arise"
_PACKAGE = f"{_INNER}/arise/sandbox"
SERVER = f"{_PACKAGE}/inside/server.py"
RELAY = f"{_PACKAGE}/inside/relay.py"
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_HERE = Path(__file__).parent
USER, WORKDIR = "agent", "/app"
TEMPORARY = "/tmp"  # noqa: S108 - the sandbox's own, which no other sandbox sees
_ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin",
    "HOME": TEMPORARY,
    "LANG": "C.UTF-8",
    "USER": USER,
    "TERM": "dumb",
}


# Entries of /proc that reveal the machine, its disks, devices and other users, and that no common program needs.
_HIDDEN_PROC = {
    *("acpi", "asound", "bus", "cmdline", "config.gz", "diskstats", "driver", "interrupts", "iomem", "ioports"),
    *("kallsyms", "key-users", "keys", "locks", "modules", "partitions", "scsi", "swaps", "timer_list"),
}


class SandboxUnavailable(SandboxLost):
    """No sandbox can be started on this machine; `remedy` says how to fix that."""

    def __init__(self, what: str, remedy: str) -> None:
        self.what, self.remedy = what, remedy
        super().__init__(f"{what}. To fix it: {remedy}")


def find_bubblewrap() -> str:
    """Return the path of bwrap; raise SandboxUnavailable with the install command if it is missing."""
    found = shutil.which("bwrap")
    if found is None:
        what = "bubblewrap (bwrap) is not installed, and agent commands never run unconfined"
        raise SandboxUnavailable(what, INSTALL)
    return found


def inner_python() -> tuple[str, tuple[str, ...]]:
    """Return the interpreter of the server inside a sandbox, and the folders outside /usr that it needs."""
    if Path("/usr/bin/python3").exists():
        return "/usr/bin/python3", ()
    return f"{sys.base_prefix}/bin/python3", () if sys.base_prefix.startswith("/usr") else (sys.base_prefix,)


def _system() -> list[str]:
    """Return mounts of the host's programs and libraries, read-only, and of a minimal /etc."""
    line = []
    for path in map(Path, SYSTEM):
        if path.is_symlink():
            line += ["--symlink", os.readlink(path), str(path)]
        elif path.is_dir():
            line += ["--ro-bind", str(path), str(path)]
    line += _etc()
    line += ["--ro-bind", str(_HERE / "inside"), f"{_PACKAGE}/inside"]
    if (server := native_server()) is not None:
        return [*line, "--ro-bind", str(server), INNER]
    return [*line, "--ro-bind", str(_HERE / "usage.py"), f"{_PACKAGE}/usage.py"]


def _etc() -> list[str]:
    if (folder := etc_folder()) is not None:
        return ["--ro-bind", str(folder), "/etc"]
    line = []
    for path in sorted(OWN.iterdir()):
        line += ["--ro-bind", str(path), f"/etc/{path.name}"]
    for name in OF_THE_HOST:
        line += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    return line


def hidden_proc() -> list[Path]:
    """Return the entries of /proc that no command may read: those that reveal the machine, and process 1.

    Process 1 is the server: with its folder covered, its memory and descriptors cannot be opened from inside. Started
    by root, the user inside is still the kernel's user 0, and as such owns the files of /proc.
    """
    entries = sorted(path for path in Path("/proc").iterdir() if not path.name.isdecimal() and not path.is_symlink())
    hidden = [path for path in entries if path.name in _HIDDEN_PROC or not path.stat().st_mode & 0o004]
    return [*hidden, Path("/proc/1")]


def proc_arguments(covered: bool = True) -> list[str]:
    """Return mounts of a read-only /proc, with its hidden entries covered unless that is done from outside."""
    covers = [word for path in hidden_proc() for word in cover(path)] if covered else []
    return ["--proc", "/proc", *covers, "--remount-ro", "/proc"]


def cover(path: Path) -> list[str]:
    """Return arguments that mount an empty file or folder over a path that is the same kind on the host."""
    if path.is_dir():
        return ["--perms", "0000", "--size", "4096", "--tmpfs", str(path), "--remount-ro", str(path)]
    return ["--ro-bind", "/dev/null", str(path)]


def covers(hidden: Collection[str], visible: Collection[str]) -> list[str]:
    """Return covers for `hidden` paths below a visible host path; raise SandboxUnavailable if one is needed inside."""
    roots = {Path(path).resolve() for path in visible}
    interpreter = Path(inner_python()[0]).resolve()
    covered: list[Path] = []
    for path in sorted({Path(path).resolve() for path in hidden}):
        shown = path.exists() and any(path.is_relative_to(root) for root in roots)
        if not shown or any(path.is_relative_to(outer) for outer in covered):
            continue
        if any(needed.is_relative_to(path) for needed in (interpreter, *roots)):
            raise SandboxUnavailable(
                f"{path} is hidden from agents, but their commands need it to run",
                f"move your runs and tasks to a separate folder, outside {', '.join(sorted(map(str, roots)))}",
            )
        covered.append(path)
    return [word for path in covered for word in cover(path)]


@dataclass(frozen=True)
class Layout:
    """Folders of a sandbox — `Layout(Limits(), folders=("/logs",), shown=("/tests",))`; the host can fill them."""

    limits: Limits
    workdir: str = WORKDIR
    folders: tuple[str, ...] = ()
    """Further writable places."""
    shown: tuple[str, ...] = ()
    """Places that cannot be written from inside, each a temporary folder of the host."""
    read_only: tuple[str, ...] = ()
    """Host paths that are shown at the same place, e.g. a toolchain in /opt."""
    hidden: tuple[str, ...] = ()
    """Host paths that no command may see, such as runs and tasks, even where a shown path holds them."""
    guard: tuple[str, str] | None = None
    """The folder of the reward files and that of the tests, where commands can be run under `inside/guard.py`."""
    passed: tuple[int, ...] = ()
    """Descriptors that bwrap inherits."""
    mounts: tuple[tuple[str, str], ...] = ()
    """Host paths and where each is seen inside, read-only."""
    late: bool = False
    """Whether /proc is covered from outside once the sandbox runs, instead of by bwrap; see `outside.py`."""

    @cached_property
    def late_covers(self) -> list[str]:
        """Return the paths that are covered from outside."""
        return [str(path) for path in hidden_proc()] if self.late else []

    @property
    def writable(self) -> tuple[str, ...]:
        """Return every folder with its own file system."""
        return (self.workdir, *self.folders)

    @property
    def mounted(self) -> list[str]:
        """Return the arguments that mount `mounts`."""
        return [word for path, inner in self.mounts for word in ("--ro-bind", path, inner)]

    @cached_property
    def guard_settings(self) -> dict[str, object]:
        """Return the settings of the server's guard; empty if there is no guard."""
        settings = guard_settings(platform.machine()) if self.guard else None
        if self.guard is None or settings is None:
            return {}
        logs, tests = self.guard
        return settings | {"logs": logs, "tests": tests, "system": self.read_only} | self.guard_extras

    @property
    def settings_json(self) -> str:
        """Return the guard's settings as the Python server reads them; "" if there is no guard."""
        return json.dumps(self.guard_settings) if self.guard_settings else ""

    @property
    def guard_extras(self) -> dict[str, object]:
        """Return additional guard settings."""
        return {}

    @property
    def prefix(self) -> list[str]:
        """Return the command that prepares the file system and executes bwrap; empty if nothing needs preparing."""
        return []

    @property
    def closing(self) -> list[str]:
        """Return the last arguments of bwrap, after all folders are mounted."""
        return ["--remount-ro", "/"]

    def server(self, *arguments: str) -> list[str]:
        """Return the command line of the server inside."""
        if native_server() is not None:
            return [INNER, *arguments, as_lines(self.guard_settings) if self.guard_settings else ""]
        return [inner_python()[0], "-I", "-S", SERVER, *arguments, self.settings_json]

    @cached_property
    def arguments(self) -> list[str]:
        """Return the bwrap command line, without the file descriptors that differ between starts."""
        line = [find_bubblewrap(), "--unshare-all", "--unshare-user", "--uid", "1000", "--gid", "1000"]
        line += ["--hostname", "sandbox", "--cap-drop", "ALL", "--die-with-parent", "--new-session", "--as-pid-1"]
        line.append("--clearenv")
        for name, value in _ENVIRONMENT.items():
            line += ["--setenv", name, value]
        line += _system()
        line += [*proc_arguments(not self.late), "--dev", "/dev"]
        sizes = {TEMPORARY: self.limits.tmp_bytes, "/dev/shm": min(16 * MIB, self.limits.tmp_bytes)}  # noqa: S108
        for place, size in (sizes | dict.fromkeys(self.writable, self.limits.disk_bytes)).items():
            line += ["--size", str(size), "--tmpfs", place]
        # After the sandbox's own /tmp, which would cover a toolchain inside the host's /tmp.
        bound = (*inner_python()[1], *self.read_only)
        for path in bound:
            line += ["--ro-bind", path, path]
        line += self.mounted
        line += covers((*self.hidden, str(_HERE.parent)), (*SYSTEM, *bound))
        return [*line, "--remount-ro", "/dev", "--chdir", self.workdir]
