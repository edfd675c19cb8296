"""The training and held-out tasks of a configuration. Part of the composition root."""

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from itertools import islice
from pathlib import Path

from arise.compose.sandboxes import capabilities_of
from arise.config import Config, HarborTasks
from arise.errors import AriseError, Exit
from arise.rollouts.cheats import require_unforgeable
from arise.rollouts.oracle import TrialPools
from arise.tasks import CorpusError, load_corpus, refused
from arise.types import SandboxCapabilities, TaskSpec
from arise.world.generator import instances, write_task

Corpus = dict[str, TaskSpec]


def require_tasks(config: Config) -> None:
    """Refuse tasks that cannot be loaded, or that the world cannot make."""
    if isinstance(config.tasks, HarborTasks):
        _own_tasks(config.tasks, capabilities_of(config))
        return
    try:
        for split in ("train", "eval"):
            next(instances(config.tasks, split))
    except ValueError as error:
        raise AriseError(
            "config", Exit.CONFIG, str(error), "nothing was started", "mend tasks.mix or tasks.held_out"
        ) from None


def instructions(config: Config) -> dict[str, str]:
    """Instructions by task, before a run exists; of the world's tasks, which are alike, the first ones."""
    if isinstance(config.tasks, HarborTasks):
        train, held_out = _own_tasks(config.tasks, capabilities_of(config))
        return {task_id: task.task.instruction for task_id, task in (train | held_out).items()}
    found = (next(instances(config.tasks, split))[0] for split in ("train", "eval"))
    return {task.id: task.instruction for task in found}


@asynccontextmanager
async def unforgeable(config: Config, pools: TrialPools) -> AsyncIterator[None]:
    """Refuse tasks of your own whose reward an attempt can write itself, if the configuration asks for it."""
    if isinstance(config.tasks, HarborTasks):
        train, held_out = _own_tasks(config.tasks, pools.sandboxes.capabilities)
        await require_unforgeable(config.tasks, (*train.values(), *held_out.values()), pools)
    yield


def tasks_of(config: Config, folder: Path) -> tuple[Corpus, Corpus]:
    """Training and held-out tasks; tasks of the world are written into the run folder."""
    if isinstance(config.tasks, HarborTasks):
        return _own_tasks(config.tasks, capabilities_of(config))
    sizes = {"train": config.tasks.train_tasks, "eval": config.tasks.eval_tasks}
    for split, size in sizes.items():
        if not (folder / split / ".complete").exists():
            for task, instance in islice(instances(config.tasks, split), size):
                write_task(task, instance, folder / split)
            (folder / split / ".complete").touch()
    return _corpora(folder / "train", folder / "eval", capabilities_of(config))


def _own_tasks(tasks: HarborTasks, offered: SandboxCapabilities) -> tuple[Corpus, Corpus]:
    return _corpora(Path(tasks.train), Path(tasks.evaluation), offered, tasks.ignore)


def _corpora(
    train: Path, evaluation: Path, offered: SandboxCapabilities, ignore: Collection[str] = ()
) -> tuple[Corpus, Corpus]:
    try:
        trained, held_out = (_corpus(source, offered, ignore) for source in (train, evaluation))
    except CorpusError as error:
        raise AriseError("tasks", Exit.TASKS, str(error), "nothing was started", "mend or remove these tasks") from None
    both = sorted(trained.keys() & held_out.keys())
    if both:
        raise AriseError(
            "tasks",
            Exit.TASKS,
            f"task {both[0]!r} and {len(both) - 1} others are in training and in evaluation",
            "nothing was started",
            "keep the two sets apart",
        )
    return trained, held_out


def _corpus(source: Path, offered: SandboxCapabilities, ignore: Collection[str]) -> Corpus:
    """The tasks of a folder by id; one that asks for what the sandboxes do not offer is refused."""
    tasks = load_corpus(source)
    if problems := [problem for task in tasks for problem in refused(task, offered, ignore)]:
        raise CorpusError(problems)
    return {task.task.id: task for task in tasks}
