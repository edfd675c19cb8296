"""Static checks of a readable task, from its files only, before anything is built or run."""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from arise.tasks.problem import TaskProblem
from arise.tasks.scan import read_text
from arise.types import TaskSpec, VerifierSpec

MIN_SECRET_BYTES = 16
"""Shorter files may be equal by chance."""
_FROM = re.compile(r"^\s*FROM\s+\S", re.IGNORECASE | re.MULTILINE)
_COPY = re.compile(r"^\s*(?:COPY|ADD)\s+(?:--\S+\s+)*(\S+)", re.IGNORECASE | re.MULTILINE)


def lint(task: TaskSpec) -> list[TaskProblem]:
    """Return every problem that is visible in the files of a task."""
    verifiers = [step.verifier for step in task.steps] or [task.verifier]
    found = [problem for verifier in verifiers for problem in _tests(verifier)]
    return [*found, *_image(task), *_leaks(task, verifiers)]


def _tests(verifier: VerifierSpec) -> Iterator[TaskProblem]:
    path = verifier.tests / "test.sh"
    script = read_text(path)
    if isinstance(script, TaskProblem):
        yield script
        return
    if b"\r\n" in path.read_bytes():
        yield TaskProblem(path, "has Windows line ends, which bash does not understand", "save it with Unix line ends")
    others = (read_text(other) for other in verifier.tests.rglob("*") if other.is_file() and other != path)
    if "reward" not in script and not any(isinstance(text, str) and "reward" in text for text in others):
        yield TaskProblem(path, "never writes a reward", "write /logs/verifier/reward.txt or reward.json")


def _image(task: TaskSpec) -> Iterator[TaskProblem]:
    path = task.environment.dockerfile
    text = read_text(path) if path is not None else ""
    if path is None or task.environment.image:
        return
    if isinstance(text, TaskProblem):
        yield text
        return
    if not _FROM.search(text):
        yield TaskProblem(path, "has no FROM", "name the image to start from")
    for source in _COPY.findall(text):
        if source.startswith(("..", "/..")):
            yield TaskProblem(path, f"copies {source!r}, which lies outside its folder", "move it to environment/")
        elif _is_missing(source, path.parent, text):
            yield TaskProblem(path, f"copies {source!r}, which is not in environment/", "add the file")


def _is_missing(source: str, folder: Path, text: str) -> bool:
    """Return whether a plain path that a Dockerfile copies is missing in the build folder."""
    if any(sign in source for sign in "*?[$:<\"'") or re.search(rf"--from=\S+\s+{re.escape(source)}", text):
        return False
    return not (folder / source.lstrip("/")).exists()


def _leaks(task: TaskSpec, verifiers: list[VerifierSpec]) -> Iterator[TaskProblem]:
    """Yield a problem for each file of the tests or the solution in the agent's environment."""
    folder = task.environment.files
    if folder is None:
        return
    solutions = [step.solution for step in task.steps] or [task.solution]
    secret = {
        digest: path
        for part in (*(each.tests for each in verifiers), *(each.folder for each in solutions if each is not None))
        for path, digest in _digests(part)
    }
    for path, digest in _digests(folder):
        if digest in secret:
            yield TaskProblem(path, f"shows the agent {secret[digest].name} of the tests or solution", "remove it")


def _digests(folder: Path) -> Iterator[tuple[Path, str]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and path.stat().st_size >= MIN_SECRET_BYTES:
            yield path, hashlib.sha256(path.read_bytes()).hexdigest()
