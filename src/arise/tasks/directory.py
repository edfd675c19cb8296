"""Read one task directory of Harbor (task.toml, instruction.md) or BenchFlow (task.md) into a `TaskSpec`.

A directory with both files is one for either program, and is read as BenchFlow does: from its task.md.
"""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

import yaml

from arise.tasks.assemble import Parts, task_spec
from arise.tasks.frontmatter import load_yaml, sections, split_frontmatter
from arise.tasks.problem import TaskProblem
from arise.tasks.registry import check_task_types
from arise.tasks.scan import read_text, scan
from arise.tasks.schema import TaskFile, check_task_file
from arise.tasks.schema_values import BENCHFLOW_FILE, HARBOR_FILE
from arise.types import TaskSpec

Given = Mapping[str, object]
_UNREAD = "(not read)"
_CANARY = re.compile(r"(#.*canary.*|<!--.*canary.*-->)", re.IGNORECASE)


def read_task(directory: Path) -> TaskSpec | list[TaskProblem]:
    """Return the task, or all its problems."""
    problems: list[TaskProblem] = []
    path = _task_file(directory)
    if path is None:
        what = f"has no {HARBOR_FILE} or {BENCHFLOW_FILE}"
        remedy = f"add a {HARBOR_FILE} with a [task] name, as in a folder of `arise init`"
        return [TaskProblem(directory, what, remedy), *scan(directory)]
    harbor = path.name == HARBOR_FILE
    given, prompt = _read_toml(path, problems) if harbor else _read_markdown(path, problems)
    file = _checked(given, path, problems) if given is not None else None
    if file is None and isinstance(given, Mapping) and given.get("steps"):
        return [*problems, *scan(directory)]  # where instructions and tests belong is known with the steps only
    shared = directory / _part(directory, "tests", "verifier", prefer_second=not harbor)
    steps = [_parts_below(directory / "steps" / each.name, shared, problems) for each in file.steps] if file else []
    parts = _parts(directory, prompt, [each.instruction for each in steps], shared, problems)
    if file is not None:
        problems += check_task_types(file.task_types, path, "metadata.task_types")
    problems += scan(directory)
    if problems or file is None or given is None:
        return problems
    return task_spec(directory, "harbor" if harbor else "benchflow", file, given, parts, steps)


def _task_file(directory: Path) -> Path | None:
    """Return the file that describes a task; beside a task.toml, a task.md without YAML is only notes."""
    harbor, benchflow = (directory / name for name in (HARBOR_FILE, BENCHFLOW_FILE))
    if not _present(harbor):
        return benchflow if _present(benchflow) else None
    text = read_text(benchflow) if _present(benchflow) else ""
    return benchflow if isinstance(text, str) and split_frontmatter(text) is not None else harbor


def _present(path: Path) -> bool:
    return path.is_symlink() or path.exists()


def _part(directory: Path, first: str, second: str, prefer_second: bool) -> str:
    """Return the name of a folder: BenchFlow accepts the names of Harbor and its own."""
    prefers = prefer_second and ((directory / second).is_dir() or not (directory / first).is_dir())
    return second if prefers else first


def _parts(directory: Path, prompt: str | None, steps: list[str], tests: Path, problems: list[TaskProblem]) -> Parts:
    """Return the folders of a whole task; a task with steps may define instruction and tests in its steps only.

    `prompt` is the instruction in the task file, or None if it has none.
    """
    benchflow = prompt is not None
    path = directory / (BENCHFLOW_FILE if benchflow else "instruction.md")
    if steps and not benchflow and not _present(path):
        instruction = "\n\n".join(steps)
    else:
        instruction = _instruction(prompt if prompt is not None else read_text(path), path, problems)
    if not steps:
        _require_tests(tests / "test.sh", problems)
    solution = directory / _part(directory, "solution", "oracle", prefer_second=benchflow)
    return Parts(instruction, tests, solution if (solution / "solve.sh").is_file() else None)


def _parts_below(folder: Path, shared: Path, problems: list[TaskProblem]) -> Parts:
    """Return the folders of one step, whose test.sh may be the one that the steps share."""
    path, tests, solution = folder / "instruction.md", folder / "tests", folder / "solution"
    instruction = _instruction(read_text(path), path, problems)
    own, common = tests / "test.sh", shared / "test.sh"
    _require_tests(own if _present(own) or not _present(common) else common, problems)
    return Parts(instruction, tests, solution if (solution / "solve.sh").is_file() else None)


def _require_tests(path: Path, problems: list[TaskProblem]) -> None:
    script = read_text(path)
    if isinstance(script, TaskProblem):
        problems.append(script)
    elif not script.strip():
        problems.append(TaskProblem(path, "is empty", "write a verifier that writes a reward"))


def _read_toml(path: Path, problems: list[TaskProblem]) -> tuple[Given | None, str | None]:
    text = read_text(path)
    if isinstance(text, TaskProblem):
        problems.append(text)
        return None, None
    try:
        return tomllib.loads(text), None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        problems.append(TaskProblem(path, f"is not TOML: {error}", "correct the syntax"))
        return None, None


def _read_markdown(path: Path, problems: list[TaskProblem]) -> tuple[Given | None, str]:
    """Return the frontmatter and the prompt of a task.md."""
    text = read_text(path)
    if isinstance(text, TaskProblem):
        problems.append(text)
        return None, _UNREAD
    parts = split_frontmatter(text)
    if parts is None:
        problems.append(TaskProblem(path, "does not begin with YAML between two lines of ---", "add the frontmatter"))
        return None, _UNREAD
    try:
        given = load_yaml(parts[0])
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        problems.append(TaskProblem(path, f"has frontmatter that is not YAML: {_said(error)}", "correct the syntax"))
        return None, _UNREAD
    return given or {}, sections(parts[1])["prompt"]


def _said(error: Exception) -> str:
    """Return what a YAML parser said in one line, with the line of the file: the frontmatter begins in its second."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"line {error.problem_mark.line + 2}: {error.problem}"
    return " ".join(str(error).split())


def _instruction(text: str | TaskProblem, path: Path, problems: list[TaskProblem]) -> str:
    if isinstance(text, TaskProblem):
        problems.append(text)
        return ""
    if not text.strip():
        problems.append(TaskProblem(path, "has no instruction", "say what the agent shall do"))
    return without_canary(text).strip()


def without_canary(text: str) -> str:
    """Return an instruction without the lines at its top that only mark it as a benchmark's, as Harbor does."""
    lines = text.splitlines(keepends=True)
    while lines and (not lines[0].strip() or _CANARY.fullmatch(lines[0].strip())):
        del lines[0]
    return "".join(lines)


def _checked(given: object, path: Path, problems: list[TaskProblem]) -> TaskFile | None:
    found = check_task_file(given, path)
    if isinstance(found, TaskFile):
        return found
    problems += found
    return None
