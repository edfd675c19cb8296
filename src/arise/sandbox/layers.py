"""The file system of an image as a stack of layer folders, read from the host without mounting it."""

import contextlib
import functools
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

MAX_LINKS = 40
ALL_USERS = "0 0 4294967295"


@functools.cache
def in_user_namespace() -> bool:
    """Return whether this process is root of a user namespace only, as below `podman unshare`."""
    return Path("/proc/self/uid_map").read_text().split() != ALL_USERS.split()


def opaque_mark() -> str:
    """Return the attribute of a folder that hides lower layers; only root of the machine may set the trusted one."""
    return "user.overlay.opaque" if in_user_namespace() else "trusted.overlay.opaque"


@dataclass(frozen=True)
class User:
    """A user of an image — `User("worker", 1000, 1000, (), "/home/worker")`."""

    name: str = "root"
    uid: int = 0
    gid: int = 0
    groups: tuple[int, ...] = ()
    home: str = "/root"

    @property
    def mark(self) -> bytes:
        """Return the numeric ids in the format of the server inside."""
        return f"{self.uid} {self.gid} {','.join(map(str, self.groups))}".encode()


def is_whiteout(path: Path) -> bool:
    """Return whether this entry marks a file of the lower layers as deleted."""
    try:
        info = path.lstat()
    except OSError:
        return False
    return stat.S_ISCHR(info.st_mode) and info.st_rdev == 0


def is_opaque(path: Path) -> bool:
    """Return whether a folder of a layer hides the same folder of the lower layers."""
    try:
        return os.getxattr(path, opaque_mark(), follow_symlinks=False) == b"y"
    except OSError:
        return False


def find(layers: Sequence[Path], relative: str) -> Path | None:
    """Return a path's location in the topmost layer that has it, without following links; None if there is none."""
    parts = relative.strip("/").split("/")
    for layer in layers:
        here, hidden = layer, False
        for at, part in enumerate(parts):
            here = here / part
            if is_whiteout(here):
                return None
            if not os.path.lexists(here):
                break
            if at == len(parts) - 1:
                return here
            if here.is_symlink() or not here.is_dir():
                return None
            hidden = hidden or is_opaque(here)
        if hidden:
            return None
    return None


def leads_to(layers: Sequence[Path], name: str, places: Sequence[str]) -> bool:
    """Return whether a path of the merged layers passes through or ends in one of `places`, following links."""
    todo, here, hops = _parts(name), list[str](), 0
    while todo:
        part = todo.pop(0)
        if part == "..":
            here = here[:-1]
            continue
        here.append(part)
        if "/" + "/".join(here) in places:
            return True
        found = find(layers, "/".join(here))
        if found is not None and found.is_symlink():
            hops += 1
            if hops > MAX_LINKS:
                return True
            target = os.readlink(found)
            here = [] if target.startswith("/") else here[:-1]
            todo = _parts(target) + todo
    return False


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def names_in(layers: Sequence[Path], folder: str) -> set[str]:
    """Return the names a folder has in any layer, including deleted ones."""
    found: set[str] = set()
    for layer in layers:
        with contextlib.suppress(OSError):
            found |= set(os.listdir(layer / folder.strip("/")))
    return found


def _rows(layers: Sequence[Path], name: str) -> Iterator[list[str]]:
    path = find(layers, name)
    if path is not None and path.is_file() and not path.is_symlink():
        yield from (line.split(":") for line in path.read_text("utf-8", "replace").splitlines() if ":" in line)


def resolve_user(layers: Sequence[Path], wanted: str) -> User | None:
    """Return a user by name or number, with an optional `:group`, from the image's files; None for an unknown name."""
    name, _, group = (wanted or "root").partition(":")
    entry = next((row for row in _rows(layers, "etc/passwd") if len(row) > 5 and name in (row[0], row[2])), None)
    if entry is None and not name.isdecimal() and name != "root":
        return None
    known, uid, gid, home = (entry[0], int(entry[2]), int(entry[3]), entry[5]) if entry else (name, 0, 0, "/")
    if entry is None and name.isdecimal():
        uid = int(name)
    groups = [row for row in _rows(layers, "etc/group") if len(row) > 3]
    if group:
        found = next((int(row[2]) for row in groups if row[0] == group), int(group) if group.isdecimal() else None)
        if found is None:
            return None
        return User(known, uid, found, (), home)
    others = tuple(sorted({int(row[2]) for row in groups if known in row[3].split(",")}))
    return User(known, uid, gid, others, home)
