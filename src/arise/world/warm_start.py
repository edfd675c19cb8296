"""Demonstrations of world tasks, with every command run in a sandbox, with and without guidance."""

import asyncio
import logging
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np

from arise.config import WorldTasks
from arise.ports import Sandbox, SandboxPool
from arise.text.progress import Progress
from arise.types import CommandResult, Observation, Place
from arise.world.demonstrations import demonstration
from arise.world.generator import instances, write_environment
from arise.world.habit import Habit
from arise.world.habits import UNASKED, asked_given_shown, guidance, habits_asked, habits_shown, unasked_rates
from arise.world.instance import Instance, Seen

log = logging.getLogger(__name__)

AT_ONCE = 32


@dataclass(frozen=True)
class Demonstration:
    """One scripted attempt: the instruction, the habits shown, and the answer and observation of every turn."""

    instruction: str
    habits: frozenset[Habit]
    turns: tuple[tuple[str, str], ...]
    unasked: Mapping[Habit, float] = field(default_factory=lambda: UNASKED)
    """How often the worker shows each habit without guidance."""

    def guidance(self, random: np.random.Generator) -> tuple[str, ...]:
        """Sample guidance under which the worker would have acted like this."""
        return guidance(asked_given_shown(self.habits, random, self.unasked), random)


async def demonstrate(
    world: WorldTasks,
    count: int,
    sandboxes: SandboxPool,
    show: Callable[[CommandResult], Observation],
    max_turns: int,
    seconds: float = 10.0,
) -> list[Demonstration]:
    """Return `count` demonstrations from the world's own split; `show` formats a command's result for the agent."""
    random = np.random.default_rng([world.seed, 77])
    free = asyncio.Semaphore(AT_ONCE)
    unasked = unasked_rates(world.depth)

    async def one(instruction: str, instance: Instance, own: np.random.Generator) -> Demonstration:
        habits = habits_shown(habits_asked(own), own, unasked)
        async with free:
            with tempfile.TemporaryDirectory() as folder:
                write_environment(instance, Path(folder))
                sandbox = await sandboxes.open(Place(Path(folder)))
            try:
                turns = await _play(instance, habits, own, sandbox, show, max_turns, seconds)
            finally:
                await sandbox.close()
        wait.add()
        return Demonstration(instruction, habits, tuple(turns), unasked)

    plans = [
        (task.instruction, instance, np.random.default_rng(int(random.integers(2**63))))
        for task, instance in islice(instances(world, "demo"), count)
    ]
    with Progress(log, "warm start: demonstrations", len(plans)) as wait:
        return list(await asyncio.gather(*(one(*plan) for plan in plans)))


async def _play(
    instance: Instance,
    habits: frozenset[Habit],
    random: np.random.Generator,
    sandbox: Sandbox,
    show: Callable[[CommandResult], Observation],
    max_turns: int,
    seconds: float,
) -> list[tuple[str, str]]:
    """Run a script in its sandbox; the last turn submits and has no observation."""
    script = demonstration(instance, habits, random)
    turns: list[tuple[str, str]] = []
    try:
        command = next(script)
        while len(turns) < max_turns - 1:
            seen = show(await sandbox.run(command, seconds))
            turns.append((f"$ {command}", seen.text))
            command = script.send(Seen(seen.text, seen.error))
    except StopIteration:
        pass
    return [*turns, ("$ submit", "")]
