"""Read a folder of task directories and report all problems of all tasks at once."""

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from arise.tasks.directory import read_task
from arise.tasks.problem import CorpusError, TaskProblem
from arise.tasks.registry import check_task_types
from arise.tasks.scan import read_text
from arise.tasks.schema_values import BENCHFLOW_FILE, HARBOR_FILE
from arise.tasks.sources import is_listing, listed_tasks
from arise.types import TaskSpec

TAGS_FILE = "tags.json"
MAX_NESTING = 3


@dataclass(frozen=True)
class Corpus:
    """The usable tasks, and the problems of the others."""

    tasks: tuple[TaskSpec, ...]
    problems: tuple[TaskProblem, ...]


def load_corpus(directory: Path) -> tuple[TaskSpec, ...]:
    """Return all tasks of a folder, ordered by path; raise CorpusError with all problems if there are any."""
    corpus = read_corpus(directory)
    if corpus.problems:
        raise CorpusError(corpus.problems)
    return corpus.tasks


def read_corpus(directory: Path) -> Corpus:
    """Return the usable tasks of a folder or of a file that lists them, and all problems of the others."""
    if is_listing(directory):
        source = listed_tasks(directory)
        return _read(source.directories, list(source.problems), directory.parent)
    if not directory.is_dir():
        return Corpus((), (TaskProblem(directory, "is not a folder", "name a folder of task directories"),))
    return _read(_task_directories(directory), [], directory)


def _read(directories: Iterable[Path], problems: list[TaskProblem], directory: Path) -> Corpus:
    tasks: list[TaskSpec] = []
    for path in directories:
        if path.is_symlink():
            problems.append(TaskProblem(path, "is a link", "put the task directory itself here"))
            continue
        found = read_task(path)
        if isinstance(found, TaskSpec):
            tasks.append(found)
        else:
            problems += found
    if not tasks and not problems:
        problems.append(TaskProblem(directory, "holds no task directory", "name a folder of task directories"))
    tasks = _without_duplicates(tasks, problems)
    return Corpus(tuple(_with_tags(tasks, directory / TAGS_FILE, problems)), tuple(problems))


def _is_task(path: Path) -> bool:
    return any(os.path.lexists(path / name) for name in (HARBOR_FILE, BENCHFLOW_FILE))


def _folders(directory: Path) -> list[Path]:
    """Return the subfolders of a folder, including links, without hidden ones."""
    return sorted(p for p in directory.iterdir() if not p.name.startswith(".") and (p.is_symlink() or p.is_dir()))


def _holds_tasks(directory: Path, levels: int) -> bool:
    inner = [] if directory.is_symlink() or levels == 0 else _folders(directory)
    return any(_is_task(path) or _holds_tasks(path, levels - 1) for path in inner)


def _task_directories(directory: Path, levels: int = MAX_NESTING) -> Iterator[Path]:
    """Yield folders with a task file, and folders without one at any level, to report them as broken tasks."""
    if _is_task(directory):
        yield directory
        return
    for path in _folders(directory):
        if _is_task(path) or not _holds_tasks(path, levels):
            yield path
        else:
            yield from _task_directories(path, levels - 1)


def _without_duplicates(tasks: list[TaskSpec], problems: list[TaskProblem]) -> list[TaskSpec]:
    """Keep the first task of each id and report the others."""
    first: dict[str, TaskSpec] = {}
    for found in tasks:
        other = first.setdefault(found.task.id, found)
        if other is not found:
            what = f"has the id {found.task.id!r} of {other.directory}"
            problems.append(TaskProblem(found.directory, what, "give it another name in [task] or of its folder"))
    return list(first.values())


def _with_tags(tasks: list[TaskSpec], path: Path, problems: list[TaskProblem]) -> list[TaskSpec]:
    """Return the tasks with the types from tags.json, which override those in the task files."""
    if not os.path.lexists(path):
        return tasks
    text = read_text(path)
    if isinstance(text, TaskProblem):
        problems.append(text)
        return tasks
    try:
        tags = json.loads(text)
    except (ValueError, RecursionError) as error:
        problems.append(TaskProblem(path, f"is not JSON: {error}", "correct the syntax"))
        return tasks
    if not isinstance(tags, dict):
        problems.append(TaskProblem(path, "is not an object", 'write {"task id": ["task-type", ...], ...}'))
        return tasks
    known = {found.task.id for found in tasks}
    for name, types in tags.items():
        if name not in known:
            problems.append(TaskProblem(path, f"names no usable task: {name!r}", "remove it or add the task"))
        problems += check_task_types(types, path, name)
    usable = {name: tuple(types) for name, types in tags.items() if isinstance(types, list)}
    return [
        replace(found, task=replace(found.task, task_types=usable.get(found.task.id, found.task.task_types)))
        for found in tasks
    ]
