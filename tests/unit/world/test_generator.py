"""The world's tasks: disjoint splits, a held-out type, every oracle passes, every null agent fails."""

import asyncio
from collections import Counter
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from arise.compose.sandboxes import trial_pools
from arise.config import WorldTasks
from arise.rollouts.oracle import check_task
from arise.tasks import load_corpus, task_types
from arise.types import Task
from arise.world.demonstrations import demonstration
from arise.world.generator import instances, write_task
from arise.world.habits import WorkerHabit
from arise.world.instance import Instance, Seen
from arise.world.kinds import KINDS

WORLD = WorldTasks()


def first(split: str, count: int, world: WorldTasks = WORLD) -> list[tuple[Task, Instance]]:
    return list(islice(instances(world, split), count))


def one_of_each_kind(world: WorldTasks) -> list[tuple[Task, Instance]]:
    found: dict[str, tuple[Task, Instance]] = {}
    for task, instance in instances(world, "eval"):
        found.setdefault(task.task_types[0], (task, instance))
        if len(found) == len(KINDS):
            return list(found.values())
    raise AssertionError


def test_at_least_ten_task_types_all_in_the_registry() -> None:
    assert len(KINDS) >= 10
    assert {kind.task_type for kind in KINDS} <= set(task_types())


def test_the_same_settings_give_the_same_tasks_and_another_seed_gives_others() -> None:
    assert [task for task, _ in first("train", 20)] == [task for task, _ in first("train", 20)]
    other = WorldTasks(seed=1)
    assert not {task.id for task, _ in first("train", 20)} & {task.id for task, _ in first("train", 20, other)}


def test_no_instance_is_in_two_splits() -> None:
    splits = {split: {task.id for task, _ in first(split, 300)} for split in ("train", "eval", "demo")}
    assert not splits["train"] & splits["eval"]
    assert not splits["train"] & splits["demo"]
    assert not splits["eval"] & splits["demo"]


def test_the_held_out_type_is_only_in_evaluation() -> None:
    for split in ("train", "demo"):
        assert WORLD.held_out not in {task.task_types[0] for task, _ in first(split, 300)}
    assert WORLD.held_out in {task.task_types[0] for task, _ in first("eval", 100)}


def test_the_mix_weighs_task_types() -> None:
    world = WorldTasks(mix={"unit-harmonization": 3.0, "information-extraction": 1.0})
    counts = Counter(task.task_types[0] for task, _ in first("train", 200, world))
    assert set(counts) == {"unit-harmonization", "information-extraction"}
    assert 2.0 < counts["unit-harmonization"] / counts["information-extraction"] < 4.5


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mix": {"unit-harmonisation": 1.0}}, "unknown task type 'unit-harmonisation'"),
        ({"held_out": "nothing"}, "unknown task type 'nothing'"),
        ({"mix": {"unit-harmonization": 0.0}}, "leaves no task type for the train split"),
    ],
)
def test_a_wrong_mix_is_named(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        first("train", 1, WorldTasks.model_validate(settings))


@pytest.mark.parametrize("settings", [{"difficulty": d} for d in ("easy", "normal", "hard")] + [{"corrections": 0.0}])
def test_every_oracle_passes_and_every_null_agent_fails(tmp_path: Path, settings: dict[str, object]) -> None:
    for task, instance in one_of_each_kind(WorldTasks.model_validate(settings)):
        write_task(task, instance, tmp_path)
    tasks = load_corpus(tmp_path)
    assert len(tasks) == len(KINDS)

    async def problems() -> list[object]:
        async with trial_pools(4) as pools:
            return [problem for task in tasks for problem in await check_task(task, pools)]

    assert asyncio.run(problems()) == []


def test_neither_profile_nor_format_is_in_the_instruction() -> None:
    for task, instance in first("train", 200):
        assert instance.profile not in task.instruction
        assert instance.separator not in task.instruction.split()


def with_notes(corrections: float) -> list[Instance]:
    return [i for _, i in first("train", 200, WorldTasks(corrections=corrections)) if i.kind.notes]


def test_with_fewer_corrections_neither_guide_is_enough_alone() -> None:
    assert all(instance.corrected for instance in with_notes(1.0))
    some = with_notes(0.5)
    assert 0.3 < sum(instance.corrected for instance in some) / len(some) < 0.7
    for instance in some:
        files = instance.environment()
        assert (instance.profile in files["notes.txt"]) == instance.corrected
        assert (instance.profile in files["spec.txt"]) != instance.corrected


def used_profiles(habits: frozenset[WorkerHabit], instances: list[Instance]) -> list[bool]:
    """Whether a scripted worker runs the tool with the right profile."""
    found = []
    for number, instance in enumerate(instances):
        script = demonstration(instance, habits, np.random.default_rng(number))
        command = next(script)
        while not command.startswith("./tool"):
            command = script.send(Seen("", failed=False))
        found.append(command.split()[1] == instance.profile)
    return found


def test_a_worker_knows_the_profile_that_what_it_read_names() -> None:
    both, spec, notes = (
        frozenset(h) for h in ({WorkerHabit.GUIDE, WorkerHabit.SOURCES}, {WorkerHabit.GUIDE}, {WorkerHabit.SOURCES})
    )
    corrected, confirmed = with_notes(1.0), with_notes(0.0)
    assert all(used_profiles(both, corrected + confirmed))
    assert all(used_profiles(notes, corrected))
    assert all(used_profiles(spec, confirmed))
    assert not any(used_profiles(spec, corrected))
    assert not all(used_profiles(notes, confirmed))
