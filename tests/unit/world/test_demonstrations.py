"""What a demonstration looks like for an agent that can write several lines at once."""

import numpy as np
import pytest

from arise.config import WorldTasks
from arise.world.demonstrations import demonstration, join_looks
from arise.world.depth import make_deep_instance
from arise.world.generator import instances
from arise.world.habits import WorkerHabit
from arise.world.instance import Instance, Script, Seen
from arise.world.kinds import KINDS


def played(script: Script) -> list[str]:
    commands = []
    try:
        command = next(script)
        while True:
            commands.append(command)
            command = script.send(Seen("", failed=False))
    except StopIteration:
        return commands


@pytest.mark.parametrize("depth", [None, 1, 4])
def test_looks_are_the_lines_of_one_command_and_nothing_else_changes(depth: int | None) -> None:
    several = 0
    for seed in range(200):
        random = np.random.default_rng(seed)
        instance: Instance
        if depth is None:
            instance = next(iter(instances(WorldTasks(seed=seed), "demo")))[1]
        else:
            instance = make_deep_instance(KINDS[seed % len(KINDS)], depth, random)
        habits = frozenset(habit for habit in WorkerHabit if random.random() < 0.5)
        plain = played(demonstration(instance, habits, np.random.default_rng(seed)))
        joined = played(join_looks(demonstration(instance, habits, np.random.default_rng(seed))))
        assert "\n".join(joined) == "\n".join(plain)
        assert all("\n" not in command for command in joined[1:]), "only the beginning looks"
        several += "\n" in joined[0]
    assert several > 50
