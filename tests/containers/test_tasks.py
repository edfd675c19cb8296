"""Every fixture task on every kind of image sandbox: its solution earns 1, doing nothing earns 0."""

import asyncio
from pathlib import Path

import pytest

from arise.compose.sandboxes import offers
from arise.rollouts.oracle import TrialPools, run_null, run_oracle
from arise.rollouts.verifier import Verifier, VerifierResult
from arise.tasks import read_task, refused
from arise.types import TaskSpec
from tests.containers.conftest import pool_of
from tests.containers.tasks import TASKS, write


@pytest.mark.parametrize("name", TASKS)
def test_solution_earns_one_and_nothing_earns_zero(name: str, kind: str, tmp_path: Path) -> None:
    task = read_task(write(name, tmp_path))
    assert isinstance(task, TaskSpec), task
    assert refused(task, offers("auto")(task.environment)) == []

    async def body(task: TaskSpec) -> tuple[VerifierResult, VerifierResult]:
        async with pool_of(kind) as pool:
            pools = TrialPools(pool, Verifier(pool))
            return await run_oracle(task, pools), await run_null(task, pools)

    oracle, null = asyncio.run(body(task))
    assert (oracle.reward, oracle.reason, oracle.fault) == (1.0, "", ""), oracle
    assert null.reward == 0.0, null


def test_there_are_at_least_12_tasks_in_both_formats() -> None:
    assert len(TASKS) >= 12
    assert {"task.md", "task.toml"} <= {name for files in TASKS.values() for name in files}
