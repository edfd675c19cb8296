"""Demonstrations of world tasks, every command really run in a sandbox, with and without guidance."""

import asyncio
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from arise.config import WorldTasks
from arise.ports import Sandbox, SandboxPool
from arise.types import CommandResult, Observation
from arise.world.demonstrations import Seen, demonstration
from arise.world.generator import instances, write_environment
from arise.world.habits import Habit, habits_shown, phrase
from arise.world.instance import Instance

UNGUIDED_SHARE = 0.4
MOST_ASKED = 5


@dataclass(frozen=True)
class Demonstration:
    """One scripted attempt: what was asked, the guidance shown, and answer and observation of every turn."""

    instruction: str
    guidance: tuple[str, ...]
    turns: tuple[tuple[str, str], ...]


async def demonstrate(
    world: WorldTasks,
    count: int,
    sandboxes: SandboxPool,
    show: Callable[[CommandResult], Observation],
    max_turns: int,
    seconds: float = 10.0,
) -> list[Demonstration]:
    """`count` demonstrations from the world's own split; `show` is how the agent sees a command's result."""
    random = np.random.default_rng([world.seed, 77])
    plans = []
    for task, instance in islice(instances(world, "demo"), count):
        asked = _asked(random)
        guidance = tuple(phrase(habit, random) for habit in asked)
        seed = int(random.integers(2**63))
        plans.append((task.instruction, instance, frozenset(asked), guidance, seed))
    free = asyncio.Semaphore(32)

    async def one(
        instruction: str, instance: Instance, asked: frozenset[Habit], guidance: tuple[str, ...], seed: int
    ) -> Demonstration:
        async with free:
            with tempfile.TemporaryDirectory() as folder:
                write_environment(instance, Path(folder))
                sandbox = await sandboxes.open(Path(folder))
            try:
                own = np.random.default_rng(seed)
                turns = await _play(instance, habits_shown(asked, own), own, sandbox, show, max_turns, seconds)
            finally:
                await sandbox.close()
        return Demonstration(instruction, guidance, tuple(turns))

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
    """Run a script in its sandbox; the last turn submits and sees nothing."""
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


def _asked(random: np.random.Generator) -> list[Habit]:
    """Which habits the guidance asks for: none in two of five demonstrations, else one to five."""
    if random.random() < UNGUIDED_SHARE:
        return []
    habits: Sequence[Habit] = list(Habit)
    chosen = random.permutation(len(habits))[: int(random.integers(1, MOST_ASKED + 1))]
    return [habits[i] for i in chosen]
