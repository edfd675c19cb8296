"""Copy files between the host and the open folders of a sandbox without following links."""

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from arise.ports import TreeRefused
from arise.sandbox.tree import FOLDER, HOST_ERRORS, copy_data, copy_tree

_INNER = FOLDER | os.O_NOFOLLOW
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def _blamed() -> Iterator[ExitStack]:
    """Close collected descriptors on exit; raise TreeRefused for errors that an agent can cause."""
    try:
        with ExitStack() as stack:
            yield stack
    except OSError as error:
        if error.errno in HOST_ERRORS or isinstance(error, FileNotFoundError):
            raise
        raise TreeRefused(str(error)) from error


def put(source: Path, target: str, folders: Mapping[str, int]) -> None:
    """Copy a file or the content of a host folder to the path `target` inside, overwriting existing files."""
    with _blamed() as stack:
        place, parts = _locate(target, folders)
        if source.is_dir():
            opened = _descend(folders[place], parts, stack, create=True)
            copy_tree(source, opened, target, over=True)
            return
        if not parts:
            raise IsADirectoryError(f"{target} is a folder")
        parent = _descend(folders[place], parts[:-1], stack, create=True)
        name = parts[-1]
        if _exists(name, parent):
            os.unlink(name, dir_fd=parent)
        reader = _closing(os.open(source, os.O_RDONLY | os.O_CLOEXEC), stack)
        writer = _closing(os.open(name, _WRITE, 0o600, dir_fd=parent), stack)
        info = os.fstat(reader)
        copy_data(reader, writer, info.st_size)
        os.fchmod(writer, info.st_mode & 0o777)


def get(source: str, target: Path, folders: Mapping[str, int]) -> tuple[str, ...]:
    """Copy a file or the content of a folder from inside to the host path `target`; return what was left out."""
    with _blamed() as stack:
        place, parts = _locate(source, folders)
        parent = _descend(folders[place], parts[:-1], stack) if parts else -1
        info = os.stat(parts[-1], dir_fd=parent, follow_symlinks=False) if parts else os.fstat(folders[place])
        if stat.S_ISDIR(info.st_mode):
            opened = _descend(parent, parts[-1:], stack) if parts else folders[place]
            target.mkdir(parents=True, exist_ok=True)
            into = _closing(os.open(target, FOLDER), stack)
            return copy_tree(Path(f"/proc/self/fd/{opened}"), into, source, left_by_agent=True, over=True)
        if not stat.S_ISREG(info.st_mode):
            raise TreeRefused(f"{source} is neither a file nor a folder")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        reader = _closing(os.open(parts[-1], _READ, dir_fd=parent), stack)
        writer = _closing(os.open(target, _WRITE, 0o600), stack)
        copy_data(reader, writer, info.st_size)
        return ()


def _locate(path: str, folders: Mapping[str, int]) -> tuple[str, tuple[str, ...]]:
    """Return the open folder that contains a path inside, and the relative path from it."""
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    if not path.startswith("/") or ".." in parts:
        raise ValueError(f"{path!r} is not an absolute path without '..'")
    for length in range(len(parts), -1, -1):
        place = "/" + "/".join(parts[:length])
        if place in folders:
            return place, parts[length:]
    raise FileNotFoundError(f"{path} is in none of the folders that can be reached: {', '.join(sorted(folders))}")


def _descend(folder: int, parts: tuple[str, ...], stack: ExitStack, create: bool = False) -> int:
    for name in parts:
        if create and not _exists(name, folder):
            os.mkdir(name, 0o755, dir_fd=folder)
        folder = _closing(os.open(name, _INNER, dir_fd=folder), stack)
    return folder


def _exists(name: str, folder: int) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _closing(fd: int, stack: ExitStack) -> int:
    stack.callback(os.close, fd)
    return fd
