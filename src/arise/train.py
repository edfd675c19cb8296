"""Algorithm 1, and nothing else."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from arise.coevolution import Reflection, Update
from arise.config import Config
from arise.method.credit import CreditRule
from arise.method.evidence import records_of
from arise.ports import Assessor, Engine, Guidance
from arise.rollouts.collect import Collector
from arise.state import State
from arise.store import IterationRecord, RunStore
from arise.types import Example, Group, LossSpec, OptimSpec, Pool, StepStats


class Watch(Protocol):
    """Sees the run pass by: times its parts, shows it, mirrors it; can never change it."""

    def part(self, name: str) -> None: ...
    def finished(self, record: IterationRecord) -> None: ...
    def metrics(self, groups: Sequence[Group], update: StepStats, state: State) -> dict[str, float]: ...


@dataclass(frozen=True)
class Run:
    """The parts of one run, as `build` chose them."""

    config: Config
    engine: Engine
    guidance: Guidance
    rollouts: Collector
    assessor: Assessor | None
    credit: CreditRule
    evolution: Reflection | None
    store: RunStore
    watch: Watch

    @property
    def loss(self) -> LossSpec:
        return LossSpec(self.config.loss.min_ratio, self.config.loss.max_ratio, self.config.loss.dual_clip)

    @property
    def optim(self) -> OptimSpec:
        o = self.config.optimizer
        return OptimSpec(o.learning_rate, o.warmup_updates, (o.beta1, o.beta2), o.weight_decay, o.max_grad_norm)


async def train(run: Run, state: State) -> Engine:
    """Algorithm 1. The numbers on the right are the paper's lines."""
    train, pool_limits = run.config.train, run.config.pool
    while state.iteration < train.iterations:  # 3
        k, pool = state.iteration, state.pool
        run.watch.part("sampler")
        draws = state.sampler.draw(train.tasks_per_iteration, run.engine.version)  # 4-5: Eqs. 11-14
        run.watch.part("rollouts")
        shown = [run.guidance.shown(pool, k, draw.task_id, train.group_size) for draw in draws]
        pending = run.rollouts.collect(k, draws, shown)  # 6-7: G each, verified
        groups = await assess(run.assessor, pending, pool)  # 8-12: diagnostics only while the pool is empty
        run.watch.part("method")
        state.add_evidence(k, groups, run.config.evidence.window)  # 13: B_k
        advantages = [run.credit(group, pool) for group in groups]  # 14: Eqs. 15-17
        batch = [
            Example(rollout.trajectory.rows, float(advantage))
            for group, parts in zip(groups, advantages, strict=True)
            if parts is not None
            for rollout, advantage in zip(group.rollouts, parts.combined_J, strict=True)
        ]
        run.watch.part("update")
        update = await run.engine.train_step(batch, run.loss, run.optim)  # 15: Eqs. 18-19
        await run.engine.publish()
        run.watch.part("method")
        state.sampler.observe(groups, pool, run.engine.version)  # 16: Eqs. 9-10, 20
        evolved: Update | None = None  # 17
        if run.evolution and (k + 1) % pool_limits.update_every == 0:  # 18
            evolved = await run.evolution.update(state, k + 1)  # 19-25
            state.pool = evolved.evolution.pool
            state.sampler.keep_only(state.pool)  # 26
        state.iteration = k + 1
        run.watch.part("store")
        checkpoint = await save_policy(run, state.iteration)
        metrics = run.watch.metrics(groups, update, state)
        evidence = records_of(k, groups)
        record = IterationRecord(
            k, draws, groups, advantages, evidence, pool, evolved, metrics, state.to_dict(), checkpoint
        )
        run.store.commit(record, run.config.storage.keep_checkpoints, run.config.storage.keep_every)
        run.watch.finished(record)
    return run.engine  # 29


async def assess(assessor: Assessor | None, pending: Sequence[asyncio.Task[Group]], pool: Pool) -> list[Group]:
    """Alg. 1, lines 8-12 — judge each group as soon as it is rolled out, while others still run."""

    async def judged(task: asyncio.Task[Group]) -> Group:
        group = await task
        return await assessor.assess(group, pool) if assessor else group

    try:
        async with asyncio.TaskGroup() as assessments:  # a stop ends the rollouts too, before their sandboxes go
            tasks = [assessments.create_task(judged(task)) for task in pending]
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]


async def save_policy(run: Run, iteration: int) -> str | None:
    """Write the policy's full state where the schedule asks for it; gives its name below the run folder."""
    last = iteration == run.config.train.iterations
    if iteration % run.config.storage.checkpoint_every and not last:
        return None
    name = f"checkpoints/k{iteration:05d}"
    with run.store.writing():
        await run.engine.save_state(run.store.folder / name)
    return name
