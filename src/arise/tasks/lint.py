"""Static checks of readable tasks, from their files only, before anything is built or run."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

from arise.tasks.dockerfile import check_dockerfile
from arise.tasks.frontmatter import split_frontmatter
from arise.tasks.keys import misspelt
from arise.tasks.leaks import leaks
from arise.tasks.problem import TaskProblem
from arise.tasks.scan import read_text
from arise.tasks.scripts import unreadable_scripts
from arise.types import TaskSpec, VerifierSpec

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
    tests = list(dict.fromkeys(folder for verifier in verifiers for folder in verifier.folders))
    found = list(dict.fromkeys(problem for verifier in verifiers for problem in _tests(verifier)))
    found += [problem for folder in _solutions(task) for problem in _solution(folder)]
    found += [*misspelt(task.given, task.file), *_image(task), *_skills(task)]
    return [*found, *leaks(task, tests, _solutions(task))]


def _verifiers(task: TaskSpec) -> list[VerifierSpec]:
    return [step.verifier for step in task.steps] or [task.verifier]


def _solutions(task: TaskSpec) -> list[Path]:
    """Return the folders of solutions, including those without one."""
    parents = [task.directory / "steps" / step.name for step in task.steps] or [task.directory]
    return [path for parent in parents for name in ("solution", "oracle") if (path := parent / name).is_dir()]


def _scripts(task: TaskSpec) -> Iterator[Path]:
    folders = [
        *dict.fromkeys(each.script for each in _verifiers(task)),
        *(each / "solve.sh" for each in _solutions(task)),
    ]
    yield from (path for path in folders if path.is_file())


def _tests(verifier: VerifierSpec) -> Iterator[TaskProblem]:
    path = verifier.script
    script = read_text(path)
    if isinstance(script, TaskProblem):
        yield script
        return
    yield from _line_ends(path)
    files = (other for folder in verifier.folders for other in folder.rglob("*"))
    others = (read_text(other) for other in files if other.is_file() and other != path)
    if REWARDS not in script and not any(isinstance(text, str) and REWARDS in text for text in others):
        what = f"never writes a reward: nothing in {path.parent.name}/ names {REWARDS}"
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
            yield from check_dockerfile(place.dockerfile, place.context)


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
