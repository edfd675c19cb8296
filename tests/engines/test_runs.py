"""Whole runs through `arise train`: on each trainer, ahead of the update, and while servers and trainers are killed."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from tests.engines.whole_runs import (
    WholeRun,
    kill,
    require_every_draw_trained_once,
    require_tokens_of_their_versions,
)

RUBRICS_AT_ONCE = "pool.update_every=1"
"""The start passes few tasks, so almost only rubrics teach: with this the policy changes from the second update on."""


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that holds the warm start of these runs."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def start_run(library: str, tmp_path: Path, cache: Path) -> Iterator[Callable[..., WholeRun]]:
    """Starts the run of a test with changed settings; it is ended with the test."""
    with ExitStack() as stack:

        def start(*changes: str) -> WholeRun:
            run = WholeRun(tmp_path / "run", library, cache, changes)
            stack.callback(run.close)
            return run

        yield start


def test_ten_iterations_with_two_updates_of_the_pool(start_run: Callable[..., WholeRun]) -> None:
    run = start_run()
    run.end()
    assert run.finished() == 10
    assert run.said().count(" (+") >= 2, "both windows of four iterations change the pool"
    require_every_draw_trained_once(run, 10)
    require_tokens_of_their_versions(run, 0)


@pytest.mark.parametrize("ahead", [1, 2])
def test_rollouts_ahead_of_the_update(start_run: Callable[..., WholeRun], ahead: int) -> None:
    run = start_run(f"train.max_staleness={ahead}", "train.iterations=5", RUBRICS_AT_ONCE)
    run.end()
    assert max(run.metrics("max_staleness")) == ahead
    require_every_draw_trained_once(run, 5)
    require_tokens_of_their_versions(run, ahead)


def test_servers_and_the_trainer_are_killed(start_run: Callable[..., WholeRun]) -> None:
    run = start_run("train.max_staleness=1", "train.iterations=8", "policy.sampler.servers=2", RUBRICS_AT_ONCE)
    for iteration in (1, 3, 5):
        run.await_iteration(iteration)
        kill(run.pids("vllm.entrypoints")[:1])
        if iteration == 3:
            run.await_iteration(4)
            kill(run.pids("boot.py"))
    run.end()
    said = run.said()
    assert said.count("is down") == 3
    assert said.count("it is started again from update") == 1
    require_every_draw_trained_once(run, 8)
    require_tokens_of_their_versions(run, 1)


def test_a_killed_driver_leaves_no_process_and_its_run_resumes(start_run: Callable[..., WholeRun]) -> None:
    run = start_run("train.iterations=2")
    run.await_iteration(1)
    while not (finished := set(run.rows("SELECT k, task_id, content FROM inflight WHERE k = 1"))):
        run.require_running()
        time.sleep(0.02)
    family = psutil.Process(run.process.pid).children(recursive=True)
    assert run.pids("vllm.entrypoints")
    kill([run.process.pid])
    run.process.wait()
    _, alive = psutil.wait_procs(family, timeout=60)
    assert [process.cmdline() for process in alive if process.is_running()] == []
    before = set(run.rows("SELECT k, id, reward, generated_tokens FROM rollouts"))
    run.resume()
    run.end()
    assert before <= set(run.rows("SELECT k, id, reward, generated_tokens FROM rollouts"))
    assert finished <= set(run.rows("SELECT k, task_id, content FROM inflight")), (
        "a finished group was rolled out again"
    )
    require_every_draw_trained_once(run, 2)


@pytest.mark.slow
def test_a_run_learns(start_run: Callable[..., WholeRun]) -> None:
    """The settings of the comparison in docs/log.md."""
    shape = ["model.demonstrations=900", "model.epochs=8", "tasks.depth=1", "optimizer.learning_rate=5e-4"]
    size = ["train.iterations=12", "train.tasks_per_iteration=8", "train.group_size=8"]
    run = start_run(*shape, *size)
    run.end()
    rates = run.metrics("pass_rate")
    print(f"{run.library}: pass rates in training {' '.join(f'{100 * rate:.0f}' for rate in rates)} %")
    assert sum(rates[-3:]) / 3 > sum(rates[:3]) / 3 + 0.3
