"""Demonstrations of world tasks, with every command run in a sandbox, with and without guidance."""

import asyncio
import logging
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np

from arise.config import WorldTasks
from arise.ports import Sandbox, SandboxLost, SandboxPool
from arise.text.progress import Progress
from arise.types import CommandResult, Observation, Place
from arise.world.demonstrations import demonstration, join_looks
from arise.world.generator import instances, write_environment
from arise.world.habits import UNASKED, WorkerHabit, asked_given_shown, habits_asked, habits_shown, unasked_rates
from arise.world.instance import Instance, Script, Seen
from arise.world.wording import guidance

log = logging.getLogger(__name__)

AT_ONCE = 32
TRIES = 3  # of one demonstration whose sandbox fails

Turns = TypeVar("Turns", covariant=True)
Commands = tuple[tuple[str, str], ...]
"""The answer and the observation of every turn."""


@dataclass(frozen=True)
class Demonstration(Generic[Turns]):
    """One scripted attempt: the instruction, the habits shown, and its turns as the agent of the run has them."""

    instruction: str
    habits: frozenset[WorkerHabit]
    turns: Turns
    unasked: Mapping[WorkerHabit, float] = field(default_factory=lambda: UNASKED)
    """How often the worker shows each habit without guidance."""

    def guidance(self, random: np.random.Generator) -> tuple[str, ...]:
        """Sample guidance under which the worker would have acted like this."""
        return guidance(asked_given_shown(self.habits, random, self.unasked), random)


Play = Callable[[str, Script, Sandbox], Awaitable[Turns]]
"""Runs the script of an instruction in its sandbox."""


async def demonstrate(
    world: WorldTasks, count: int, sandboxes: SandboxPool, play: Play[Turns]
) -> list[Demonstration[Turns]]:
    """Return `count` demonstrations from the world's own split; one whose sandbox fails is run again."""
    random = np.random.default_rng([world.seed, 77])
    free = asyncio.Semaphore(AT_ONCE)
    unasked = unasked_rates(world.depth)

    async def once(instruction: str, instance: Instance, seed: int) -> Demonstration[Turns]:
        own = np.random.default_rng(seed)
        habits = habits_shown(habits_asked(own), own, unasked)
        with tempfile.TemporaryDirectory() as folder:
            write_environment(instance, Path(folder))
            sandbox = await sandboxes.open(Place(Path(folder)))
        try:
            turns = await play(instruction, demonstration(instance, habits, own), sandbox)
        finally:
            await sandbox.close()
        return Demonstration(instruction, habits, turns, unasked)

    async def one(instruction: str, instance: Instance, seed: int) -> Demonstration[Turns]:
        async with free:
            for left in reversed(range(TRIES)):
                try:
                    shown = await once(instruction, instance, seed)
                    break
                except SandboxLost as fault:
                    if not left:
                        raise
                    log.info("warm start: a demonstration lost its sandbox (%s); it is run again", fault)
        wait.add()
        return shown

    plans = [
        (task.instruction, instance, int(random.integers(2**63)))
        for task, instance in islice(instances(world, "demo"), count)
    ]
    with Progress(log, "warm start: demonstrations", len(plans)) as wait:
        return list(await asyncio.gather(*(one(*plan) for plan in plans)))


def in_commands(
    show: Callable[[CommandResult], Observation], max_turns: int, seconds: float, *, looks_at_once: bool = False
) -> Play[Commands]:
    """Return a function that runs commands one by one; `show` formats a result for the agent.

    `looks_at_once`: commands that only look are lines of one command, for agents that can write several lines.
    """

    async def play(instruction: str, script: Script, sandbox: Sandbox) -> Commands:  # noqa: ARG001
        turns: list[tuple[str, str]] = []
        if looks_at_once:
            script = join_looks(script)
        try:
            command = next(script)
            while len(turns) < max_turns - 1:
                seen = show(await sandbox.run(command, seconds))
                turns.append((f"$ {command}", seen.text))
                command = script.send(Seen(seen.text, seen.error))
        except StopIteration:
            pass
        return (*turns, ("$ submit", ""))

    return play


def worker(script: Script, max_turns: int) -> Callable[[str | None], str | None]:
    """Return a function from the output of the last command, None at first, to the next one, None at the end.

    A harness shows output in its own words; the tools of the world say "error" when they fail.
    """
    left = iter(range(max_turns - 1))

    def step(output: str | None) -> str | None:
        try:
            if next(left, None) is None:
                return None
            return next(script) if output is None else script.send(Seen(output, "error" in output))
        except StopIteration:
            return None

    return step
