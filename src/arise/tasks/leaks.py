"""Tests and solutions that the agent of a task could see by mistake.

Many tasks give the agent a file that their tests hold as well, such as data of which the tests need an untouched copy.
A file that a Dockerfile copies by its name or by that of its folder is given on purpose.
"""

import hashlib
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path

from arise.sandbox.plain import beyond_plain
from arise.tasks.dockerfile import instructions, sources_of
from arise.tasks.problem import TaskProblem
from arise.tasks.scan import read_text
from arise.types import Place, TaskSpec

MIN_SECRET_BYTES = 16
"""Shorter files may be equal by chance."""
_TESTS = (
    *("test.sh", "test_*", "*_test.*", "*.test.*", "conftest.py"),
    *("expected*", "answer*", "golden*", "truth*", "solution*", "oracle*"),
)
"""Names of files of the tests that are more than data."""
_SOLUTIONS = ("solve*", "*.sh", "*.py", "*.js", "*.ts", "*.rb", "*.go", "*.rs", "*.c", "*.cpp", "*.java", "*.patch")
_EVERYTHING = (".", "./", "/", "*", "./*")


def leaks(task: TaskSpec, tests: Sequence[Path], solutions: Sequence[Path]) -> Iterator[TaskProblem]:
    """Yield a problem for each file of the tests or the solution that the agent's environment shows by mistake."""
    place = task.environment
    if place.files is None or not _copied_whole(place):
        return
    if place.context is not None and place.context == task.directory:
        yield TaskProblem(
            place.dockerfile or task.file, "copies the whole task, its tests included", "name what to copy"
        )
        return
    secret = {digest: path for folder in tests for path, digest in _digests(folder, _TESTS)}
    secret |= {digest: path for folder in solutions for path, digest in _digests(folder, _SOLUTIONS)}
    for path, digest in _digests(place.files, ("*",)) if secret else ():
        if digest in secret:
            yield TaskProblem(path, f"shows the agent {secret[digest].name} of the tests or solution", "remove it")


def _copied_whole(place: Place) -> bool:
    """Return whether everything in the environment's folder reaches the agent."""
    if place.dockerfile is None:
        return True
    text = read_text(place.dockerfile)
    if not isinstance(text, str):
        return False
    if not beyond_plain(text):
        return True  # it is not built, and the folder is copied
    copies = (each.rest for each in instructions(text) if each.word in ("COPY", "ADD"))
    return any(source in _EVERYTHING for rest in copies for source in sources_of(rest))


def _digests(folder: Path, names: Sequence[str]) -> Iterator[tuple[Path, str]]:
    for path in sorted(folder.rglob("*")):
        if not any(fnmatch(path.name.lower(), name) for name in names) or not path.is_file() or path.is_symlink():
            continue
        if path.stat().st_size >= MIN_SECRET_BYTES:
            yield path, hashlib.sha256(path.read_bytes()).hexdigest()
