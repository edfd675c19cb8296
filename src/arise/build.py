"""The composition root: the only file that names concrete classes, from a configuration to a run ready to start."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np

from arise.baselines.online_rubrics import OnlineRubrics
from arise.baselines.response import response_credit
from arise.baselines.ruscarl import BarePromptRows, ScaffoldedGuidance
from arise.baselines.uniform import Uniform
from arise.baselines.vade import Vade
from arise.coevolution import Reflection
from arise.config import (
    CapabilitySampling,
    Config,
    HarborTasks,
    VadeSampling,
    WorldTasks,
)
from arise.config_baselines import ElicitedCriteria, ResponseCredit, Scaffold
from arise.display import Display
from arise.engines.chat import ChatFormat
from arise.errors import AriseError, Exit
from arise.evaluation.attempts import Exam
from arise.evaluation.rubrics import every_pair
from arise.evaluation.score import Evaluation, stored_evaluation
from arise.judging import Judging, judging
from arise.lifecycle_file import starting_pool
from arise.method.credit import CreditRule, separate_credit
from arise.method.sampler import CapabilitySampler
from arise.models.agent import endpoint_agent
from arise.policies import build_engine, starting_model
from arise.ports import Assessor, Engine, Guidance, Sampler
from arise.references import ReferenceAttempts, ScriptedWorker
from arise.rollouts.assessment import EachRollout, WithWatch
from arise.rollouts.collect import Agent, Collector, TaskFiles
from arise.rollouts.discretion import Discreet
from arise.rollouts.shell_agent import ShellAgent
from arise.rollouts.showing import ActiveSkills
from arise.rollouts.verifier import Verifier
from arise.sandbox import BubblewrapPool, SandboxUnavailable
from arise.state import State
from arise.store import RunStore
from arise.tasks import BUILD_FILES, CorpusError, load_corpus
from arise.trackers import mirrors
from arise.train import Run
from arise.trust import Trust
from arise.types import Pool, Task
from arise.watching import Watching
from arise.world.generator import instances, write_task

Corpus = dict[str, tuple[Task, TaskFiles]]


@dataclass(frozen=True)
class Workplace:
    """A run with everything around it: where it stands, and the examination of its policy on held-out tasks."""

    run: Run
    state: State
    exam: Exam

    async def evaluate(self, label: str, attempts: int | None = None) -> Evaluation:
        """Held-out attempts with the current policy, without any evolved skill, judged by every rubric so far."""
        return await self._exam(attempts).take(label, self.state.iteration)

    async def judge_again(self, label: str) -> Evaluation:
        """An earlier evaluation judged by the rubrics that have come since."""
        return await self._exam().judge_again(label)

    def stored_evaluation(self, label: str, attempts: int | None = None) -> Evaluation | None:
        """An evaluation that is already in the store, whole."""
        return stored_evaluation(label, self.run.store.query, len(self.exam.tasks) * (attempts or self.exam.attempts))

    def _exam(self, attempts: int | None = None) -> Exam:
        return replace(self.exam, attempts=attempts or self.exam.attempts, rubrics=every_pair(self.run.store.query))


def require_sound(config: Config) -> None:
    """Refuse, before anything is written, what would only come to light when the parts are built."""
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


@asynccontextmanager
async def shelter(config: Config) -> AsyncIterator[tuple[BubblewrapPool, Verifier]]:
    """Sandboxes for as many attempts as run together, and the verifier's own."""
    batches = 1 + config.train.max_staleness
    ready = min(32, batches * config.train.tasks_per_iteration * config.train.group_size)
    try:
        async with BubblewrapPool(ready) as sandboxes, Verifier(min(8, ready)) as verifier:
            yield sandboxes, verifier
    except SandboxUnavailable as error:
        raise AriseError("sandbox", Exit.ENGINE, str(error), "nothing was run", "see the line above") from None


