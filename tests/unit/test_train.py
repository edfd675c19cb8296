"""Algorithm 1 with rollouts that run ahead of it: how much is gained, how old a token may be, what a kill costs.

The loop, the collector and the store are real; policy, sandboxes and judge are stand-ins that take their time on a
clock that jumps. The policy's weights are a digest of all it was ever trained on, and every token depends on them.
"""

import asyncio
import hashlib
import json
import math
from collections import Counter
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from arise.baselines.uniform import Uniform
from arise.coevolution import Update
from arise.config import Config, SkillGuidance
from arise.method.credit import separate_credit
from arise.method.lifecycle import Evolution
from arise.observe.terminal import Display, no_update
from arise.rollouts.collect import Collector
from arise.rollouts.showing import ActiveSkills
from arise.rollouts.verifier import VerifierResult
from arise.run.store import RunStore
from arise.state import State
from arise.train import Run, train
from arise.types import (
    Example,
    Group,
    Judgment,
    LossSpec,
    OptimSpec,
    Pool,
    PoolEvent,
    ShownSkill,
    StepStats,
    StopReason,
    Task,
    TaskSpec,
    Tokens,
    Trajectory,
    VerifierSpec,
)
from tests.builders import a_pair
from tests.instant import instantly
from tests.stored_runs import content_of, write_checkpoint

TOKENS = 6
TASKS = [Task(f"x{n}", "do it", (), "data") for n in range(9)]


