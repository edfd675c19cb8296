"""Algorithm 1, and nothing else."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Protocol

from arise.coevolution import CoEvolution, Update
from arise.config import Config
from arise.method.credit import Advantages, CreditRule
from arise.method.evidence import records_of
from arise.method.pass_rate import unguided_success
from arise.ports import Assessor, Engine, Guidance
from arise.rollouts.collect import Collector, InFlight, in_flight
from arise.run.record import IterationRecord
from arise.run.store import RunStore
from arise.state import State
from arise.types import Batch, Example, Group, LossSpec, OptimSpec, Pool, StepStats, Tally


class Observer(Protocol):
    """Observes a run: times its parts, displays and mirrors it. Must not change it."""

    def part(self, name: str) -> None: ...
    def finished(self, record: IterationRecord) -> None: ...
    def metrics(self, groups: Sequence[Group], update: StepStats, state: State, version: int) -> dict[str, float]: ...


@dataclass(frozen=True)
class Run:
    """The parts of one run, chosen by `compose.build`."""

    config: Config
    engine: Engine
    guidance: Guidance
    rollouts: Collector
    assessor: Assessor | None
    credit: CreditRule
    evolution: CoEvolution | None
    store: RunStore
    observer: Observer

    @property
    def loss(self) -> LossSpec:
        bounds = self.config.loss
        return LossSpec(bounds.min_ratio, bounds.max_ratio, bounds.dual_clip, self.config.sampling.temperature)

    @property
    def optim(self) -> OptimSpec:
        o = self.config.optimizer
        return OptimSpec(o.learning_rate, o.warmup_updates, (o.beta1, o.beta2), o.weight_decay, o.max_grad_norm)


async def train(run: Run, state: State, until: int | None = None) -> Engine:
    """Algorithm 1, up to iteration `until`, all of them by default. The numbers on the right are the paper's lines.

    No rollout starts ahead of `until` and its policy is saved, so whatever is scheduled there finds the run at rest.
    """
    until, pool_limits = run.config.train.iterations if until is None else until, run.config.pool
    async with in_flight() as rollouts:
        while state.iteration < until:  # 3
            k, pool, version = state.iteration, state.pool, run.engine.version
            run.observer.part("sampler")
            draw(run, state, until)  # 4-5: Eqs. 11-14
            run.observer.part("rollouts")
            begin(run, state, rollouts)  # 6-7: G each, verified
            batch = state.drawn.pop(0)
            groups = await assess(run.assessor, rollouts.pop(k), pool)  # 8-12: only diagnostics while the pool is empty
            run.observer.part("method")
            state.add_evidence(k, groups, run.config.evidence.window)  # 13: B_k
            advantages = [run.credit(group, pool) for group in groups]  # 14: Eqs. 15-17
            run.observer.part("update")
            update = await run.engine.train_step(examples(groups, advantages), run.loss, run.optim)  # 15: Eqs. 18-19
            run.observer.part("method")
            state.sampler.observe(groups, pool, version + 1)  # 16: Eqs. 9-10, 20
            state.set_aside.observe(k, groups)
            evolved: Update | None = None  # 17
            if run.evolution and (k + 1) % pool_limits.update_every == 0:  # 18
                evolved = await run.evolution.update(state, k + 1)  # 19-25
                state.pool = evolved.evolution.pool
                state.sampler.keep_only(state.pool)  # 26
            state.iteration = k + 1
            run.observer.part("rollouts")
            await asyncio.gather(*rollouts.get(k + 1, ()))  # finish the next batch before the policy changes
            run.observer.part("update")
            await run.engine.publish()
            run.observer.part("store")
            checkpoint = await save_policy(run, state.iteration, last=state.iteration == until)
            metrics = run.observer.metrics(groups, update, state, version)
            evidence = records_of(k, groups)
            record = IterationRecord(
                k, batch.draws, groups, advantages, evidence, pool, evolved, metrics, state.to_dict(), checkpoint
            )
            run.store.commit(record, run.config.storage.keep_checkpoints, run.config.storage.keep_every)
            run.observer.finished(record)
    return run.engine  # 29


def draw(run: Run, state: State, until: int) -> None:
    """Alg. 1, lines 4-5 — draw the batch of this iteration and of those that may start early.

    A batch is drawn at most `max_staleness` updates before its own, so none of its tokens can be older than that.
    """
    train = run.config.train
    count = train.tasks_per_iteration
    end = min(state.iteration + train.max_staleness + 1, until)
    for k in range(state.iteration + len(state.drawn), end):
        draws = state.sampler.draw(count, run.engine.version, state.set_aside.unavailable(k, count))
        types = [run.rollouts.tasks[draw.task_id].task.task_types for draw in draws]
        state.drawn.append(Batch(k, tuple(draws), state.pool, unguided_success(state.evidence, types)))


def begin(run: Run, state: State, rollouts: InFlight) -> None:
    """Alg. 1, lines 6-7 — start every drawn batch that is not running yet, also after a resume."""
    for batch in state.drawn:
        if batch.iteration not in rollouts:
            shown = [
                run.guidance.shown(batch.pool, batch.iteration, draw.task_id, run.config.train.group_size, unguided)
                for draw, unguided in zip(batch.draws, batch.unguided or repeat(Tally()), strict=False)
            ]
            rollouts[batch.iteration] = run.rollouts.collect(batch.iteration, batch.draws, shown)


async def assess(assessor: Assessor | None, pending: Sequence[asyncio.Task[Group]], pool: Pool) -> list[Group]:
    """Alg. 1, lines 8-12 — judge each group as soon as it is rolled out, while others still run."""

    async def judged(task: asyncio.Task[Group]) -> Group:
        group = await task
        return await assessor.assess(group, pool) if assessor else group

    try:
        async with (
            asyncio.TaskGroup() as assessments
        ):  # cancellation also ends the rollouts, before their sandboxes close
            tasks = [assessments.create_task(judged(task)) for task in pending]
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]


def examples(groups: Sequence[Group], advantages: Sequence[Advantages | None]) -> list[Example]:
    """Build training examples: every trajectory of every group that has advantages."""
    return [
        Example(rollout.trajectory.rows, float(advantage))
        for group, parts in zip(groups, advantages, strict=True)
        if parts is not None
        for rollout, advantage in zip(group.rollouts, parts.combined_J, strict=True)
    ]


async def save_policy(run: Run, iteration: int, last: bool) -> str | None:
    """Save the policy's full state if a checkpoint is due; return its path relative to the run folder."""
    if iteration % run.config.storage.checkpoint_every and not last:
        return None
    name = f"checkpoints/k{iteration:05d}"
    with run.store.writing():
        await run.engine.save_state(run.store.folder / name)
    return name
