"""Unmodified harnesses drive a local engine through the endpoint: tasks solved, verified, and trained on exactly."""

import asyncio
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock

from arise.endpoint.policy import Policy
from arise.endpoint.serving import on_socket
from arise.endpoint.sessions import CallLimits
from arise.engines.local.pretrained import cache_root
from arise.errors import AriseError
from arise.harnesses.agent import HarnessAgent
from arise.harnesses.install import folder_of, install, seen_paths
from arise.harnesses.launch import Launcher
from arise.harnesses.spec import harness
from arise.rollouts.collect import Collector
from arise.sandbox import MIB, BubblewrapPool, Limits
from arise.tasks import read_task
from arise.types import Example, FunctionCall, Group, LossSpec, OptimSpec, Rollout, StopReason
from arise.types.chat import Message
from arise.types.task import AgentSpec, TaskSpec
from tests.builders import a_pair
from tests.e2e.harnesses.rehearsed import Rehearsed, tiny_qwen
from tests.task_folders import write_task
from tests.verifiers import bubblewrap_verifier

SOLVE = "echo 42 > answer.txt"
FINISH = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


def called(name: str, **arguments: object) -> Message:
    return Message("assistant", "I do it.", calls=(FunctionCall("", name, arguments),))


COMMANDS = ("ls -la", "cat data.csv; echo $RANDOM; date", f"{SOLVE} && cat answer.txt", "cat missing.txt")
DONE = Message("assistant", "Done.")
SCRIPTS = {
    "mini-swe-agent": (*(called("bash", command=text) for text in COMMANDS), called("bash", command=FINISH)),
    "pi": (*(called("bash", command=text) for text in COMMANDS), DONE),
    "opencode": (*(called("bash", command=text, description="x") for text in COMMANDS), DONE),
    "kilo": (*(called("bash", command=text, description="x") for text in COMMANDS), DONE),
    "claude-code": (*(called("Bash", command=text, description="x") for text in COMMANDS), DONE),
    "codex": (*(called("exec_command", cmd=text) for text in COMMANDS), DONE),
}
SLOW = ("opencode", "kilo", "claude-code", "codex")


class NoJournal:
    """Keeps nothing."""

    def finished_group(self, iteration: int, task_id: str) -> Group | None:  # noqa: ARG002
        return None

    def save_group(self, iteration: int, group: Group) -> None:
        pass


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in SCRIPTS])
def installed(request: pytest.FixtureRequest) -> str:
    """A harness, installed in the user's cache."""
    name = str(request.param)
    cache_root().mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(cache_root() / f"{name}.lock"):
            found = install(name, print)
    except AriseError as error:
        pytest.skip(f"{name} cannot be installed here: {error.what}")
    if not found.usable:
        pytest.skip(f"{name} cannot be used here: {found.said}")
    return name


@pytest.mark.timeout(600)
def test_a_harness_solves_a_task_and_trains_exactly_what_was_sampled(installed: str, tmp_path: Path) -> None:
    solved, failed, stats = asyncio.run(whole(installed, tmp_path))
    assert solved.fault == failed.fault == ""
    assert solved.reward == 1.0
    assert solved.trajectory.stop is StopReason.FINISHED
    assert len(solved.trajectory.turns) == len(SCRIPTS[installed])
    assert len(solved.trajectory.rows) == 1, "no turn was resent otherwise than it was sampled"
    assert "skill r1" in solved.trajectory.system_prompt
    assert [skill.rubric_id for skill in solved.trajectory.shown_skills] == ["r1"]
    assert failed.reward == 0.0
    assert failed.trajectory.generated_tokens > 0
    assert "skill r1" not in failed.trajectory.system_prompt
    assert stats[0] < 1e-5
    assert stats[1] == solved.trajectory.generated_tokens + failed.trajectory.generated_tokens


async def whole(name: str, tmp_path: Path) -> tuple[Rollout, Rollout, tuple[float, int]]:
    """Two attempts, one by a script with a skill and one sampled without any, and one update on both."""
    found = read_task(write_task(tmp_path / "answer"))
    assert isinstance(found, TaskSpec)
    task = replace(found, agent=AgentSpec())  # a busy machine may start a harness slowly
    engine, chat = tiny_qwen()
    policy = Rehearsed(engine, chat, {"k0/answer/0": SCRIPTS[name]})
    spec = harness(name)
    limits = Limits(memory_bytes=spec.memory_mb * MIB, tmp_bytes=spec.memory_mb * MIB // 4)
    try:
        async with (
            on_socket() as endpoint,
            BubblewrapPool(
                1, limits, read_only=(str(endpoint.socket.parent), *map(str, seen_paths(name)))
            ) as sandboxes,
            bubblewrap_verifier(1) as verifier,
        ):
            launcher = Launcher(spec, endpoint, lambda _: str(folder_of(name) / spec.program), 240)
            agent = HarnessAgent(launcher, Policy(policy, chat), CallLimits(len(SCRIPTS[name]), 40))
            collector = Collector(agent, sandboxes, verifier, {"answer": task}, NoJournal(), 0)
            solved = await collector.attempt(task, (a_pair("r1"),), "k0/answer/0")
            failed = await collector.attempt(task, (), "k0/answer/1")
        examples = [Example(solved.trajectory.rows, 1.0), Example(failed.trajectory.rows, -1.0)]
        done = await engine.train_step(examples, LossSpec(), OptimSpec(learning_rate=1e-3, warmup_updates=0))
        for row in (*solved.trajectory.rows, *failed.trajectory.rows):
            assert np.all(row.version_U[row.generated_U] == 0)
        return solved, failed, (done.max_abs_log_ratio, done.generated_tokens)
    finally:
        engine.close()
