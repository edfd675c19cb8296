"""Tasks that Harbor itself cannot run are refused before a run starts, with the remedy."""

from pathlib import Path

from arise.harbor.pool import harbor_capabilities
from arise.tasks import read_task, refused
from arise.types import TaskSpec
from tests.task_folders import write_task


def problems(folder: Path) -> list[str]:
    task = read_task(folder)
    assert isinstance(task, TaskSpec), task
    return [str(problem) for problem in refused(task, harbor_capabilities(), ("format",))]


def test_a_dockerfile_is_enough_and_without_an_image_it_is_refused(tmp_path: Path) -> None:
    task = write_task(tmp_path / "one")
    assert problems(task) == []
    (task / "environment" / "Dockerfile").unlink()
    (problem,) = problems(task)
    assert "one/task.toml: names no image and has no Dockerfile" in problem
    assert problem.endswith('Set sandbox.kind = "auto".')


def test_the_format_of_benchflow_is_refused(tmp_path: Path) -> None:
    task = write_task(tmp_path / "two")
    (task / "task.toml").unlink()
    (task / "tests").rename(task / "verifier")
    (task / "task.md").write_text("---\nschema_version: '1.3'\n---\n## prompt\nWrite 42.\n")
    (problem,) = problems(task)
    assert "is in BenchFlow's format" in problem