@asynccontextmanager
async def workplace(config: Config, store: RunStore, display: Display) -> AsyncIterator[Workplace]:
    """Build every part, continue from the store's last commit if there is one, and take it all down at the end."""
    train_tasks, held_out = tasks_of(config, store.folder / "tasks")
    async with shelter(config) as (sandboxes, verifier):
        loaded = await starting_model(config, sandboxes, display.tell)
        engine, chat = build_engine(config, loaded), ChatFormat(loaded.tokenizer)
        _note_the_start(store, engine.facts(), display.tell)
        try:
            tasks, seed = train_tasks | held_out, config.train.seed
            agent = discreet(config, _agent(config, engine, chat), display.tell)
            collector = Collector(agent, sandboxes, verifier, tasks, store, seed, tuple(BUILD_FILES))
            async with (
                judging(config, store.folder, display.tell) as judges,
                _assessor(config, judges, collector, store.folder) as assessor,
            ):
                state = State(_sampler(config, [task for task, _ in train_tasks.values()]))
                await _continue(config, state, store, engine, display.tell)
                with mirrors(config, store.folder, display.tell) as mirrored:
                    run = Run(
                        config,
                        engine,
                        _guidance(config),
                        collector,
                        assessor,
                        _credit(config),
                        _evolution(config, judges),
                        store,
                        Watching(display, store, mirrored),
                    )
                    display.trust = Trust(config, store, state.iteration, judges.purse, judges.meter)
                    examined = replace(
                        collector, agent=discreet(config, evaluation_agent(config, engine, chat), display.tell)
                    )
                    attempts = config.evaluation.attempts
                    exam = Exam(examined, list(held_out.values()), attempts, store, judges.judge, Pool())
                    yield Workplace(run, state, exam)
        finally:
            engine.close()


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


def tasks_of(config: Config, folder: Path) -> tuple[Corpus, Corpus]:
    """Training and held-out tasks; tasks of the world are written into the run folder."""
    if isinstance(config.tasks, WorldTasks):
        sizes = {"train": config.tasks.train_tasks, "eval": config.tasks.eval_tasks}
        for split, size in sizes.items():
            if not (folder / split / ".complete").exists():
                for task, instance in islice(instances(config.tasks, split), size):
                    write_task(task, instance, folder / split)
                (folder / split / ".complete").touch()
        sources = folder / "train", folder / "eval"
    else:
        assert isinstance(config.tasks, HarborTasks)
        sources = Path(config.tasks.train), Path(config.tasks.evaluation)
    try:
        train, held_out = (_corpus(source) for source in sources)
    except CorpusError as error:
        raise AriseError("tasks", Exit.TASKS, str(error), "nothing was started", "mend or remove these tasks") from None
    both = sorted(train.keys() & held_out.keys())
    if both:
        raise AriseError(
            "tasks",
            Exit.TASKS,
            f"task {both[0]!r} and {len(both) - 1} others are in training and in evaluation",
            "nothing was started",
            "keep the two sets apart",
        )
    return train, held_out


def _corpus(source: Path) -> Corpus:
    found = {}
    for directory in load_corpus(source):
        environment = directory.environment or directory.directory
        found[directory.task.id] = directory.task, TaskFiles(environment, directory.tests, directory.verifier_timeout)
    return found


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
        return BarePromptRows(agent, engine, chat)
    return agent


def discreet(config: Config, agent: Agent, tell: Callable[[str], None]) -> Agent:
    """The agent as it may be stored: keys that it came across are redacted, unless they are to be kept."""
    return Discreet(agent, config.storage.secrets == "keep", tell)


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


@asynccontextmanager
async def _assessor(
    config: Config, judges: Judging, collector: Collector, folder: Path
) -> AsyncIterator[Assessor | None]:
    """Who judges the groups: nobody, the judge alone, or the judge by criteria elicited with the reflector's help."""
    chosen = config.criteria
    if judges.judge is None or judges.reflector is None:
        yield None
    elif not isinstance(chosen, ElicitedCriteria):
        every = EachRollout(judges.judge)
        yield WithWatch(every, judges.judge, config.watch.share, config.train.seed) if config.watch.share else every
    else:
        async with _reference_agent(config, chosen, folder) as agent:
            references = ReferenceAttempts(replace(collector, agent=agent), chosen.references)
            yield OnlineRubrics(judges.judge, judges.reflector, references, chosen)


@asynccontextmanager
async def _reference_agent(config: Config, chosen: ElicitedCriteria, folder: Path) -> AsyncIterator[Agent]:
    if chosen.endpoint is not None:
        async with endpoint_agent(chosen.endpoint, config.agent, config.budget, folder / "reference-calls.db") as agent:
            yield agent
    else:
        assert isinstance(config.tasks, WorldTasks), "require_sound has seen to it"
        yield ScriptedWorker(config.tasks, config.agent)


def _evolution(config: Config, judges: Judging) -> Reflection | None:
    if judges.reflector is None or not config.pool.evolves:
        return None
    shown = isinstance(config.guidance, Scaffold) or config.guidance.share > 0
    return Reflection(judges.reflector, config.pool, config.evidence, config.train.seed, shown, config.watch)
