"""Copies a folder that may be hostile: no link is followed, nothing outside the source is read, the work is bounded.

Brings a task's files into a sandbox, and an agent's files into the verifier's. Links are kept only where they stay
inside the folder or lead to the read-only system, so that none becomes a window on the tests when it is read there.
"""

import errno
import os
import stat
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

MAX_DEPTH = 64
MAX_ENTRIES = 20_000
SYSTEM = ("/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/")
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_INNER = FOLDER | os.O_NOFOLLOW
_SOURCE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_TARGET = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def stays_inside(link: str, depth: int, home: str) -> bool:
    """Whether a link `depth` folders below `home` leads into `home` or the read-only system, whatever it passes."""
    parts = [part for part in link.split("/") if part not in ("", ".")]
    climbs = next((at for at, part in enumerate(parts) if part != ".."), len(parts))
    if (
        ".." in parts[climbs:]
    ):  # past a name, `..` starts from wherever another link leads: only leading ones can be counted
        return False
    if link.startswith("/"):
        return climbs == 0 and ("/" + "/".join(parts) + "/").startswith((*SYSTEM, home + "/"))
    return climbs <= depth


def copy_data(reader: int, writer: int, size: int) -> None:
    """Copies what is written and leaves holes as holes, so that a sparse file costs no more than its data."""
    at = 0
    while at < size:
        try:
            start = os.lseek(reader, at, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            break  # nothing but a hole is left
        at = os.lseek(reader, start, os.SEEK_HOLE)
        os.lseek(writer, start, os.SEEK_SET)
        while start < at:
            sent = os.sendfile(writer, reader, start, at - start)
            if sent == 0:  # the file shrank meanwhile
                break
            start += sent
    os.ftruncate(writer, size)


@dataclass
class Copy:
    """One copy under way into the open folder `target`, later seen as `home`; `left_out` did not come along."""

    target: int
    home: str
    left_out: list[str] = field(default_factory=list)
    entries: int = 0
    hard_links: dict[int, str] = field(default_factory=dict)

    def folder(self, source: int, target: int, at: str = "", depth: int = 0, skip: Collection[str] = ()) -> None:
        """Copies the content of one open folder, but for the names in `skip`."""
        with os.scandir(source) as entries:
            found = sorted(entry.name for entry in entries if entry.name not in skip)
        for name in found:
            self.entries += 1
            if self.entries > MAX_ENTRIES or depth >= MAX_DEPTH:
                self.left_out.append(f"{at}{name} (more than {MAX_ENTRIES} files or {MAX_DEPTH} levels)")
                return
            try:
                self._entry(name, source, target, at, depth)
            except PermissionError:
                self.left_out.append(f"{at}{name} (not readable)")

    def _entry(self, name: str, source: int, target: int, at: str, depth: int) -> None:
        info = os.stat(name, dir_fd=source, follow_symlinks=False)
        if stat.S_ISDIR(info.st_mode):
            self._subfolder(name, info, source, target, at, depth)
        elif stat.S_ISREG(info.st_mode):
            self._file(name, info, source, target, at)
        elif stat.S_ISLNK(info.st_mode):
            link = os.readlink(name, dir_fd=source)
            if stays_inside(link, depth, self.home):
                os.symlink(link, name, dir_fd=target)
            else:
                self.left_out.append(f"{at}{name} (a link to {link})")
        else:
            self.left_out.append(f"{at}{name} (not a file, folder or link)")

    def _subfolder(self, name: str, info: os.stat_result, source: int, target: int, at: str, depth: int) -> None:
        inner_source = os.open(name, _INNER, dir_fd=source)
        try:
            os.mkdir(name, 0o700, dir_fd=target)
            inner_target = os.open(name, _INNER, dir_fd=target)
            try:
                self.folder(inner_source, inner_target, f"{at}{name}/", depth + 1)
                os.fchmod(inner_target, info.st_mode & 0o777)
            finally:
                os.close(inner_target)
        finally:
            os.close(inner_source)

    def _file(self, name: str, info: os.stat_result, source: int, target: int, at: str) -> None:
        if info.st_nlink > 1:
            if info.st_ino in self.hard_links:
                os.link(self.hard_links[info.st_ino], name, src_dir_fd=self.target, dst_dir_fd=target)
                return
            self.hard_links[info.st_ino] = f"{at}{name}"
        reader = os.open(name, _SOURCE, dir_fd=source)
        try:
            writer = os.open(name, _TARGET, 0o600, dir_fd=target)
            try:
                copy_data(reader, writer, info.st_size)
                os.fchmod(writer, info.st_mode & 0o777)
            finally:
                os.close(writer)
        finally:
            os.close(reader)


def copy_tree(source: Path, target: int, home: str, skip: Collection[str] = ()) -> tuple[str, ...]:
    """Copies the folder `source` into the open folder `target`, seen inside as `home`; gives what was left out."""
    opened = os.open(source, FOLDER)
    try:
        copy = Copy(target, home)
        copy.folder(opened, target, skip=skip)
    finally:
        os.close(opened)
    return tuple(copy.left_out)


def read_plain_file(folder: int, name: str, limit: int) -> bytes | None:
    """The content of a regular file directly in an open folder, or None when it is absent or larger than `limit`."""
    try:
        fd = os.open(name, _SOURCE, dir_fd=folder)
    except OSError:
        return None
    try:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode) or info.st_size > limit:
            return None
        return os.read(fd, limit)
    finally:
        os.close(fd)
