"""Static checks of readable tasks, from their files only, before anything is built or run."""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

from arise.tasks.dockerfile import check_dockerfile
from arise.tasks.frontmatter import split_frontmatter
from arise.tasks.keys import misspelt
from arise.tasks.problem import TaskProblem
from arise.tasks.scan import read_text
from arise.tasks.scripts import unreadable_scripts
from arise.types import TaskSpec, VerifierSpec

MIN_SECRET_BYTES = 16
"""Shorter files may be equal by chance."""
REWARDS = "/logs/verifier"


def lint_all(tasks: Sequence[TaskSpec]) -> list[list[TaskProblem]]:
    """Return every problem that is visible in the files of each task."""
    found = [lint(task) for task in tasks]
    scripts = {path: at for at, task in enumerate(tasks) for path in _scripts(task)}
    for problem in unreadable_scripts(scripts):
        found[scripts[problem.path]].append(problem)
    return found


def lint(task: TaskSpec) -> list[TaskProblem]:
    """Return every problem that is visible in the files of a task, but for the syntax of its scripts."""
    verifiers = _verifiers(task)
    found = [problem for verifier in verifiers for problem in _tests(verifier)]
    found += [problem for folder in _solutions(task) for problem in _solution(folder)]
    return [*found, *misspelt(task.given, task.file), *_image(task), *_skills(task), *_leaks(task, verifiers)]


def _verifiers(task: TaskSpec) -> list[VerifierSpec]:
    return [step.verifier for step in task.steps] or [task.verifier]


def _solutions(task: TaskSpec) -> list[Path]:
    """Return the folders of solutions, including those without one."""
    parents = [task.directory / "steps" / step.name for step in task.steps] or [task.directory]
    return [path for parent in parents for name in ("solution", "oracle") if (path := parent / name).is_dir()]


def _scripts(task: TaskSpec) -> Iterator[Path]:
    folders = [
        *(each.tests / "test.sh" for each in _verifiers(task)),
        *(each / "solve.sh" for each in _solutions(task)),
    ]
    yield from (path for path in folders if path.is_file())


def _tests(verifier: VerifierSpec) -> Iterator[TaskProblem]:
    path = verifier.tests / "test.sh"
    script = read_text(path)
    if isinstance(script, TaskProblem):
        yield script
        return
    yield from _line_ends(path)
    others = (read_text(other) for other in verifier.tests.rglob("*") if other.is_file() and other != path)
    if REWARDS not in script and not any(isinstance(text, str) and REWARDS in text for text in others):
        what = f"never writes a reward: nothing in {verifier.tests.name}/ names {REWARDS}"
        yield TaskProblem(path, what, f"write {REWARDS}/reward.txt or reward.json")


def _line_ends(path: Path) -> Iterator[TaskProblem]:
    if b"\r\n" in path.read_bytes():
        yield TaskProblem(path, "has Windows line ends, which bash does not understand", "save it with Unix line ends")


def _solution(folder: Path) -> Iterator[TaskProblem]:
    path = folder / "solve.sh"
    text = read_text(path)
    if isinstance(text, TaskProblem):
        yield text
    elif not text.strip():
        yield TaskProblem(path, "is empty", "write a solution, or remove the folder")
    else:
        yield from _line_ends(path)


def _image(task: TaskSpec) -> Iterator[TaskProblem]:
    separate = [verifier.place for verifier in _verifiers(task) if verifier.place is not None]
    for place in (task.environment, *separate):
        if place.dockerfile is not None and not place.image:
            yield from check_dockerfile(place.dockerfile)


def _skills(task: TaskSpec) -> Iterator[TaskProblem]:
    """Yield a problem for each provided skill that no agent would find: its name and description are what it shows."""
    for folder in sorted(task.skills.iterdir()) if task.skills is not None else ():
        path = folder / "SKILL.md"
        text = read_text(path) if folder.is_dir() else ""
        if isinstance(text, TaskProblem):
            yield text
        elif text or folder.is_dir():
            yield from _skill(path, text)


def _skill(path: Path, text: str) -> Iterator[TaskProblem]:
    parts = split_frontmatter(text)
    try:
        about = yaml.safe_load(parts[0]) if parts is not None else None
    except yaml.YAMLError:
        about = None
    if not isinstance(about, dict):
        yield TaskProblem(path, "does not begin with YAML between two lines of ---", "add name and description")
        return
    for name in ("name", "description"):
        if not str(about.get(name) or "").strip():
            yield TaskProblem(path, f"has no {name}", f"add it to the YAML at the top: {name}: ...")


def _leaks(task: TaskSpec, verifiers: list[VerifierSpec]) -> Iterator[TaskProblem]:
    """Yield a problem for each file of the tests or the solution in the agent's environment."""
    folder = task.environment.files
    if folder is None:
        return
    secret = {
        digest: path
        for part in (*(each.tests for each in verifiers), *_solutions(task))
        for path, digest in _digests(part)
    }
    for path, digest in _digests(folder):
        if digest in secret:
            yield TaskProblem(path, f"shows the agent {secret[digest].name} of the tests or solution", "remove it")


def _digests(folder: Path) -> Iterator[tuple[Path, str]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and path.stat().st_size >= MIN_SECRET_BYTES:
            yield path, hashlib.sha256(path.read_bytes()).hexdigest()
