"""The composition root: the only file that names concrete classes, from a configuration to a run ready to start."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from arise.baselines.online_rubrics import OnlineRubrics
from arise.baselines.response import response_credit
from arise.baselines.ruscarl import BarePromptRows, ScaffoldedGuidance
from arise.baselines.uniform import Uniform
from arise.baselines.vade import Vade
from arise.coevolution import CoEvolution
from arise.compose.corpora import require_tasks, tasks_of, unforgeable
from arise.compose.judges import Judging
from arise.compose.parts import Parts, prepared
from arise.compose.references import ReferenceAttempts
from arise.compose.sandboxes import open_sandboxes, require_limits
from arise.config import Config, WorldTasks
from arise.config.baselines import ElicitedCriteria, ResponseCredit, Scaffold
from arise.config.sampler import CapabilitySampling, VadeSampling
from arise.engines.chat import ChatFormat
from arise.errors import AriseError, Exit
from arise.evaluation.attempts import Evaluator
from arise.evaluation.rubrics import every_pair
from arise.evaluation.score import Evaluation, stored_evaluation
from arise.method.credit import CreditRule, separate_credit
from arise.method.sampler import CapabilitySampler
from arise.method.set_aside import SetAside
from arise.observe.terminal import Display
from arise.observe.trackers import mirrors
from arise.observe.trust import Trust
from arise.observe.watches import Observers
from arise.ports import Agent, Assessor, Engine, Guidance, Sampler
from arise.rollouts.assessment import EachRollout, WithWatch
from arise.rollouts.collect import Collector
from arise.rollouts.discretion import RedactingAgent
from arise.rollouts.guidance import SkillLimit
from arise.rollouts.oracle import TrialPools
from arise.rollouts.shell_agent import ShellAgent
from arise.rollouts.showing import ActiveSkills
from arise.run.lifecycle_file import starting_pool
from arise.run.store import RunStore
from arise.state import State
from arise.train import Run
from arise.types import Pool, Task

OpenStore = Callable[[], AbstractContextManager[RunStore]]
"""Opens the run for as long as it is written to."""


@dataclass(frozen=True)
class RunContext:
    """A run with everything around it: where it stands, and the examination of its policy on held-out tasks."""

    run: Run
    state: State
    evaluator: Evaluator

    async def evaluate(self, label: str, attempts: int | None = None) -> Evaluation:
        """Held-out attempts with the current policy, without any evolved skill, judged by every rubric so far."""
        return await self._evaluator(attempts).take(label, self.state.iteration)

    async def judge_again(self, label: str) -> Evaluation:
        """An earlier evaluation judged by the rubrics that have come since."""
        return await self._evaluator().judge_again(label)

    def stored_evaluation(self, label: str, attempts: int | None = None) -> Evaluation | None:
        """An evaluation that is already in the store, whole."""
        return stored_evaluation(
            label, self.run.store.query, len(self.evaluator.tasks) * (attempts or self.evaluator.attempts)
        )

    def _evaluator(self, attempts: int | None = None) -> Evaluator:
        return replace(
            self.evaluator, attempts=attempts or self.evaluator.attempts, rubrics=every_pair(self.run.store.query)
        )


def require_sound(config: Config) -> None:
    """Refuse, before anything is written, what would only come to light when the parts are built."""
    require_limits(config)
    if config.pool.lifecycle:
        starting_pool(Path(config.pool.lifecycle))
    scripted = isinstance(config.tasks, WorldTasks)
    if isinstance(config.criteria, ElicitedCriteria) and not (scripted or config.criteria.endpoint):
        raise AriseError(
            "config",
            Exit.CONFIG,
            "criteria.kind = 'elicited' has nobody to make reference attempts at tasks of your own",
            "nothing was started",
            "set criteria.endpoint.model and criteria.endpoint.base_url",
        )
    require_tasks(config)


@asynccontextmanager
async def open_run(config: Config, folder: Path, opened: OpenStore, display: Display) -> AsyncIterator[RunContext]:
    """Build every part, then open the run and continue from its last commit; take it all down at the end.

    A part that cannot be had is refused before `opened` makes a run of the folder.
    """
    async with (
        open_sandboxes(config, folder, display.tell) as (sandboxes, verifier),
        unforgeable(config, TrialPools(sandboxes, verifier)),
        prepared(config, folder, sandboxes, display.tell) as parts,
    ):
        with opened() as store:
            train_tasks, held_out = tasks_of(config, folder / "tasks")
            engine, chat, judges = parts.engine, parts.chat, parts.judges
            _note_the_start(store, engine.facts(), display.tell)
            store.note_limits(verifier.notes)
            tasks, seed = train_tasks | held_out, config.train.seed
            agent = discreet(config, _agent(config, engine, chat), display.tell)
            limit = SkillLimit.of(config.guidance.max_tokens, engine.capabilities().context_length, chat.count)
            collector = Collector(agent, sandboxes, verifier, tasks, store, seed, limit)
            state = _state(config, [task.task for task in train_tasks.values()])
            await _continue(config, state, store, engine, display.tell)
            with mirrors(config, folder, display.tell) as mirrored:
                run = Run(
                    config,
                    engine,
                    _guidance(config),
                    collector,
                    _assessor(config, parts, collector),
                    _credit(config),
                    _evolution(config, judges),
                    store,
                    Observers(display, store, mirrored),
                )
                display.trust = Trust(config, store, state.iteration, judges.budget, judges.meter)
                tested = discreet(config, evaluation_agent(config, engine, chat), display.tell)
                examined = replace(collector, agent=tested)
                attempts = config.evaluation.attempts
                evaluator = Evaluator(examined, list(held_out.values()), attempts, store, judges.judge, Pool())
                yield RunContext(run, state, evaluator)


def _note_the_start(store: RunStore, facts: Mapping[str, str], tell: Callable[[str], None]) -> None:
    """Keep what the run began with, and say where its arithmetic now differs from that."""
    known = dict(store.query("SELECT key, value FROM meta"))
    for name in ("threads", "torch"):
        if known.get(name, facts[name]) != facts[name]:
            change = f"{name} {known[name]} before, {facts[name]} now"
            tell(f"{change}: the run goes on, but not bit for bit as if it had never stopped")
    store.note(facts)


async def _continue(config: Config, state: State, store: RunStore, engine: Engine, tell: Callable[[str], None]) -> None:
    """Go back to the last commit; where there is none, begin with the pool that the configuration names."""
    found = store.last_checkpoint(tell)
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
        if not store.query("SELECT 1 FROM pairs LIMIT 1"):
            store.save_starting_pool(state.pool)


def _state(config: Config, tasks: list[Task]) -> State:
    faults = SetAside(len(tasks), config.sampler.set_aside_after, config.sampler.retry_every)
    return State(_sampler(config, tasks), set_aside=faults)


def _sampler(config: Config, tasks: list[Task]) -> Sampler:
    random = np.random.default_rng([config.train.seed, 1])
    if isinstance(config.sampler, CapabilitySampling):
        return CapabilitySampler(tasks, random, config.sampler)
    if isinstance(config.sampler, VadeSampling):
        return Vade(tasks, random, config.sampler)
    return Uniform(tasks, random)


def _agent(config: Config, engine: Engine, chat: ChatFormat) -> Agent:
    agent = ShellAgent(engine, chat, config.agent, config.sampling)
    if isinstance(config.guidance, Scaffold) and not config.guidance.trained_with:
        return BarePromptRows(agent, engine, chat, config.sampling.temperature)
    return agent


def discreet(config: Config, agent: Agent, tell: Callable[[str], None]) -> Agent:
    """The agent as it may be stored: keys that it came across are redacted, unless they are to be kept."""
    return RedactingAgent(agent, config.storage.secrets == "keep", tell)


def evaluation_agent(config: Config, engine: Engine, chat: ChatFormat) -> Agent:
    """The agent as it is evaluated: with its own sampling, its rows as they are."""
    sampling = config.sampling.model_copy(
        update={"temperature": config.evaluation.temperature, "top_p": config.evaluation.top_p}
    )
    return ShellAgent(engine, chat, config.agent, sampling)


def _guidance(config: Config) -> Guidance:
    if isinstance(config.guidance, Scaffold):
        return ScaffoldedGuidance(config.guidance, config.train.iterations, config.train.seed)
    return ActiveSkills(config.guidance.share)


def _credit(config: Config) -> CreditRule:
    if isinstance(config.credit, ResponseCredit):
        return response_credit(config.credit)
    return separate_credit(config.credit)


def _assessor(config: Config, parts: Parts, collector: Collector) -> Assessor | None:
    """Who judges the groups: nobody, the judge alone, or the judge by criteria elicited with the reflector's help."""
    judge, reflector, chosen = parts.judges.judge, parts.judges.reflector, config.criteria
    if judge is None or reflector is None:
        return None
    if isinstance(chosen, ElicitedCriteria) and parts.reference is not None:
        references = ReferenceAttempts(replace(collector, agent=parts.reference), chosen.references)
        return OnlineRubrics(judge, reflector, references, chosen)
    every = EachRollout(judge)
    return WithWatch(every, judge, config.watch.share, config.train.seed) if config.watch.share else every


def _evolution(config: Config, judges: Judging) -> CoEvolution | None:
    if judges.reflector is None or not config.pool.evolves:
        return None
    shown = isinstance(config.guidance, Scaffold) or config.guidance.share > 0
    return CoEvolution(judges.reflector, config.pool, config.evidence, config.train.seed, shown, config.watch)
