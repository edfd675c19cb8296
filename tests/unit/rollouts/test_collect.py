"""An attempt from its task's folder to its stored rollout: every field of the task on the way is honoured."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from arise.config import AgentConfig, SamplingConfig
from arise.ports import Engine, SandboxLost
from arise.rollouts.collect import Collector, Journal
from arise.sandbox import BubblewrapPool
from arise.tasks import read_task
from arise.types import AgentSpec, Rollout, StopReason, TaskSpec
from arise.types.codec import from_json, to_json
from arise.world.shell_agent import SYSTEM, ShellAgent
from tests.scripted import ScriptedEngine, WordChat
from tests.task_folders import write_task
from tests.verifiers import bubblewrap_verifier


def attempted(directory: Path, *answers: str, change: Callable[[TaskSpec], TaskSpec] = lambda task: task) -> Rollout:
    task = read_task(directory)
    assert isinstance(task, TaskSpec), task
    chat = WordChat()
    agent = ShellAgent(
        cast(Engine, ScriptedEngine(chat, [*answers, "$ submit"])), chat, AgentConfig(), SamplingConfig()
    )

    async def run() -> Rollout:
        async with BubblewrapPool(1) as sandboxes, bubblewrap_verifier(1) as verifier:
            collector = Collector(agent, sandboxes, verifier, {}, cast(Journal, None), 0, system=SYSTEM)
            return await collector.attempt(change(task), (), "k0/t/0")

    return asyncio.run(run())


def seen(rollout: Rollout) -> str:
    return rollout.trajectory.turns[0].observations[0].text


def test_without_an_environment_the_agent_finds_nothing_of_its_task(tmp_path: Path) -> None:
    directory = write_task(tmp_path / "bare")
    for name in ("Dockerfile", "data.csv"):
        (directory / "environment" / name).unlink()
    (directory / "environment").rmdir()
    assert seen(attempted(directory, "$ ls -A /app ; ls /tests /solution")).count("No such file") == 2
    assert "test.sh" not in seen(attempted(directory, "$ find / -name test.sh -o -name solve.sh"))


def test_the_verifiers_environment_reaches_test_sh_as_in_the_check_of_the_task(tmp_path: Path) -> None:
    directory = write_task(tmp_path / "keyed", test='[ "$KEY" = open ]; echo $((! $?)) > /logs/verifier/reward.txt\n')
    with (directory / "task.toml").open("a") as file:
        file.write('[verifier.env]\nKEY = "${KEY:-open}"\n')
    rollout = attempted(directory)
    assert (rollout.reward, rollout.success, rollout.reason) == (1.0, True, "")


def test_the_agents_time_ends_the_attempt_which_is_still_verified(tmp_path: Path) -> None:
    directory = write_task(tmp_path / "slow")
    rollout = attempted(
        directory,
        "$ echo 42 > answer.txt",
        "$ sleep 30",
        "$ rm answer.txt",
        change=lambda t: replace(t, agent=AgentSpec(timeout=1)),
    )
    assert rollout.trajectory.stop is StopReason.TIME_LIMIT
    assert len(rollout.trajectory.turns) == 2
    assert "ended by the time limit" in rollout.trajectory.turns[1].observations[0].text
    assert (rollout.reward, rollout.fault) == (1.0, "")


def test_a_reward_of_0_that_test_sh_did_not_give_keeps_its_reason_and_output(tmp_path: Path) -> None:
    directory = write_task(tmp_path / "dies", test="echo last words; kill -9 $$\n")
    rollout = attempted(directory)
    assert (rollout.reward, rollout.success, rollout.fault) == (0.0, False, "")
    assert rollout.reason == "test.sh was ended by signal 9"
    assert rollout.verifier_output == "last words\n"
    bare = replace(rollout, trajectory=replace(rollout.trajectory, rows=()))
    assert from_json(Rollout, to_json(bare)).reason == rollout.reason


def test_a_rollout_of_an_older_run_has_no_reason() -> None:
    old: dict[str, Any] = {
        "trajectory": {"id": "a", "task_id": "t", "turns": [], "stop": "time_limit"},
        "reward": None,
        "fault": "sandbox: gone",
    }
    assert from_json(Rollout, old).reason == ""


def test_a_declared_range_is_honoured(tmp_path: Path) -> None:
    directory = write_task(tmp_path / "signed", test="echo -0.5 > /logs/verifier/reward.txt\n")
    assert "outside 0 to 1" in attempted(directory).reason
    with (directory / "task.toml").open("a") as file:
        file.write("reward_range = [-1.0, 1.0]\n")
    rollout = attempted(directory)
    assert (rollout.reward, rollout.success, rollout.reason) == (-0.5, False, "")


class Gone:
    """A pool that has no sandbox left."""

    async def open(self, *_: object) -> None:
        raise SandboxLost("gone")


@pytest.mark.parametrize("pool", [Gone()])
def test_a_lost_sandbox_is_a_fault_and_no_time_limit(pool: Gone, tmp_path: Path) -> None:
    task = read_task(write_task(tmp_path / "t"))
    assert isinstance(task, TaskSpec)
    collector = Collector(cast(Any, None), cast(Any, pool), cast(Any, None), {}, cast(Journal, None), 0)
    rollout = asyncio.run(collector.attempt(task, (), "k0/t/0"))
    assert rollout.trajectory.stop is StopReason.FAULT
    assert (rollout.reward, rollout.fault) == (None, "sandbox: gone")
