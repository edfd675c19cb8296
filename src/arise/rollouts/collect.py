"""Run B x G concurrent attempts, each in its own sandbox, verified after its processes have ended, grouped by task."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Protocol

from arise.ports import Agent, PolicyLost, Sandbox, SandboxLost, SandboxPool
from arise.rollouts.guidance import SkillLimit, shown_skills, system_prompt
from arise.rollouts.stages import run_stages
from arise.rollouts.time_limit import WithinTime
from arise.rollouts.verifier import Verifier
from arise.text.progress import Progress
from arise.types import Draw, Group, Pair, Rollout, StopReason, Task, TaskSpec, Trajectory

log = logging.getLogger(__name__)

MAX_OUTPUT_CHARS = 2000
AGENT_SECONDS = 10_000.0
"""The time limit of an agent if the task sets none, as in the paper."""

InFlight = dict[int, list[asyncio.Task[Group]]]
"""The groups that are being rolled out, by iteration."""


@asynccontextmanager
async def in_flight() -> AsyncIterator[InFlight]:
    """Track running rollouts; cancel those that still run at exit, before their sandboxes are closed."""
    running: InFlight = {}
    try:
        yield running
    finally:
        left = [task for tasks in running.values() for task in tasks]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)


class Journal(Protocol):
    """Stores finished groups, so that no group is rolled out twice."""

    def finished_group(self, iteration: int, task_id: str) -> Group | None: ...
    def save_group(self, iteration: int, group: Group) -> None: ...


@dataclass(frozen=True)
class Collector:
    """Turn drawn tasks into verified groups; a lost sandbox is a fault, never a reward of 0."""

    agent: Agent
    sandboxes: SandboxPool
    verifier: Verifier
    tasks: Mapping[str, TaskSpec]
    journal: Journal
    seed: int
    skill_limit: SkillLimit | None = None
    system: str = ""
    """The system prompt, to which shown skills are appended."""

    def collect(
        self, iteration: int, draws: Sequence[Draw], shown: Sequence[Sequence[Sequence[Pair]]]
    ) -> list[asyncio.Task[Group]]:
        """Alg. 1, lines 6-7 — start one asyncio task per group, in the order of the draws, and return them.

        `shown` holds, for each draw, the pairs that each rollout of its group sees.
        """
        wait = Progress(log, f"iteration {iteration + 1}: rollouts")
        wait.expect(sum(len(shown_J) for shown_J in shown))
        return [
            asyncio.create_task(self._group(iteration, draw.task_id, shown_J, wait), name=draw.task_id)
            for draw, shown_J in zip(draws, shown, strict=True)
        ]

    async def _group(self, iteration: int, task_id: str, shown_J: Sequence[Sequence[Pair]], wait: Progress) -> Group:
        finished = self.journal.finished_group(iteration, task_id)
        if finished is not None:
            wait.add(len(shown_J))
            return finished
        task = self.tasks[task_id]

        async def attempt(j: int, shown: Sequence[Pair]) -> Rollout:
            rollout = await self.attempt(task, shown, f"k{iteration}/{task_id}/{j}")
            wait.add()
            return rollout

        attempts = [attempt(j, shown) for j, shown in enumerate(shown_J)]
        group = Group(task.task, tuple(await asyncio.gather(*attempts)), len(shown_J))
        self.journal.save_group(iteration, group)
        return group

    async def attempt(self, task: TaskSpec, shown: Sequence[Pair], key: str) -> Rollout:
        """Run one attempt in a fresh sandbox and verify it."""
        try:
            sandbox = await self.sandboxes.open(task.place)
        except SandboxLost as fault:
            return _lost(task.task, key, f"sandbox: {fault}")
        try:
            if task.skills is not None and task.skills_dir:
                await sandbox.put(task.skills, task.skills_dir)
            return await self._run(task, shown, key, sandbox)
        except SandboxLost as fault:
            return _lost(task.task, key, f"sandbox: {fault}")
        except PolicyLost as fault:
            return _lost(task.task, key, f"policy: {fault}")
        finally:
            await sandbox.close()

    async def _run(self, task: TaskSpec, shown: Sequence[Pair], key: str, sandbox: Sandbox) -> Rollout:
        seen, left_out = self.skill_limit.fit(shown) if self.skill_limit else (shown, ())
        system, parts = system_prompt(self.system, seen), list[Trajectory]()

        async def act(stage: TaskSpec) -> str:
            timed = WithinTime(sandbox, stage.agent.timeout or AGENT_SECONDS)
            name = f"{key}/{len(parts)}" if parts else key
            parts.append(await self.agent.attempt(stage.task, timed, system, shown_skills(seen), name, self.seed))
            return ""

        result = await run_stages(task, sandbox, self.verifier, act)
        trajectory = replace(_joined(parts), left_out=shown_skills(left_out))
        if result.reward is None:
            return Rollout(trajectory, None, None, fault=f"verifier: {result.fault}")
        said = result.stdout[-MAX_OUTPUT_CHARS:]
        return Rollout(trajectory, result.reward, result.success, reason=result.reason, verifier_output=said)


def _joined(parts: Sequence[Trajectory]) -> Trajectory:
    """Join the trajectories of the stages of one attempt."""
    return replace(
        parts[0],
        turns=tuple(turn for part in parts for turn in part.turns),
        rows=tuple(row for part in parts for row in part.rows),
        stop=parts[-1].stop,
    )


def _lost(task: Task, key: str, fault: str) -> Rollout:
    """Return a rollout for an infrastructure fault: no turns, no reward, only the reason."""
    return Rollout(Trajectory(key, task.id, (), StopReason.FAULT), None, None, fault=fault)
