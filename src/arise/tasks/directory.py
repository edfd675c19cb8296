"""Read one task directory of Harbor (task.toml, instruction.md) or BenchFlow (task.md) into a `TaskSpec`."""

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
from arise.types import TaskSpec

HARBOR_FILE, BENCHFLOW_FILE = "task.toml", "task.md"
Given = Mapping[str, object]
_UNREAD = "(not read)"


def read_task(directory: Path) -> TaskSpec | list[TaskProblem]:
    """Return the task, or all its problems."""
    problems: list[TaskProblem] = []
    harbor, benchflow = (_present(directory / name) for name in (HARBOR_FILE, BENCHFLOW_FILE))
    if harbor == benchflow:
        if harbor:
            what, remedy = f"has both {HARBOR_FILE} and {BENCHFLOW_FILE}", "keep one of them"
        else:
            what = f"has no {HARBOR_FILE} or {BENCHFLOW_FILE}"
            remedy = f"add a {HARBOR_FILE} with a [task] name, as in a folder of `arise init`"
        problems.append(TaskProblem(directory, what, remedy))
        return [*problems, *scan(directory)]
    path = directory / (HARBOR_FILE if harbor else BENCHFLOW_FILE)
    given, prompt = _read_toml(path, problems) if harbor else _read_markdown(path, problems)
    file = _checked(given, path, problems) if given is not None else None
    steps = [_parts_below(directory / "steps" / each.name, problems) for each in file.steps] if file else []
    parts = _parts(directory, prompt, [each.instruction for each in steps], problems)
    if file is not None:
        problems += check_task_types(file.task_types, path, "metadata.task_types")
    problems += scan(directory)
    if problems or file is None or given is None:
        return problems
    return task_spec(directory, "harbor" if harbor else "benchflow", file, given, parts, steps)


def _present(path: Path) -> bool:
    return path.is_symlink() or path.exists()


def _part(directory: Path, first: str, second: str, prefer_second: bool) -> str:
    """Return the name of a folder: BenchFlow accepts the names of Harbor and its own."""
    return second if prefer_second and (directory / second).is_dir() else first


def _parts(directory: Path, prompt: str | None, steps: list[str], problems: list[TaskProblem]) -> Parts:
    """Return the folders of a whole task; a task with steps may define instruction and tests in its steps only.

    `prompt` is the instruction in the task file, or None if it has none.
    """
    benchflow = prompt is not None
    path = directory / (BENCHFLOW_FILE if benchflow else "instruction.md")
    if steps and not benchflow and not _present(path):
        instruction = "\n\n".join(steps)
    else:
        instruction = _instruction(prompt if prompt is not None else read_text(path), path, problems)
    tests = directory / _part(directory, "tests", "verifier", prefer_second=benchflow)
    if not steps or _present(tests):
        _require_tests(tests, problems)
    solution = directory / _part(directory, "solution", "oracle", prefer_second=benchflow)
    return Parts(instruction, tests, solution if (solution / "solve.sh").is_file() else None)


def _parts_below(folder: Path, problems: list[TaskProblem]) -> Parts:
    path, tests, solution = folder / "instruction.md", folder / "tests", folder / "solution"
    instruction = _instruction(read_text(path), path, problems)
    _require_tests(tests, problems)
    return Parts(instruction, tests, solution if (solution / "solve.sh").is_file() else None)


def _require_tests(tests: Path, problems: list[TaskProblem]) -> None:
    script = read_text(tests / "test.sh")
    if isinstance(script, TaskProblem):
        problems.append(script)
    elif not script.strip():
        problems.append(TaskProblem(tests / "test.sh", "is empty", "write a verifier that writes a reward"))


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
        problems.append(TaskProblem(path, f"has frontmatter that is not YAML: {error}", "correct the syntax"))
        return None, _UNREAD
    return given or {}, sections(parts[1])["prompt"]


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
