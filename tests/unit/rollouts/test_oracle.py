"""check_task: the solution must earn 1 and the null agent 0."""

import asyncio
from pathlib import Path

import pytest

from arise.compose.sandboxes import trial_pools
from arise.rollouts.oracle import check_task
from arise.tasks import TaskProblem, read_task
from arise.types import TaskSpec
from tests.task_folders import DIFF_TEST, write_task


def check(directory: Path) -> tuple[TaskProblem, ...]:
    task = read_task(directory)
    assert isinstance(task, TaskSpec), task

    async def body() -> tuple[TaskProblem, ...]:
        async with trial_pools(2) as pools:
            return await check_task(task, pools)

    return asyncio.run(body())


def test_a_sound_task_has_no_problem(tmp_path: Path) -> None:
    assert check(write_task(tmp_path / "sound")) == ()


def test_environment_is_there_without_its_build_files(tmp_path: Path) -> None:
    test = 'if [ "$(ls)" = "data.csv" ]; then echo 0; else echo 1; fi > /logs/verifier/reward.txt\n'
    assert check(write_task(tmp_path / "files", test=test)) == ()


@pytest.mark.parametrize(
    ("test", "solve", "words"),
    [
        (DIFF_TEST, "echo 41 > answer.txt", ["gives the solution reward 0"]),
        ("echo 1 > /logs/verifier/reward.txt", "true", ["gives the null agent reward 1"]),
        ("echo broken", "true", ["gives the solution no reward", "gives the null agent no reward"]),
        (DIFF_TEST, "yes", ["solve.sh was ended by its output limit"]),
    ],
)
def test_unsound_tasks_are_named(test: str, solve: str, words: list[str], tmp_path: Path) -> None:
    problems = check(write_task(tmp_path / "unsound", test=test, solve=solve))
    assert len(problems) == len(words)
    for problem, word in zip(problems, words, strict=True):
        assert word in problem.what


def test_a_task_without_a_solution_is_named(tmp_path: Path) -> None:
    directory = write_task(tmp_path / "bare")
    (directory / "solution/solve.sh").unlink()
    (problem,) = check(directory)
    assert problem.what == "is missing"
