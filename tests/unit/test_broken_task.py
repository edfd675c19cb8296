"""A task whose sandbox never opens, in the real loop and store: set aside, said, recorded, restored."""

from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from arise.baselines.uniform import Uniform
from arise.config import Config, SeparateCredit, SkillGuidance
from arise.method.credit import separate_credit
from arise.method.set_aside import Faulty, SetAside
from arise.observe.terminal import Display
from arise.ports import SandboxLost
from arise.rollouts.collect import Collector
from arise.rollouts.showing import ActiveSkills
from arise.run.reader import RunReader
from arise.run.store import RunStore
from arise.state import State
from arise.train import Run, train
from arise.types import Place, TaskSpec, VerifierSpec
from tests.instant import instantly
from tests.stored_runs import content_of
from tests.unit.test_train import TASKS, Log, Nowhere, SlowPolicy


class Breaks(Nowhere):
    """Everything works but the sandbox of one task."""

    def __init__(self, broken: str) -> None:
        self.broken = broken

    async def open(self, *given: object) -> "Nowhere":
        (place,) = given
        if isinstance(place, Place) and place.files is not None and place.files.name == self.broken:
            raise SandboxLost("its image is gone")
        return self


async def drive_with_a_broken_task(folder: Path, iterations: int, told: list[str]) -> State:
    """Every task of an epoch in a batch, so that the broken one is drawn whenever it may be."""
    tasks = TASKS[:3]
    sizes = {"iterations": iterations, "tasks_per_iteration": 2, "group_size": 2}
    config = Config.model_validate({"train": sizes, "pool": {"evolves": False}})
    with closing(RunStore.open(folder)) as store:
        policy: Any = SlowPolicy(1.0)
        state = State(Uniform(tasks, np.random.default_rng(0)), set_aside=SetAside(len(tasks), 2, 3))
        if found := store.last_checkpoint():
            state.restore(found[0])
            policy.load_state(folder / found[1])
        place: Any = Breaks("x0")
        corpus = {
            task.id: TaskSpec(task, folder, VerifierSpec(folder), environment=Place(folder / task.id)) for task in tasks
        }
        collector = Collector(policy, place, place, corpus, Log(store), seed=0)
        watch = Display(told.append, iterations)
        run = Run(
            config,
            policy,
            ActiveSkills(SkillGuidance()),
            collector,
            None,
            separate_credit(SeparateCredit()),
            None,
            store,
            watch,
        )
        await train(run, state)
        return state


def test_a_task_that_never_completes_a_group_is_set_aside_said_recorded_and_kept_over_a_resume(tmp_path: Path) -> None:
    told: list[str] = []
    state, _ = instantly(drive_with_a_broken_task(tmp_path / "run", 5, told))
    with RunReader.open(tmp_path / "run") as run:
        drawn = [slot.k for k in range(5) for slot in run.slots(k) if slot.draw.task_id == "x0"]
        first, second = drawn[:2]
        assert drawn == [first, second], "then it is set aside"
        assert run.set_aside() == {"x0": Faulty(2, second, second + 4)}
        counted = [iteration.metrics.get("set_aside", 0.0) for iteration in run.iterations()]
    assert counted == [0.0] * second + [1.0] * (5 - second)
    said = "task x0 was set aside: infrastructure left 2 of its groups in a row incomplete; it is tried again from "
    assert [line for line in told if "set aside" in line] == [f"{said}iteration {second + 5} on"]
    later, _ = instantly(drive_with_a_broken_task(tmp_path / "run", 12, []))
    whole, _ = instantly(drive_with_a_broken_task(tmp_path / "once", 12, []))
    assert later.to_dict() == whole.to_dict()
    assert content_of(tmp_path / "run")["seals"] == content_of(tmp_path / "once")["seals"]
    assert state.set_aside.faulty["x0"].in_a_row < whole.set_aside.faulty["x0"].in_a_row, "it was tried again"
