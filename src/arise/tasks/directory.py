"""One task directory, Harbor's (task.toml, instruction.md) or BenchFlow's (task.md), read into one object."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import yaml

from arise.tasks.needs import COMPOSE_FILES, Unmet, unmet_needs
from arise.tasks.problem import TaskProblem
from arise.tasks.registry import check_task_types
from arise.tasks.scan import read_text, scan
from arise.tasks.schema import TaskFile, check_task_file
from arise.types import Place, Task, VerifierJob

HARBOR_FILE, BENCHFLOW_FILE = "task.toml", "task.md"
BUILD_FILES = frozenset({"Dockerfile", ".dockerignore", *COMPOSE_FILES})
"""What describes an image in environment/, and is not part of what the agent finds."""
_FRONTMATTER = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*\r?$\n?(.*)\Z", re.DOTALL | re.MULTILINE)
_PROMPT = re.compile(r"^## +prompt[ \t]*$\n(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE | re.IGNORECASE)


@dataclass(frozen=True)
class TaskDir:
    """A task and where its parts are — `read_task(Path("tasks/csv-007"))`."""

    task: Task
    directory: Path
    tests: Path
    layout: Literal["harbor", "benchflow"] = "harbor"
    environment: Path | None = None
    solution: Path | None = None
    agent_timeout: float | None = None
    verifier_timeout: float = 600.0
    solution_timeout: float = 600.0
    verifier_env: Mapping[str, str] = field(default_factory=dict)
    solution_env: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, object] = field(default_factory=dict)
    reward_range: tuple[float, float] = (0.0, 1.0)
    unmet: tuple[Unmet, ...] = ()
    """What it asks for and does not get."""

    @property
    def place(self) -> Place:
        """What it asks of its sandbox."""
        return Place(self.environment, tuple(sorted(BUILD_FILES)))

    @property
    def verifier_job(self) -> VerifierJob:
        """How its tests are run."""
        return VerifierJob(self.tests, self.verifier_timeout, self.verifier_env, place=self.place)


def read_task(directory: Path) -> TaskDir | list[TaskProblem]:
    """The task, or everything that is wrong with it."""
    problems: list[TaskProblem] = []
    harbor, benchflow = (_present(directory / name) for name in (HARBOR_FILE, BENCHFLOW_FILE))
    if harbor == benchflow:
        what = f"has both {HARBOR_FILE} and {BENCHFLOW_FILE}" if harbor else f"has no {HARBOR_FILE} or {BENCHFLOW_FILE}"
        problems.append(TaskProblem(directory, what, "keep exactly one of them"))
        return [*problems, *scan(directory)]
    found, instruction = _read_harbor(directory, problems) if harbor else _read_benchflow(directory, problems)
    tests = directory / _part(directory, "tests", "verifier", prefer_second=benchflow)
    script = read_text(tests / "test.sh")
    if isinstance(script, TaskProblem):
        problems.append(script)
    elif not script.strip():
        problems.append(TaskProblem(tests / "test.sh", "is empty", "write a verifier that writes a reward"))
    if found is not None:
        file = directory / (HARBOR_FILE if harbor else BENCHFLOW_FILE)
        problems += check_task_types(found.task_types, file, "metadata.task_types")
    problems += scan(directory)
    if problems or found is None:
        return problems
    return _assemble(directory, found, instruction, tests, "harbor" if harbor else "benchflow")


def _present(path: Path) -> bool:
    return path.is_symlink() or path.exists()


def _part(directory: Path, first: str, second: str, prefer_second: bool) -> str:
    """BenchFlow accepts Harbor's names of the folders as well as its own."""
    return second if prefer_second and (directory / second).is_dir() else first


def _read_harbor(directory: Path, problems: list[TaskProblem]) -> tuple[TaskFile | None, str]:
    path = directory / HARBOR_FILE
    instruction = _instruction(read_text(directory / "instruction.md"), directory / "instruction.md", problems)
    text = read_text(path)
    if isinstance(text, TaskProblem):
        problems.append(text)
        return None, instruction
    try:
        given = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        problems.append(TaskProblem(path, f"is not TOML: {error}", "correct the syntax"))
        return None, instruction
    return _checked(given, path, problems), instruction


def _read_benchflow(directory: Path, problems: list[TaskProblem]) -> tuple[TaskFile | None, str]:
    path = directory / BENCHFLOW_FILE
    text = read_text(path)
    if isinstance(text, TaskProblem):
        problems.append(text)
        return None, ""
    parts = _FRONTMATTER.match(text)
    if parts is None:
        problems.append(TaskProblem(path, "does not begin with YAML between two lines of ---", "add the frontmatter"))
        return None, ""
    prompt = _PROMPT.search(parts[2])
    instruction = _instruction(prompt[1] if prompt else parts[2], path, problems)
    try:
        given = yaml.safe_load(parts[1])
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        problems.append(TaskProblem(path, f"has frontmatter that is not YAML: {error}", "correct the syntax"))
        return None, instruction
    return _checked(given or {}, path, problems), instruction


def _instruction(text: str | TaskProblem, path: Path, problems: list[TaskProblem]) -> str:
    if isinstance(text, TaskProblem):
        problems.append(text)
        return ""
    if not text.strip():
        problems.append(TaskProblem(path, "has no instruction", "say what the agent shall do"))
    return text.strip()


def _checked(given: object, path: Path, problems: list[TaskProblem]) -> TaskFile | None:
    found = check_task_file(given, path)
    if isinstance(found, TaskFile):
        return found
    problems += found
    return None


def _assemble(
    directory: Path, file: TaskFile, instruction: str, tests: Path, layout: Literal["harbor", "benchflow"]
) -> TaskDir:
    environment = directory / "environment"
    found = environment if environment.is_dir() else None
    solution = directory / _part(directory, "solution", "oracle", prefer_second=layout == "benchflow")
    category = file.metadata.get("category", "")
    types = file.task_types
    task = Task(
        id=file.task.name if file.task else directory.name,
        instruction=instruction,
        task_types=tuple(types) if isinstance(types, list) else (),
        domain=category if isinstance(category, str) else "",
        directory=str(directory),
        provided_skills=tuple(sorted(path.parent.name for path in environment.glob("skills/*/SKILL.md"))),
    )
    return TaskDir(
        task,
        directory,
        tests,
        layout,
        found,
        solution if (solution / "solve.sh").is_file() else None,
        file.agent.timeout_sec,
        file.verifier.timeout_sec,
        file.solution.timeout_sec,
        file.verifier.env,
        file.solution.env,
        file.metadata,
        (file.verifier.reward_range[0], file.verifier.reward_range[1]),
        tuple(unmet_needs(directory / (HARBOR_FILE if layout == "harbor" else BENCHFLOW_FILE), file, found)),
    )
