"""The task-flow registry: the 82 task types that tag tasks and define cells (paper Sec. 3.3)."""

import difflib
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from arise.tasks.problem import TaskProblem

COUNT = 82


@dataclass(frozen=True)
class TaskType:
    """d — one type of work, named by its operation and its inspectable result, with when it applies and when not."""

    id: str
    name: str
    group: str
    definition: str
    true_criteria: str
    false_criteria: str


@cache
def task_types() -> dict[str, TaskType]:
    """Return all task types by id, in registry order."""
    data = tomllib.loads((files("arise.tasks") / "registry.toml").read_text("utf-8"))
    found = {entry["id"]: TaskType(**entry) for entry in data["task_type"]}
    assert len(found) == len(data["task_type"]) == COUNT, f"the registry must hold {COUNT} types with different ids"
    return found


def check_task_types(given: object, path: Path, where: str) -> list[TaskProblem]:
    """Return the problems of a list of task-type ids: not a list of strings, or unknown ids with the closest match."""
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
        return [TaskProblem(path, f"{where} is not a list of task-type ids", "write it as a list of text")]
    problems = []
    for name in given:
        if name not in task_types():
            near = difflib.get_close_matches(name, task_types(), 1)
            remedy = f"did you mean {near[0]!r}?" if near else "use an id of the registry"
            problems.append(TaskProblem(path, f"{where} has an unknown task type {name!r}", remedy))
    return problems
