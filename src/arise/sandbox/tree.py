"""Copy untrusted folders: follow no links, read nothing outside the source, bound the work.

Copies a task's files into a sandbox, and an agent's files into the verifier's. Links are kept only if they stay inside
the folder or point to the read-only system, so that none exposes the tests when it is read there. Regular files and
folders are copied completely or not at all: test.sh must not judge a partial copy.
"""

import contextlib
import errno
import itertools
import os
import stat
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from arise.ports import TreeRefused

MAX_DEPTH = 64
MAX_ENTRIES = 20_000
SYSTEM = ("/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/")
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_INNER = FOLDER | os.O_NOFOLLOW
_PASSED = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
HOST_ERRORS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO, errno.ENODEV, errno.ESTALE, errno.EBADF})
"""Errors that are the machine's own; any other comes from what is being copied."""
_SOURCE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_TARGET = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def stays_inside(link: str, depth: int, home: str) -> bool:
    """Return whether a link `depth` folders below `home` always points into `home` or the read-only system."""
    parts = [part for part in link.split("/") if part not in ("", ".")]
    climbs = next((at for at, part in enumerate(parts) if part != ".."), len(parts))
    if (
        ".." in parts[climbs:]
    ):  # after a name, `..` is relative to the target of another link: only leading ones can be counted
        return False
    if link.startswith("/"):
        return climbs == 0 and ("/" + "/".join(parts) + "/").startswith((*SYSTEM, home + "/"))
    return climbs <= depth


def copy_data(reader: int, writer: int, size: int) -> None:
    """Copy data and keep holes, so that a sparse file costs no more than its data."""
    at = 0
    while at < size:
        try:
            start = os.lseek(reader, at, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            break  # only a hole is left
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
    """One copy in progress into the open folder `target`, later mounted as `home`; `left_out` lists skipped entries."""

    target: int
    home: str
    left_by_agent: bool = False
    over: bool = False
    """Whether files of the same name are replaced and folders of the same name filled."""
    left_out: list[str] = field(default_factory=list)
    entries: int = 0
    hard_links: dict[int, tuple[str, ...]] = field(default_factory=dict)

    def folder(self, source: int, target: int, at: tuple[str, ...] = (), skip: Collection[str] = ()) -> None:
        """Copy the content of one open folder, except the names in `skip`."""
        with os.scandir(source) as entries:
            found = [entry.name for entry in itertools.islice(entries, MAX_ENTRIES + 1) if entry.name not in skip]
        self.entries += len(found)
        if self.entries > MAX_ENTRIES:
            raise TreeRefused(f"more than {MAX_ENTRIES} files")
        if len(at) > MAX_DEPTH:
            raise TreeRefused(f"{readable(at)[:200]} is more than {MAX_DEPTH} folders deep")
        for name in sorted(found):
            try:
                self._entry(name, source, target, at)
            except PermissionError as error:
                if self.left_by_agent:
                    raise TreeRefused(f"{readable((*at, name))}: {error.strerror}") from error
                self.left_out.append(f"{readable((*at, name))} (not readable)")

    def _entry(self, name: str, source: int, target: int, at: tuple[str, ...]) -> None:
        info = os.stat(name, dir_fd=source, follow_symlinks=False)
        if stat.S_ISDIR(info.st_mode):
            self._subfolder(name, info, source, target, at)
        elif stat.S_ISREG(info.st_mode):
            self._file(name, info, source, target, at)
        elif stat.S_ISLNK(info.st_mode):
            link = os.readlink(name, dir_fd=source)
            if stays_inside(link, len(at), self.home):
                self._make_room(name, target)
                os.symlink(link, name, dir_fd=target)
            else:
                self.left_out.append(f"{readable((*at, name))} (a link to {readable((link,))})")
        else:
            self.left_out.append(f"{readable((*at, name))} (not a file, folder or link)")

    def _open(self, name: str, flags: int, info: os.stat_result, source: int) -> int:
        """Open an entry; restore read permission that the agent removed."""
        try:
            return os.open(name, flags, dir_fd=source)
        except PermissionError:
            if not self.left_by_agent:
                raise
            os.chmod(name, info.st_mode & 0o777 | 0o700, dir_fd=source)
            return os.open(name, flags, dir_fd=source)

    def _mode(self, info: os.stat_result, least: int) -> int:
        """Return the mode of a copy; add read permission so that an agent cannot hide files from test.sh."""
        return info.st_mode & 0o777 | (least if self.left_by_agent else 0)

    def _subfolder(self, name: str, info: os.stat_result, source: int, target: int, at: tuple[str, ...]) -> None:
        inner_source = self._open(name, _INNER, info, source)
        try:
            if self.left_by_agent:
                os.fchmod(inner_source, info.st_mode & 0o777 | 0o700)
            with contextlib.suppress(FileExistsError) if self.over else contextlib.nullcontext():
                os.mkdir(name, 0o700, dir_fd=target)
            inner_target = os.open(name, _INNER, dir_fd=target)
            try:
                self.folder(inner_source, inner_target, (*at, name))
                os.fchmod(inner_target, self._mode(info, 0o500))
            finally:
                os.close(inner_target)
        finally:
            os.close(inner_source)

    def _make_room(self, name: str, target: int) -> None:
        if self.over:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=target)

    def _file(self, name: str, info: os.stat_result, source: int, target: int, at: tuple[str, ...]) -> None:
        self._make_room(name, target)
        if info.st_nlink > 1:
            if info.st_ino in self.hard_links:
                self._link(self.hard_links[info.st_ino], name, target)
                return
            self.hard_links[info.st_ino] = (*at, name)
        reader = self._open(name, _SOURCE, info, source)
        try:
            writer = os.open(name, _TARGET, 0o600, dir_fd=target)
            try:
                copy_data(reader, writer, info.st_size)
                os.fchmod(writer, self._mode(info, 0o400))
            finally:
                os.close(writer)
        finally:
            os.close(reader)

    def _link(self, first: tuple[str, ...], name: str, target: int) -> None:
        """Create a hard link to the first copy folder by folder, since its whole path may exceed the length limit."""
        folder = os.dup(self.target)
        try:
            for part in first[:-1]:
                inner = os.open(part, _PASSED, dir_fd=folder)
                os.close(folder)
                folder = inner
            os.link(first[-1], name, src_dir_fd=folder, dst_dir_fd=target, follow_symlinks=False)
        finally:
            os.close(folder)


def readable(parts: tuple[str, ...]) -> str:
    """Return a printable path for names with arbitrary bytes."""
    text = os.fsencode("/".join(parts)).decode("utf-8", "replace")
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


def copy_tree(
    source: Path, target: int, home: str, skip: Collection[str] = (), left_by_agent: bool = False, over: bool = False
) -> tuple[str, ...]:
    """Copy the folder `source` into the open folder `target`, mounted inside as `home`; return what was left out.

    In an agent's folder, modes that deny access to its own user are changed in the source.
    """
    if left_by_agent:
        os.chmod(source, source.stat().st_mode & 0o7777 | 0o700)  # the attempt may continue, and with other users
    opened = os.open(source, FOLDER)
    try:
        copy = Copy(target, home, left_by_agent, over)
        copy.folder(opened, target, skip=skip)
    except OSError as error:
        if error.errno in HOST_ERRORS:
            raise
        raise TreeRefused(error.strerror or str(error)) from error
    finally:
        os.close(opened)
    return tuple(copy.left_out)


def read_plain_file(folder: int, name: str, limit: int) -> bytes | None:
    """Return the content of a regular file directly in an open folder; None if it is absent or larger than `limit`."""
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
