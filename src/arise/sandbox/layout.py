"""What a sandbox looks like from inside, as a bwrap command line: some of the host, read-only, and the rest made."""

import os
import shutil
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from arise.ports import SandboxLost
from arise.sandbox.limits import MIB, Limits

INSTALL = "apt-get install bubblewrap"
SERVER = "/run/arise/server.py"
_HERE = Path(__file__).parent
_ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin",
    "HOME": "/tmp",  # noqa: S108 - the sandbox's own, which no other sandbox sees
    "LANG": "C.UTF-8",
    "USER": "agent",
    "TERM": "dumb",
}


class SandboxUnavailable(SandboxLost):
    """No sandbox can be had on this machine; the message says what mends it."""


def find_bubblewrap() -> str:
    """The path of bwrap, or the one command that installs it."""
    found = shutil.which("bwrap")
    if found is None:
        raise SandboxUnavailable(
            f"bubblewrap (bwrap) is not installed, and agent commands never run unconfined. Install it with: {INSTALL}"
        )
    return found


def inner_python() -> tuple[str, tuple[str, ...]]:
    """The interpreter that serves inside a sandbox, and the folders outside /usr that it needs there."""
    if Path("/usr/bin/python3").exists():
        return "/usr/bin/python3", ()
    return f"{sys.base_prefix}/bin/python3", () if sys.base_prefix.startswith("/usr") else (sys.base_prefix,)


def _system() -> list[str]:
    """The host's programs and libraries, read-only, and an /etc that holds no more than programs need to start."""
    line = ["--ro-bind", "/usr", "/usr"]
    for path in map(Path, ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")):
        if path.is_symlink():
            line += ["--symlink", os.readlink(path), str(path)]
        elif path.is_dir():
            line += ["--ro-bind", str(path), str(path)]
    for path in sorted((_HERE / "etc").iterdir()):
        line += ["--ro-bind", str(path), f"/etc/{path.name}"]
    for name in ("/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime"):
        line += ["--ro-bind-try", name, name]
    return [*line, "--ro-bind", str(_HERE / "server.py"), SERVER]


def _proc() -> list[str]:
    """A /proc in which nothing can be written, nothing read that only root may, and the server not opened."""
    # Started by root, the user inside is still the kernel's user 0, and as such owns the files of /proc.
    line = ["--proc", "/proc"]
    for path in sorted(path for path in Path("/proc").iterdir() if not path.name.isdecimal() and path.is_file()):
        if path.name in ("keys", "key-users") or not path.stat().st_mode & 0o004:
            line += ["--ro-bind", "/dev/null", str(path)]
    # Process 1 is the server: with its folder covered, its memory and descriptors cannot be opened from inside.
    return [*line, "--perms", "0000", "--size", "4096", "--tmpfs", "/proc/1", "--remount-ro", "/proc"]


@dataclass(frozen=True)
class Layout:
    """Where things are — `Layout(Limits(), folders=("/logs",), shown=("/tests",))`; the host can fill all of them."""

    limits: Limits
    workdir: str = "/app"
    folders: tuple[str, ...] = ()
    """Further writable places."""
    shown: tuple[str, ...] = ()
    """Places that cannot be written from inside, each a temporary folder of the host."""
    read_only: tuple[str, ...] = ()
    """Host paths that are shown at the same place, e.g. a toolchain in /opt."""

    @property
    def writable(self) -> tuple[str, ...]:
        """Every place with a file system of its own."""
        return (self.workdir, *self.folders)

    @cached_property
    def arguments(self) -> list[str]:
        """The bwrap command line, but for the descriptors that differ from start to start."""
        line = [find_bubblewrap(), "--unshare-all", "--unshare-user", "--uid", "1000", "--gid", "1000"]
        line += ["--hostname", "sandbox", "--cap-drop", "ALL", "--die-with-parent", "--new-session", "--as-pid-1"]
        line.append("--clearenv")
        for name, value in _ENVIRONMENT.items():
            line += ["--setenv", name, value]
        line += _system()
        line += [*_proc(), "--dev", "/dev"]
        sizes = {"/tmp": self.limits.tmp_bytes, "/dev/shm": min(16 * MIB, self.limits.tmp_bytes)}  # noqa: S108
        for place, size in (sizes | dict.fromkeys(self.writable, self.limits.disk_bytes)).items():
            line += ["--size", str(size), "--tmpfs", place]
        # After the sandbox's own /tmp, which would cover a toolchain that lies in the host's.
        for path in (*inner_python()[1], *self.read_only):
            line += ["--ro-bind", path, path]
        return [*line, "--remount-ro", "/dev", "--chdir", self.workdir]
