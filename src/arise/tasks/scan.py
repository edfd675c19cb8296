"""Scan an untrusted task directory: follow no link out of it and open no large file."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from arise.sandbox.limits import MIB
from arise.sandbox.tree import MAX_DEPTH, MAX_ENTRIES, stays_inside
from arise.tasks.problem import TaskProblem

MAX_TEXT_BYTES = MIB
MAX_FILE_BYTES = 64 * MIB
MAX_TASK_BYTES = 128 * MIB
HOMES = {"environment": "/app", "tests": "/tests", "verifier": "/tests", "solution": "/solution", "oracle": "/solution"}


def read_text(path: Path) -> str | TaskProblem:
    """Return the text of a small file, or the problem why it cannot be read."""
    try:
        info = path.stat()
        if not stat.S_ISREG(info.st_mode):
            return TaskProblem(path, "is not a file", "put a plain file here")
        if info.st_size > MAX_TEXT_BYTES:
            return TaskProblem(path, f"has {info.st_size} bytes, more than {MAX_TEXT_BYTES}", "shorten it")
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return TaskProblem(path, "is missing", "add it")
    except UnicodeDecodeError as error:
        return TaskProblem(path, f"is not UTF-8 at byte {error.start}", "save it as UTF-8")
    except OSError as error:
        return TaskProblem(path, f"cannot be read ({error.strerror})", "replace it by a readable file")
    if "\0" in text:
        return TaskProblem(path, "holds a NUL character", "remove it")
    return text


def scan(task: Path) -> list[TaskProblem]:
    """Return a problem for everything in a task directory that cannot be copied into a sandbox."""
    problems, size = [], 0
    for count, (path, info) in enumerate(_walk(task, ())):
        if isinstance(info, TaskProblem):
            problems.append(info)
            continue
        size += info.st_size
        if info.st_size > MAX_FILE_BYTES:
            what = f"has {info.st_size} bytes, more than {MAX_FILE_BYTES}"
            problems.append(TaskProblem(path, what, "make it smaller, or have the task produce it"))
        if count >= MAX_ENTRIES:
            problems.append(TaskProblem(task, f"has more than {MAX_ENTRIES} files", "pack them into an archive"))
            break
    if size > MAX_TASK_BYTES and not problems:
        problems.append(TaskProblem(task, f"has {size} bytes, more than {MAX_TASK_BYTES} in all", "make it smaller"))
    return problems


def _walk(folder: Path, levels: tuple[str, ...]) -> Iterator[tuple[Path, os.stat_result | TaskProblem]]:
    """Yield every file and link below `folder` with its stat or problem; `levels` is the path inside the task."""
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        yield folder, TaskProblem(folder, f"cannot be read ({error.strerror})", "make it readable")
        return
    if len(levels) > MAX_DEPTH:
        yield folder, TaskProblem(folder, f"is more than {MAX_DEPTH} folders deep", "use fewer levels")
        return
    for name in names:
        path = folder / name
        info = path.lstat()
        if not name.isprintable():
            yield path, TaskProblem(folder, f"has a file name that is not printable: {name!r}", "rename it")
        elif stat.S_ISLNK(info.st_mode):
            yield path, _check_link(path, levels) or info
        elif stat.S_ISDIR(info.st_mode):
            yield from _walk(path, (*levels, name))
        elif stat.S_ISREG(info.st_mode):
            yield path, info
        else:
            yield path, TaskProblem(path, "is neither a file, a folder nor a link", "remove it")


def _check_link(path: Path, levels: tuple[str, ...]) -> TaskProblem | None:
    """Return a problem unless a link stays in its part of the task or leads to the system, and forms no cycle."""
    link = os.readlink(path)
    home = HOMES.get(levels[0], "/nowhere") if levels else "/nowhere"
    if not stays_inside(link, max(0, len(levels) - 1), home):
        return TaskProblem(path, f"is a link out of its folder, to {link!r}", "put a copy of the file here")
    if link.startswith("/"):
        return None  # resolved inside the sandbox, not here
    try:
        circular = path.parent.resolve().is_relative_to(path.resolve())
        path.stat()
    except (OSError, RuntimeError) as error:
        if isinstance(error, FileNotFoundError):
            return None
        circular = True
    return TaskProblem(path, f"is a link in a circle, to {link!r}", "remove it") if circular else None
