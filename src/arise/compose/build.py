"""The composition root: build a run from a configuration. `registry.py` names the classes."""

import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from arise.baselines.online_rubrics import OnlineRubrics
from arise.coevolution import CoEvolution
from arise.compose.corpora import instructions, require_tasks, tasks_of, unforgeable
from arise.compose.harnesses import open_harness, require_harness
from arise.compose.imports import check_imports
from arise.compose.judge_policy import JudgePolicy
from arise.compose.judges import Judging
from arise.compose.parts import RunParts, prepared
from arise.compose.references import ReferenceAttempts
from arise.compose.registry import (
    base_prompt,
    evaluation_agent,
    make_credit,
    make_guidance,
    make_sampler,
    open_trackers,
    require_room,
    token_count,
    training_agent,
)
from arise.compose.sandboxes import open_sandboxes, require_limits
from arise.config import Config, WorldTasks
from arise.config.baselines import ElicitedCriteria, Scaffold
from arise.config.llm import ModelJudge
from arise.errors import AriseError, Exit
from arise.evaluation.attempts import Evaluator
from arise.evaluation.rubrics import every_pair
from arise.method.set_aside import SetAside
from arise.observe.judge_monitor import JudgeMonitor
from arise.observe.observers import Observers
from arise.observe.terminal import Display
from arise.ports import Agent, Assessor, Engine
from arise.rollouts.assessment import EachRollout, WhileUsable, WithWatch
from arise.rollouts.collect import Collector
from arise.rollouts.discretion import RedactingAgent
from arise.rollouts.guidance import SkillLimit
from arise.rollouts.oracle import TrialPools
from arise.run.facts.score import Evaluation, stored_evaluation
from arise.run.lifecycle_file import starting_pool
from arise.run.store import RunStore
from arise.state import State
from arise.train import Run
from arise.types import Pool, Task

log = logging.getLogger(__name__)

OpenStore = Callable[[], AbstractContextManager[RunStore]]
"""Opens the run store for writing."""


@dataclass(frozen=True)
class RunContext:
    """A run with its state and the evaluator of its policy on held-out tasks."""

    run: Run
    state: State
    evaluator: Evaluator

    async def evaluate(self, label: str, attempts: int | None = None) -> Evaluation:
        """Evaluate the current policy on held-out tasks without evolved skills, judged by every rubric so far."""
        return await self._evaluator(attempts).take(label, self.state.iteration)

    async def judge_again(self, label: str) -> Evaluation:
        """Judge an earlier evaluation by the rubrics that were added since."""
        return await self._evaluator().judge_again(label)

    def stored_evaluation(self, label: str, attempts: int | None = None) -> Evaluation | None:
        """Return a complete evaluation from the store, or None."""
        return stored_evaluation(
            label, self.run.store, len(self.evaluator.tasks) * (attempts or self.evaluator.attempts)
        )

    def _evaluator(self, attempts: int | None = None) -> Evaluator:
        return replace(self.evaluator, attempts=attempts or self.evaluator.attempts, rubrics=every_pair(self.run.store))


def require_sound(config: Config) -> None:
    """Raise if the parts cannot be built from this configuration; called before anything is written."""
    check_imports(config)
    require_limits(config)
    require_harness(config)
    if config.pool.lifecycle:
        starting_pool(Path(config.pool.lifecycle))
    scripted = isinstance(config.tasks, WorldTasks)
    if isinstance(config.criteria, ElicitedCriteria) and not (scripted or config.criteria.endpoint):
        raise AriseError(
            "config",
            Exit.CONFIG,
            "criteria.kind = 'elicited' has no agent for reference attempts on your own tasks",
            "nothing was started",
            "set criteria.endpoint.model and criteria.endpoint.base_url",
        )
    require_tasks(config)


