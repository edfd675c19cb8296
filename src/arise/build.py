"""The composition root: the only file that names concrete classes, from a configuration to a run ready to start."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from arise.baselines.uniform import Uniform
from arise.baselines.vade import Vade
from arise.coevolution import Reflection
from arise.config import CapabilitySampling, Config, HarborTasks, VadeSampling, WorldTasks
from arise.display import Display
from arise.engines.chat import ChatFormat
from arise.errors import AriseError, Exit
from arise.evaluation.attempts import Evaluation, evaluate, stored_evaluation
from arise.judging import Judging, judging
from arise.method.sampler import CapabilitySampler
from arise.policies import build_engine, starting_model
from arise.ports import Engine, Judge, Sampler
from arise.rollouts.collect import Collector, TaskFiles
from arise.rollouts.shell_agent import ShellAgent
from arise.rollouts.verifier import Verifier
from arise.sandbox import BubblewrapPool, SandboxUnavailable
from arise.state import State
from arise.store import RunStore
from arise.tasks import BUILD_FILES, CorpusError, load_corpus
from arise.train import Run
from arise.trust import Trust
from arise.types import Pool, Task
from arise.world.generator import instances, write_task

Corpus = dict[str, tuple[Task, TaskFiles]]


@dataclass(frozen=True)
class Workplace:
    """A run with everything around it: where it stands, and the held-out tasks."""

    run: Run
    state: State
    held_out: Corpus
    judge: Judge | None

    async def evaluate(self, label: str, pool: Pool | None = None) -> Evaluation:
        """Held-out attempts with the current policy, without any evolved skill."""
        texts = [row[0] for row in self.run.store.query("SELECT text FROM skills")]
        return await evaluate(
            label,
            self.state.iteration,
            self.run.rollouts,
            list(self.held_out.values()),
            self.run.config.evaluation.attempts,
            self.run.store,
            self.judge,
            pool,
            texts,
        )

    def stored_evaluation(self, label: str) -> Evaluation | None:
        """An evaluation that is already in the store, whole."""
        return stored_evaluation(label, self.run.store, len(self.held_out) * self.run.config.evaluation.attempts)


@asynccontextmanager
async def workplace(config: Config, store: RunStore, display: Display) -> AsyncIterator[Workplace]:
    """Build every part, continue from the store's last commit if there is one, and take it all down at the end."""
    train_tasks, held_out = _tasks(config, store.folder / "tasks")
    together = config.train.tasks_per_iteration * config.train.group_size
    ready = min(32, together)
    try:
        async with BubblewrapPool(ready) as sandboxes, Verifier(min(8, ready)) as verifier:
            loaded = await starting_model(config, sandboxes, display.tell)
            engine = build_engine(config, loaded)
            try:
                agent = ShellAgent(engine, ChatFormat(loaded.tokenizer), config.agent, config.sampling)
                collector = Collector(
                    agent, sandboxes, verifier, train_tasks | held_out, store, config.train.seed, tuple(BUILD_FILES)
                )
                async with judging(config, store.folder, display.tell) as judges:
                    state = State(_sampler(config, [task for task, _ in train_tasks.values()]))
                    await _continue(state, store, engine)
                    run = Run(config, engine, collector, judges.judge, _evolution(config, judges), store, display)
                    display.trust = Trust(config, store, state.iteration, judges.purse, judges.meter)
                    yield Workplace(run, state, held_out, judges.judge)
            finally:
                engine.close()
    except SandboxUnavailable as error:
        raise AriseError("sandbox", Exit.ENGINE, str(error), "nothing was run", "see the line above") from None


async def _continue(state: State, store: RunStore, engine: Engine) -> None:
    """Go back to the last commit, where there is one."""
    found = store.last_checkpoint()
    if found is not None:
        saved, checkpoint = found
        state.restore(saved)
        await engine.load_state(str(store.folder / checkpoint))


def _tasks(config: Config, folder: Path) -> tuple[Corpus, Corpus]:
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


def _evolution(config: Config, judges: Judging) -> Reflection | None:
    if judges.reflector is None:
        return None
    return Reflection(judges.reflector, config.pool, config.evidence, config.train.seed, config.guidance.show_skills)
