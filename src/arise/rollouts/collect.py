"""B x G concurrent attempts: each in its own sandbox, verified after its processes are dead, grouped by task."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from arise.ports import Sandbox, SandboxLost, SandboxPool
from arise.rollouts.guidance import shown_skills, system_prompt
from arise.rollouts.shell_agent import SYSTEM
from arise.rollouts.verifier import Verifier
from arise.types import Draw, Group, Pair, Rollout, ShownSkill, StopReason, Task, Trajectory


class TaskFiles(NamedTuple):
    """Where a task's environment and tests lie, and how long its verifier may take."""

    environment: Path
    tests: Path
    verifier_seconds: float


class Agent(Protocol):
    """Makes one attempt at a task in a sandbox."""

    async def attempt(
        self, task: Task, sandbox: Sandbox, system: str, shown: tuple[ShownSkill, ...], key: str, seed: int
    ) -> Trajectory: ...


class Journal(Protocol):
    """Keeps finished groups, so that none is ever rolled out twice."""

    def finished_group(self, iteration: int, task_id: str) -> Group | None: ...
    def save_group(self, iteration: int, group: Group) -> None: ...


class Collector:
    """Turns drawn tasks into verified groups; a lost sandbox or verifier leaves a fault, never a reward of 0."""

    def __init__(
        self,
        agent: Agent,
        sandboxes: SandboxPool,
        verifier: Verifier,
        tasks: Mapping[str, tuple[Task, TaskFiles]],
        journal: Journal,
        seed: int,
        not_for_the_agent: tuple[str, ...] = (),
    ) -> None:
        self.agent, self.sandboxes, self.verifier = agent, sandboxes, verifier
        self.tasks, self.journal, self.seed = tasks, journal, seed
        self.not_for_the_agent = not_for_the_agent

    def collect(
        self, iteration: int, draws: Sequence[Draw], shown: Sequence[Pair], group_size: int
    ) -> list[asyncio.Task[Group]]:
        """Alg. 1, lines 6-7 — one running task per group, in the order of the draws; judge each as it finishes."""
        return [
            asyncio.create_task(self._group(iteration, draw.task_id, tuple(shown), group_size), name=draw.task_id)
            for draw in draws
        ]

    async def _group(self, iteration: int, task_id: str, shown: tuple[Pair, ...], group_size: int) -> Group:
        finished = self.journal.finished_group(iteration, task_id)
        if finished is not None:
            return finished
        task, files = self.tasks[task_id]
        keys = [f"k{iteration}/{task_id}/{j}" for j in range(group_size)]
        rollouts = await asyncio.gather(*(self.attempt(task, files, shown, key) for key in keys))
        group = Group(task, tuple(rollouts), group_size)
        self.journal.save_group(iteration, group)
        return group

    async def attempt(self, task: Task, files: TaskFiles, shown: Sequence[Pair], key: str) -> Rollout:
        """One attempt from a fresh sandbox to its reward."""
        try:
            sandbox = await self.sandboxes.open(files.environment, self.not_for_the_agent)
        except SandboxLost as fault:
            return _lost(task, key, f"sandbox: {fault}")
        try:
            return await self._run(task, files, shown, key, sandbox)
        except SandboxLost as fault:
            return _lost(task, key, f"sandbox: {fault}")
        finally:
            await sandbox.close()

    async def _run(self, task: Task, files: TaskFiles, shown: Sequence[Pair], key: str, sandbox: Sandbox) -> Rollout:
        system = system_prompt(SYSTEM, shown)
        trajectory = await self.agent.attempt(task, sandbox, system, shown_skills(shown), key, self.seed)
        result = await self.verifier.verify(sandbox, files.tests, files.verifier_seconds)
        if result.reward is None:
            return Rollout(trajectory, None, None, fault=f"verifier: {result.fault}")
        return Rollout(trajectory, result.reward, result.success)


def _lost(task: Task, key: str, fault: str) -> Rollout:
    """An attempt that infrastructure ended before the agent could: no turns, no reward, the reason."""
    return Rollout(Trajectory(key, task.id, (), StopReason.TIME_LIMIT), None, None, fault=fault)