@asynccontextmanager
async def open_run(config: Config, folder: Path, opened: OpenStore, display: Display) -> AsyncIterator[RunContext]:
    """Build every part, open the run and continue from its last commit; close everything at exit.

    Raise for an unusable part before `opened` creates the run in the folder.
    """
    async with (
        open_harness(config) as harness,
        open_sandboxes(config, folder, harness) as (sandboxes, verifier),
        unforgeable(config, TrialPools(sandboxes, verifier)),
        prepared(config, folder, sandboxes, harness) as parts,
    ):
        engine, judges, credit = parts.engine, parts.judges, make_credit(config)
        agent = redacting(config, training_agent(config, engine, harness))
        require_room(config, engine, instructions(config))
        with opened() as store:
            train_tasks, held_out = tasks_of(config, folder / "tasks")
            _note_the_start(store, engine.facts())
            store.note_limits(verifier.notes)
            tasks, seed = train_tasks | held_out, config.train.seed
            limit = SkillLimit.of(config.guidance.max_tokens, engine.capabilities().context_length, token_count(engine))
            collector = Collector(agent, sandboxes, verifier, tasks, store, seed, limit, base_prompt(config))
            state = _state(config, [task.task for task in train_tasks.values()])
            await _continue(config, state, store, engine)
            with open_trackers(config, folder) as mirrored:
                run = Run(
                    config,
                    engine,
                    make_guidance(config),
                    collector,
                    _assessor(config, parts, collector, store, state.iteration),
                    credit,
                    _evolution(config, judges),
                    store,
                    Observers(display, store, mirrored),
                )
                display.judge_monitor = JudgeMonitor(config, store, state.iteration, judges.budget, judges.meter)
                examined = replace(collector, agent=redacting(config, evaluation_agent(config, engine, harness)))
                attempts = config.evaluation.attempts
                evaluator = Evaluator(examined, list(held_out.values()), attempts, store, judges.judge, Pool())
                yield RunContext(run, state, evaluator)


def _note_the_start(store: RunStore, facts: Mapping[str, str]) -> None:
    """Record the engine facts of the run, and warn about facts that changed since its start."""
    known = store.recorded_facts()
    for name in sorted(facts.keys() - {"weights"}):
        if known.get(name, facts[name]) != facts[name]:
            change = f"{name} {known[name]} before, {facts[name]} now"
            log.warning("%s: the run continues, but not bit for bit as if it had never stopped", change)
    store.note(facts)


async def _continue(config: Config, state: State, store: RunStore, engine: Engine) -> None:
    """Restore the last commit; without one, start with the pool that the configuration names, if any."""
    found = store.last_checkpoint()
    if found is not None:
        saved, checkpoint = found
        state.restore(saved)
        try:
            await engine.load_state(str(store.folder / checkpoint))
        except ValueError as error:
            remedy = "give back the model that the run began with"
            raise AriseError("model", Exit.CONFIG, str(error), "nothing was changed", remedy) from None
    elif config.pool.lifecycle:
        state.pool = starting_pool(Path(config.pool.lifecycle))
        state.sampler.keep_only(state.pool)
        if not store.rubrics():
            store.save_starting_pool(state.pool)


def _state(config: Config, tasks: list[Task]) -> State:
    faults = SetAside(len(tasks), config.sampler.set_aside_after, config.sampler.retry_every)
    return State(make_sampler(config, tasks), set_aside=faults)


def redacting(config: Config, agent: Agent) -> Agent:
    """Wrap an agent to redact keys in its trajectories, unless `storage.secrets` is `keep`."""
    return RedactingAgent(agent, config.storage.secrets == "keep")


def _assessor(config: Config, parts: RunParts, collector: Collector, store: RunStore, start: int) -> Assessor | None:
    """Return the assessor of groups: the judge by pool rubrics or by elicited criteria; None without a judge."""
    judge, reflector, chosen = parts.judges.judge, parts.judges.reflector, config.criteria
    if judge is None:
        return None
    if isinstance(chosen, ElicitedCriteria) and reflector is not None and parts.reference is not None:
        references = ReferenceAttempts(replace(collector, agent=parts.reference), chosen.references)
        return OnlineRubrics(judge, reflector, references, chosen)
    every: Assessor = EachRollout(judge)
    if isinstance(config.judge, ModelJudge):
        every = WhileUsable(every, JudgePolicy(store, config.judge.when_unusable, config.pool.update_every, start))
    return WithWatch(every, judge, config.watch.share, config.train.seed) if config.watch.share else every


def _evolution(config: Config, judges: Judging) -> CoEvolution | None:
    if judges.reflector is None or not config.pool.evolves:
        return None
    shown = isinstance(config.guidance, Scaffold) or config.guidance.share > 0
    return CoEvolution(judges.reflector, config.pool, config.evidence, config.train.seed, shown, config.watch)
