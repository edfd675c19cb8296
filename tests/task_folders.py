"""Task directories for tests."""

from collections.abc import Mapping
from pathlib import Path

from arise.types import Task, TaskSpec, VerifierSpec

TASK_TOML = """schema_version = "1.4"
[task]
name = "{name}"
[metadata]
category = "data"
task_types = ["data-cleaning-and-normalization"]
[agent]
timeout_sec = 60
[verifier]
timeout_sec = 20
"""
DIFF_TEST = """if diff -q /app/answer.txt /tests/expected.txt; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
"""


def bare_task(tests: Path, timeout: float = 10.0, environment: Mapping[str, str] | None = None) -> TaskSpec:
    """A task that is nothing but its tests."""
    return TaskSpec(Task("t", "Do it."), tests, VerifierSpec(tests, timeout, environment or {}))


def write_task(directory: Path, name: str = "", test: str = DIFF_TEST, solve: str = "echo 42 > answer.txt\n") -> Path:
    """A sound Harbor task: the answer is 42."""
    for folder in ("environment", "tests", "solution"):
        (directory / folder).mkdir(parents=True)
    (directory / "task.toml").write_text(TASK_TOML.format(name=name or directory.name))
    (directory / "instruction.md").write_text("Write 42 to answer.txt.\n")
    (directory / "environment/Dockerfile").write_text("FROM debian\n")
    (directory / "environment/data.csv").write_text("a,b\n1,2\n")
    (directory / "tests/test.sh").write_text(test)
    (directory / "tests/expected.txt").write_text("42\n")
    (directory / "solution/solve.sh").write_text(solve)
    return directory