class SlowPolicy:
    """As an agent it takes `seconds` an attempt; as an engine it learns at once and keeps what it sampled with."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.version, self.trained, self.published = seconds, 0, "", ""

    async def attempt(
        self, task: Task, _: object, system: str, shown: tuple[ShownSkill, ...], key: str, seed: int
    ) -> Trajectory:
        ids, versions = [], []
        for n in range(TOKENS):
            await asyncio.sleep(self.seconds / TOKENS)
            ids.append(hashlib.sha256(f"{self.published}/{seed}/{key}/{n}".encode()).digest()[0])
            versions.append(self.version)
        row = Tokens(np.array(ids), np.ones(TOKENS, np.bool_), np.full(TOKENS, -0.5), np.array(versions))
        return Trajectory(key, task.id, (), StopReason.FINISHED, system, (row,), shown)

    async def train_step(self, examples: Sequence[Example], loss: LossSpec, optim: OptimSpec) -> StepStats:  # noqa: ARG002
        seen = [[row.ids_U.tolist() for row in example.rows] + [example.advantage] for example in examples]
        self.trained = hashlib.sha256(f"{self.trained}{seen}".encode()).hexdigest()
        return StepStats(0.0, 1.0, 1.0, TOKENS, TOKENS, 0, 0.0)

    async def publish(self) -> None:
        self.version, self.published = self.version + 1, self.trained

    async def save_state(self, path: Path) -> str:
        write_checkpoint(path, self.trained)
        (path / "policy.json").write_text(json.dumps([self.version, self.trained]))
        return str(path)

    def load_state(self, path: Path) -> None:
        self.version, self.trained = json.loads((path / "policy.json").read_text())
        self.published = self.trained


class Nowhere:
    """Sandbox, pool of sandboxes and verifier in one: every attempt succeeds."""

    async def open(self, *_: object) -> "Nowhere":
        return self

    async def verify(self, *_: object, **__: object) -> VerifierResult:
        return VerifierResult(1.0, True)

    async def close(self) -> None: ...


@dataclass(frozen=True)
class SlowJudge:
    """Takes `seconds` for a group and finds nothing."""

    seconds: float

    async def assess(self, group: Group, pool: Pool) -> Group:
        await asyncio.sleep(self.seconds)
        judged = [replace(rollout, judgment=Judgment(pool.version, "slow")) for rollout in group.rollouts]
        return replace(group, rollouts=tuple(judged))


@dataclass
class Log:
    """A journal that also counts what it is given to keep."""

    store: RunStore
    kept: Counter[tuple[int, str]] = field(default_factory=Counter)

    def finished_group(self, iteration: int, task_id: str) -> Group | None:
        return self.store.finished_group(iteration, task_id)

    def save_group(self, iteration: int, group: Group) -> None:
        self.kept[iteration, group.task.id] += 1
        self.store.save_group(iteration, group)


class OnePair:
    """An evolution that gives the pool one pair, its skill shown."""

    async def update(self, state: State, iteration: int) -> Update:  # noqa: ARG002
        born = PoolEvent(iteration, "r1", "born")
        return Update(Evolution(Pool((a_pair("r1", active=True),), 1, 1), (born,)), (), ())


def config_of(max_staleness: int, iterations: int = 8, update_every: int = 10, window: int = 10) -> Config:
    sizes = {"iterations": iterations, "tasks_per_iteration": 2, "group_size": 2, "max_staleness": max_staleness}
    pool, evidence = {"update_every": update_every}, {"window": window}
    return Config.model_validate({"train": sizes, "pool": pool, "evidence": evidence})


async def drive(
    folder: Path,
    config: Config,
    rollout: float,
    judge: float,
    until: float | None = None,
    evolution: Any = None,
    pauses: Sequence[int] = (),
) -> Log:
    """Start or continue a run; `until` stops it at that second, as a kill would; `pauses` are scheduled events."""
    with closing(RunStore.open(folder)) as store:
        policy: Any = SlowPolicy(rollout)
        state, nowhere, log = State(Uniform(TASKS, np.random.default_rng(0))), Nowhere(), Log(store)
        if found := store.last_checkpoint():
            state.restore(found[0])
            policy.load_state(folder / found[1])
        corpus = {task.id: TaskSpec(task, folder, VerifierSpec(folder)) for task in TASKS}
        collector = Collector(policy, nowhere, nowhere, corpus, log, seed=0)  # type: ignore[arg-type]
        watch = Display(lambda _: None, config.train.iterations)
        credit, judged = separate_credit(config.credit), SlowJudge(judge)  # type: ignore[arg-type]
        run = Run(config, policy, ActiveSkills(SkillGuidance()), collector, judged, credit, evolution, store, watch)
        with suppress(TimeoutError):
            async with asyncio.timeout(until):
                for pause in pauses:
                    await train(run, state, until=pause)
                    assert state.drawn == [], "nothing runs ahead of a pause"
                await train(run, state)
        assert asyncio.all_tasks() == {asyncio.current_task()}, "a stop ends every rollout that ran ahead"
        return log


def numbers(folder: Path, name: str) -> list[float]:
    with closing(RunStore.open(folder)) as store:
        return [row[0] for row in store.query(f"SELECT json_extract(metrics, '$.{name}') FROM iterations ORDER BY k")]  # noqa: S608


@pytest.mark.parametrize(
    ("max_staleness", "rollout", "seconds"),
    [
        (0, 3.0, 8 * (3.0 + 1.0)),
        (1, 3.0, 4.0 + 6 * 3.0 + 1.0),  # one batch at a time, judging beside it
        (2, 3.0, 4.0 + 6 * 1.5 + 1.0),
        (3, 3.0, 3.0 + 8 * 1.0),  # three batches at a time: judging alone sets the pace
        (1, 0.5, 0.5 + 8 * 1.0),
    ],
)
def test_rollouts_that_run_ahead_save_their_time_and_no_token_is_older_than_allowed(
    tmp_path: Path, max_staleness: int, rollout: float, seconds: float
) -> None:
    _, spent = instantly(drive(tmp_path, config_of(max_staleness), rollout, judge=1.0))
    assert spent == pytest.approx(seconds, abs=0.01)
    assert numbers(tmp_path, "max_staleness") == [min(k, max_staleness) for k in range(8)]
    assert all(0.0 <= age <= max_staleness for age in numbers(tmp_path, "staleness"))


def test_the_update_receives_the_temperature_of_the_rollouts() -> None:
    config = Config.model_validate({"sampling": {"temperature": 0.6}, "loss": {"dual_clip": 2.0}})
    run = Run(config, *[cast(Any, None)] * 8)
    assert run.loss == LossSpec(dual_clip=2.0, temperature=0.6)


def test_an_update_that_was_skipped_for_its_numbers_is_counted_and_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def poisoned(policy: SlowPolicy, *_: Any) -> StepStats:
        loss, norm = (math.nan, math.inf) if policy.version == 1 else (0.5, 1.0)
        return StepStats(loss, norm, 1.0, TOKENS, TOKENS, 0, 0.0, "" if norm == 1.0 else "bad")

    shown: list[str] = []
    monkeypatch.setattr(SlowPolicy, "train_step", poisoned)
    monkeypatch.setattr(Display, "tell", lambda _, message: shown.append(message))
    monkeypatch.setattr(Display, "show", lambda _, record, __: shown.append(no_update(record.metrics)))
    instantly(drive(tmp_path, config_of(0, iterations=3), 1.0, judge=1.0))
    assert numbers(tmp_path, "bad_update") == [0.0, 1.0, 0.0]
    assert numbers(tmp_path, "loss") == [0.5, None, 0.5]
    assert numbers(tmp_path, "all_fail") == [0, 0, 0], "the record stays readable"
    assert ["not finite" in line for line in shown] == [False, True, False]


def test_skills_are_those_of_the_draw_and_rubrics_those_of_the_judging(tmp_path: Path) -> None:
    """The pool gets its only pair after iteration 1, when the batch of iteration 2 is drawn already."""
    config = config_of(1, iterations=4, update_every=2, window=2)
    instantly(drive(tmp_path, config, 3.0, 1.0, evolution=OnePair()))
    with closing(RunStore.open(tmp_path)) as store:
        found = store.query(
            "SELECT k, json_extract(record, '$.view.pool_version'), json_array_length(record, '$.view.shown_skills')"
            " FROM evidence GROUP BY 1, 2, 3 ORDER BY k"
        )
    assert found == [(0, 0, 0), (1, 0, 0), (2, 1, 0), (3, 1, 1)]


@pytest.mark.parametrize("max_staleness", [0, 1])
def test_a_stop_at_any_moment_changes_nothing(tmp_path: Path, max_staleness: int) -> None:
    config = config_of(max_staleness, iterations=5)
    _, seconds = instantly(drive(tmp_path / "whole", config, 3.0, 1.0))
    whole = content_of(tmp_path / "whole")
    for moment in np.arange(0.25, seconds, 1.5):
        folder = tmp_path / f"stopped-{moment}"
        first, _ = instantly(drive(folder, config, 3.0, 1.0, until=float(moment)))
        second, _ = instantly(drive(folder, config, 3.0, 1.0))
        assert content_of(folder) == whole, f"stopped after {moment} s"
        assert set((first.kept + second.kept).values()) == {1}, "no finished group is rolled out twice, none is lost"


def test_with_more_batches_ahead_a_stop_loses_and_repeats_nothing_and_keeps_the_bound(tmp_path: Path) -> None:
    config = config_of(3, iterations=6)
    for moment in (2.0, 3.7, 4.4, 6.1, 8.2):
        folder = tmp_path / f"stopped-{moment}"
        first, _ = instantly(drive(folder, config, 3.0, 1.0, until=moment))
        second, _ = instantly(drive(folder, config, 3.0, 1.0))
        assert set((first.kept + second.kept).values()) == {1}
        assert len(first.kept + second.kept) == 6 * 2
        assert max(numbers(folder, "max_staleness")) <= 3
        assert min(numbers(folder, "staleness")) >= 0


def test_stretches_between_evaluations_are_not_crossed(tmp_path: Path) -> None:
    """The learning curve's points are taken with no rollout under way."""
    for stop in (2, 4):
        instantly(drive(tmp_path, config_of(1, iterations=stop), 3.0, 1.0))
        assert numbers(tmp_path, "max_staleness") == [0, 1, 0, 1][:stop]
