"""Lint names tests and solutions that the agent sees by mistake, and not files that the author gives to both."""

from pathlib import Path

import pytest

from arise.tasks import read_task
from arise.tasks.lint import lint
from arise.types import TaskSpec
from tests.task_folders import write_task

DATA = "a,b\n1,2\n3,4\n5,6\n"
TEST = "import os\n\n\ndef test_it() -> None:\n    assert os.path.exists('/app/answer.txt')\n"


def named(folder: Path, dockerfile: str, files: dict[str, str], toml: str = "") -> list[str]:
    write_task(folder)
    (folder / "environment/Dockerfile").write_text(dockerfile)
    with (folder / "task.toml").open("a") as file:
        file.write(toml)
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    task = read_task(folder)
    assert isinstance(task, TaskSpec), task
    return [str(problem.path.relative_to(folder)) for problem in lint(task) if "shows the agent" in problem.what]


BUILT = "FROM python:3.13\nRUN pip install pandas\n"
COPIED_TEST = {"tests/test_it.py": TEST, "environment/checks/test_it.py": TEST}


@pytest.mark.parametrize(
    ("dockerfile", "leaked"),
    [
        (f"{BUILT}COPY . /app\n", True),
        (f"{BUILT}COPY --chown=1000 ./ /app/\n", True),
        ("FROM debian\nCOPY . /app\n", True),  # not built: the whole folder is copied
        (f"{BUILT}COPY checks/test_it.py /app/\n", False),
        (f"{BUILT}COPY checks /app/checks\n", False),
        (f"{BUILT}COPY data.csv /app/\n", False),
        (f"{BUILT}COPY --from=other . /app\n", False),
    ],
)
def test_a_test_is_shown_by_mistake_where_everything_is_copied(dockerfile: str, leaked: bool, tmp_path: Path) -> None:
    assert named(tmp_path / "t", dockerfile, COPIED_TEST) == ["environment/checks/test_it.py"] * leaked


def test_an_image_by_name_without_a_dockerfile_gets_the_whole_folder(tmp_path: Path) -> None:
    folder = tmp_path / "t"
    write_task(folder)
    (folder / "environment/Dockerfile").unlink()
    (folder / "environment/test.sh").write_text((folder / "tests/test.sh").read_text())
    with (folder / "task.toml").open("a") as file:
        file.write('[environment]\ndocker_image = "x/y:1"\n')
    task = read_task(folder)
    assert isinstance(task, TaskSpec), task
    assert [problem.what for problem in lint(task)] == ["shows the agent test.sh of the tests or solution"]


@pytest.mark.parametrize("name", ["expected.csv", "answers.json", "golden_output.txt", "conftest.py", "app.test.js"])
def test_what_the_tests_compare_with_is_no_data(name: str, tmp_path: Path) -> None:
    files = {f"tests/{name}": DATA, f"environment/{name}": DATA}
    assert named(tmp_path / "t", f"{BUILT}COPY . /app\n", files) == [f"environment/{name}"]


def test_data_of_the_agent_may_lie_beside_the_tests_too(tmp_path: Path) -> None:
    files = {"tests/data.csv": DATA, "environment/data.csv": DATA, "solution/data.csv": DATA}
    assert named(tmp_path / "t", f"{BUILT}COPY . /app\n", files) == []


def test_code_of_the_solution_is_a_secret(tmp_path: Path) -> None:
    files = {"solution/fix.py": TEST, "environment/src/fixed.py": TEST}
    assert named(tmp_path / "t", f"{BUILT}COPY . /app\n", files) == ["environment/src/fixed.py"]
