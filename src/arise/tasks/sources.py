"""Local sources of a corpus: a folder, a list of paths, or a Harbor registry.json or dataset.toml."""

import hashlib
import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from arise.tasks.problem import TaskProblem
from arise.tasks.scan import read_text

_PARTS = ("environment", "tests", "solution", "steps")
_FILES = ("task.toml", "instruction.md", "README.md", "trajectory.json")
_IGNORED = ("__pycache__", "*.pyc", ".DS_Store")
_CLONE = "clone that repository and name the folder of its tasks"


@dataclass(frozen=True)
class Source:
    """The task directories that a source lists, and the problems of the source itself."""

    directories: tuple[Path, ...]
    problems: tuple[TaskProblem, ...] = ()


def is_listing(path: Path) -> bool:
    """Return whether a path is a file that lists task directories."""
    return path.name.partition("#")[0].endswith((".json", ".toml", ".txt", ".list"))


def listed_tasks(path: Path) -> Source:
    """Return the task directories that a file lists; its paths are relative to its folder.

    Select one of several datasets of a registry by name: `registry.json#terminal-bench@2.1`.
    """
    name, _, wanted = path.name.partition("#")
    file = path.with_name(name)
    text = read_text(file)
    if isinstance(text, TaskProblem):
        return Source((), (text,))
    try:
        if file.suffix == ".json":
            return _registry(file, json.loads(text), wanted)
        if file.suffix == ".toml":
            return _dataset(file, tomllib.loads(text))
    except (ValueError, RecursionError) as error:
        return Source((), (TaskProblem(file, f"cannot be parsed: {error}", "correct the syntax"),))
    lines = [line.strip() for line in text.splitlines()]
    return _existing(file, [line for line in lines if line and not line.startswith("#")])


def _existing(file: Path, names: Sequence[str]) -> Source:
    paths = [file.parent / name for name in names]
    missing = [TaskProblem(file, f"names {path}, which is not a folder", "correct the path") for path in paths]
    return Source(
        tuple(path for path in paths if path.is_dir()),
        tuple(problem for path, problem in zip(paths, missing, strict=True) if not path.is_dir()),
    )


def _registry(file: Path, content: Any, wanted: str) -> Source:
    """Read a Harbor registry: a list of datasets with their tasks."""
    sets = content if isinstance(content, list) else []
    if not sets or not all(isinstance(each, dict) and isinstance(each.get("tasks"), list) for each in sets):
        return Source((), (TaskProblem(file, "is not a list of datasets with tasks", "name a Harbor registry"),))
    names = [f"{each.get('name', '')}@{each.get('version', '')}" for each in sets]
    chosen = [each for each, name in zip(sets, names, strict=True) if not wanted or wanted in (name, each.get("name"))]
    if len(chosen) != 1:
        what = f"has no dataset {wanted!r}" if not chosen else f"has {len(chosen)} datasets"
        return Source((), (TaskProblem(file, what, f"add one of these to its name: #{', #'.join(names)}"),))
    tasks = [task for task in chosen[0]["tasks"] if isinstance(task, dict)]
    remote = [
        TaskProblem(file, f"keeps the task {task.get('name')!r} in a git repository", _CLONE)
        for task in tasks
        if task.get("git_url")
    ]
    found = _existing(file, [str(task.get("path", "")) for task in tasks if not task.get("git_url")])
    return Source(found.directories, (*remote, *found.problems))


def _dataset(file: Path, content: Mapping[str, Any]) -> Source:
    """Read a Harbor dataset: tasks in the same folder, pinned by content digest."""
    tasks = content.get("tasks")
    if not isinstance(tasks, list) or not all(isinstance(task, dict) and "name" in task for task in tasks):
        return Source((), (TaskProblem(file, "names no tasks", "add [[tasks]] with name and digest"),))
    found, problems = [], []
    for task in tasks:
        path = file.parent / str(task["name"]).rpartition("/")[2]
        pinned = str(task.get("digest", "")).removeprefix("sha256:")
        if not path.is_dir():
            problems.append(TaskProblem(file, f"names {task['name']!r}, and {path} is not a folder", "fetch the task"))
        elif pinned and content_digest(path) != pinned:
            what = f"is not the version that {file.name} pins, {pinned[:12]}"
            problems.append(TaskProblem(path, what, "fetch that version, or pin this one"))
        else:
            found.append(path)
    return Source(tuple(found), tuple(problems))


def content_digest(task: Path) -> str:
    """Return Harbor's content digest of a task without its own .gitignore."""
    outer = hashlib.sha256()
    for path in sorted(_content(task), key=lambda path: path.relative_to(task).as_posix()):
        inner = hashlib.sha256(path.read_bytes()).hexdigest()
        outer.update(f"{path.relative_to(task).as_posix()}\0{inner}\n".encode())
    return outer.hexdigest()


def _content(task: Path) -> Iterator[Path]:
    yield from (task / name for name in _FILES if (task / name).is_file())
    for part in _PARTS:
        for path in (task / part).rglob("*"):
            if path.is_file() and not any(fnmatch(name, ignored) for name in path.parts for ignored in _IGNORED):
                yield path


def tests_digest(tests: Path) -> str:
    """Return a digest of the files of a verifier, to find tasks with the same tests."""
    digest = hashlib.sha256()
    for path in sorted(path for path in tests.rglob("*") if path.is_file()):
        digest.update(f"{path.relative_to(tests).as_posix()}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()
