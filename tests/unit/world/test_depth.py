"""Worlds of one depth: every required behaviour is necessary, together they suffice, and no type is easier."""

import subprocess
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from arise.config import WorldTasks
from arise.types import Task
from arise.world.demonstrations import demonstration
from arise.world.depth import LEVELS, PROFILES, REQUIRED, SEPARATORS, DeepInstance, required_by
from arise.world.generator import instances, write_task
from arise.world.habits import EVEN, WorkerHabit, habits_shown
from arise.world.instance import Seen
from arise.world.kinds import KINDS

CAREFUL = frozenset({*REQUIRED, WorkerHabit.ECONOMY})


def first(depth: int, count: int, split: str = "eval") -> list[tuple[Task, DeepInstance]]:
    found = []
    for task, instance in islice(instances(WorldTasks(depth=depth), split), count):
        assert isinstance(instance, DeepInstance)
        found.append((task, instance))
    return found


def solves(task: Task, instance: DeepInstance, habits: frozenset[WorkerHabit], folder: Path, seed: int = 0) -> bool:
    """Whether a worker with these habits passes the task's own test; its commands run in a plain folder."""
    root = write_task(task, instance, folder)
    place = root / "environment"
    script = demonstration(instance, habits, np.random.default_rng(seed))
    command: str | None = next(script)
    while command is not None:
        done = subprocess.run(["/bin/sh", "-c", command], cwd=place, capture_output=True, text=True, check=False)
        try:
            command = script.send(Seen(done.stdout, done.returncode != 0))
        except StopIteration:
            command = None
    reward = root / "reward.txt"
    test = (root / "tests" / "test.sh").read_text()
    for name, path in {"/logs/verifier/reward.txt": reward, "/tests": root / "tests", "/app": place}.items():
        test = test.replace(name, str(path))
    subprocess.run(["/bin/sh", "-c", test], check=True)
    return reward.read_text().strip() == "1"


@pytest.mark.parametrize("depth", range(1, 7))
def test_every_type_requires_as_many_behaviours_as_the_depth_says(depth: int) -> None:
    sets = [required_by(kind.task_type, depth) for kind in KINDS]
    assert {len(required) for required in sets} == {depth}
    counts = [sum(habit in required for required in sets) for habit in REQUIRED]
    assert max(counts) - min(counts) <= 1


@pytest.mark.parametrize(("depth", "count"), [(1, 12), (3, 12), (6, 3), pytest.param(6, 12, marks=pytest.mark.slow)])
def test_all_required_behaviours_suffice_and_each_is_necessary(depth: int, count: int, tmp_path: Path) -> None:
    for number, (task, instance) in enumerate(first(depth, count)):
        assert solves(task, instance, CAREFUL, tmp_path / f"{number}-all", number)
        for habit in instance.required:
            folder = tmp_path / f"{number}-{habit}"
            assert not solves(task, instance, CAREFUL - {habit}, folder, number), f"{task.id} passes without {habit}"


def test_a_hidden_value_is_not_in_the_instruction_and_never_the_default() -> None:
    for _, instance in first(4, 60):
        hidden = {
            WorkerHabit.GUIDE: (instance.profile, PROFILES[0]),
            WorkerHabit.SOURCES: (instance.level, LEVELS[0]),
            WorkerHabit.PROBE: (instance.separator, next(iter(SEPARATORS))),
        }
        for habit, (value, default) in hidden.items():
            assert (value not in instance.instruction.split()) == (habit in instance.required)
            assert habit not in instance.required or value != default


def test_specification_and_notes_each_hold_a_part() -> None:
    for _, instance in first(3, 30):
        files = instance.environment()
        assert instance.profile in files["spec.txt"]
        assert instance.profile not in files["notes.txt"]
        assert instance.level in files["notes.txt"]
        assert instance.level not in files["spec.txt"]


def test_required_behaviours_show_equally_often_unasked() -> None:
    random = np.random.default_rng(0)
    shown = [habits_shown(frozenset(), random, EVEN) for _ in range(3000)]
    for habit in REQUIRED:
        assert abs(np.mean([habit in habits for habits in shown]) - 0.2) < 0.03


def test_depth_refuses_other_settings_of_difficulty() -> None:
    with pytest.raises(ValidationError, match=r"tasks\.depth sets the difficulty"):
        WorldTasks(depth=2, difficulty="hard")
    with pytest.raises(ValidationError, match=r"tasks\.depth sets the difficulty"):
        WorldTasks(depth=2, corrections=0.5)


def test_splits_of_a_depth_are_disjoint() -> None:
    train, held_out = ({task.id for task, _ in first(3, 80, split)} for split in ("train", "eval"))
    assert not train & held_out
