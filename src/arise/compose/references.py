"""Reference attempts for OnlineRubrics, made once per task by a scripted worker or a model."""

import asyncio
from collections.abc import Sequence
from itertools import islice

import numpy as np

from arise.config import AgentConfig, WorldTasks
from arise.ports import Sandbox
from arise.rollouts.collect import Collector
from arise.rollouts.commands import SUBMIT, observe
from arise.rollouts.time_limit import UP
from arise.types import Rollout, ShownSkill, StopReason, Task, ToolCall, Trajectory, Turn
from arise.world.demonstrations import demonstration
from arise.world.generator import instances
from arise.world.habits import WorkerHabit, habits_shown
from arise.world.instance import Seen


class ReferenceAttempts:
    """Make and cache `count` attempts of another agent per task."""

    def __init__(self, collector: Collector, count: int) -> None:
        self.collector, self.count = collector, count
        self._made: dict[str, asyncio.Task[Sequence[Rollout]]] = {}

    async def __call__(self, task: Task) -> Sequence[Rollout]:
        if task.id not in self._made:
            self._made[task.id] = asyncio.create_task(self._make(task))
        return await self._made[task.id]

    async def _make(self, task: Task) -> Sequence[Rollout]:
        known = self.collector.tasks[task.id]
        keys = [f"reference/{task.id}/{n}" for n in range(self.count)]
        attempts = await asyncio.gather(*(self.collector.attempt(known, (), key) for key in keys))
        return [attempt for attempt in attempts if not attempt.fault]


class ScriptedWorker:
    """A scripted agent for tasks of the embedded world that was shown every good habit."""

    def __init__(self, world: WorldTasks, limits: AgentConfig) -> None:
        self.limits = limits
        self._instances = {task.id: instance for task, instance in islice(instances(world, "train"), world.train_tasks)}

    async def attempt(
        self, task: Task, sandbox: Sandbox, system: str, shown: tuple[ShownSkill, ...], key: str, seed: int
    ) -> Trajectory:
        """Make one attempt; its mistakes depend on `key` and `seed` only."""
        random = np.random.default_rng([seed, *key.encode()])
        script = demonstration(
            self._instances[task.id.rpartition("/")[2]], habits_shown(frozenset(WorkerHabit), random), random
        )
        turns: list[Turn] = []
        stop = StopReason.TURN_LIMIT
        command: str | None = next(script)
        while command is not None and len(turns) < self.limits.max_turns - 1:
            result = await sandbox.run(command, self.limits.command_seconds)
            seen = observe(result, self.limits.observation_chars)
            turns.append(Turn(f"$ {command}", (ToolCall("bash", {"command": command}),), (seen,)))
            if result.ended == UP:
                return Trajectory(key, task.id, tuple(turns), StopReason.TIME_LIMIT, system, (), shown)
            try:
                command = script.send(Seen(seen.text, seen.error))
            except StopIteration:
                command = None
        if command is None:
            turns.append(Turn(f"$ {SUBMIT}", (ToolCall("bash", {"command": SUBMIT}),)))
            stop = StopReason.FINISHED
        return Trajectory(key, task.id, tuple(turns), stop, system, (), shown)
