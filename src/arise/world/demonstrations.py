"""Scripted attempts at world tasks with a worker's flaws and habits; the caller runs every command."""

from collections.abc import Generator

import numpy as np

from arise.world.depth import DeepInstance, deep_demonstration
from arise.world.habits import WorkerHabit
from arise.world.instance import Instance, Script, Seen
from arise.world.kinds import PROFILES, SEPARATORS

LOOKS = ("ls", "cat ", "head ")
"""How the commands begin that only look."""


def demonstration(instance: Instance, habits: frozenset[WorkerHabit], random: np.random.Generator) -> Script:
    """Yield the commands of one attempt; each result is sent back to the generator."""
    if isinstance(instance, DeepInstance):
        yield from deep_demonstration(instance, habits, random)
        return
    profile = yield from _gather(instance, habits, random)
    known_format = WorkerHabit.PROBE in habits
    if WorkerHabit.BACKUP in habits and instance.kind.in_place:
        yield f"cp {instance.inputs[0]} {instance.inputs[0]}.bak"
    covered = range(instance.kind.parts if WorkerHabit.LIST in habits else 1)
    separator = instance.separator if known_format else str(random.choice(list(SEPARATORS), p=[0.5, 0.3, 0.2]))
    for n in covered:
        separator = yield from _transform(instance, n, profile, separator, habits, random)
    if WorkerHabit.DELIVER in habits and instance.kind.report:
        yield f"./report {instance.outputs[0]}"


def _gather(
    instance: Instance, habits: frozenset[WorkerHabit], random: np.random.Generator
) -> Generator[str, Seen, str]:
    """Yield commands that inspect the environment; return the profile to use, guessed if it was not looked up."""
    looks = []
    if WorkerHabit.LIST in habits:
        looks.append("ls")
    if WorkerHabit.GUIDE in habits:
        looks.append("cat spec.txt")
    if WorkerHabit.SOURCES in habits and instance.kind.notes:
        looks.append("cat notes.txt")
    if WorkerHabit.PROBE in habits:
        looks.append(f"head -n 2 {instance.inputs[0]}")
    if random.random() < 0.3:
        looks = [looks[i] for i in random.permutation(len(looks))]
    for look in looks:  # noqa: UP028 — a list cannot be sent anything
        yield look
    if looks and WorkerHabit.ECONOMY not in habits:
        for _ in range(int(random.integers(1, 4))):
            yield looks[int(random.integers(len(looks)))]
    if "cat notes.txt" in looks and instance.corrected:
        return instance.profile
    if "cat spec.txt" in looks:
        return instance.specified
    return str(random.choice(PROFILES))


def _transform(
    instance: Instance,
    n: int,
    profile: str,
    separator: str,
    habits: frozenset[WorkerHabit],
    random: np.random.Generator,
) -> Generator[str, Seen, str]:
    """Run the tool on input `n`, react to an error, sometimes check; return the separator now believed correct."""
    seen = yield instance.command(n, profile, separator)
    while seen.failed and "expected" in seen.text:
        if WorkerHabit.REPAIR in habits:
            separator = instance.separator
        elif random.random() < 0.5:
            break
        seen = yield instance.command(n, profile, separator)
    if WorkerHabit.CHECK in habits:
        seen = yield f"./check {instance.outputs[n]}"
        if seen.failed and "again" in seen.text:
            yield instance.command(n, profile, separator)
            if random.random() < 0.5:
                yield f"./check {instance.outputs[n]}"
    return separator


def join_looks(script: Script) -> Script:
    """Yield the commands of a script, those that only look together as the lines of one command."""
    looks: list[str] = []
    try:
        command = next(script)
        while True:
            if command.startswith(LOOKS):
                looks.append(command)
                command = script.send(Seen("", failed=False))  # what a script does never depends on what a look shows
                continue
            if looks:
                yield "\n".join(looks)
                looks = []
            command = script.send((yield command))
    except StopIteration:
        if looks:
            yield "\n".join(looks)
