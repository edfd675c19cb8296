"""A folder that `arise init` wrote: `arise train` works there as it is."""

import json
from pathlib import Path

import pytest

from arise.errors import Exit
from arise.run.reader import RunReader
from tests.e2e.runs import call, settings


@pytest.fixture
def project(cache: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "my project"
    done = call(cache, "init", str(folder), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"next: cd '{folder}' && arise train" in done.stdout
    return folder


def test_arise_train_works_in_a_new_project(project: Path, cache: Path) -> None:
    done = call(cache, "train", "--run-dir", "runs/first", *settings(["train.iterations=2"]), folder=project)
    assert done.returncode == 0, done.stderr
    with RunReader.open(project / "runs" / "first") as run:
        assert run.config()["agent"]["path"] == "my_agent:MyAgent"
        assert len(run.iterations()) == 2
        assert {row.stop for row in run.rollouts(limit=-1)} <= {"finished", "turn_limit", "token_limit"}


def test_the_sample_tasks_of_a_new_project_are_sound(project: Path, cache: Path) -> None:
    for tasks in ("tasks/train", "tasks/held-out"):
        done = call(cache, "tasks", "check", tasks, folder=project)
        assert done.returncode == 0, done.stdout + done.stderr
    done = call(cache, "config", "arise.toml", "own-tasks.toml", "--json", folder=project)
    assert json.loads(done.stdout)["tasks"]["train"] == "tasks/train"


def test_init_leaves_a_folder_that_is_not_empty_alone(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    done = call(cache, "init", ".", folder=tmp_path)
    assert done.returncode == Exit.STORAGE
    assert ". is not empty" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
