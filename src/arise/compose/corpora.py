"""The training and held-out tasks of a configuration. Part of the composition root."""

from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from itertools import islice
from pathlib import Path

from arise.compose.sandboxes import capabilities_of
from arise.config import Config, HarborTasks
from arise.errors import AriseError, Exit
from arise.rollouts.cheats import require_unforgeable
from arise.rollouts.oracle import TrialPools
from arise.tasks import CorpusError, load_corpus, refused, without
from arise.tasks.overlap import find_overlap, text_of
from arise.types import Place, SandboxCapabilities, TaskSpec
from arise.world.generator import instances, write_task

Corpus = dict[str, TaskSpec]
MIN_FOR_WORDS = 50
"""With fewer tasks no word is rare, and paraphrases cannot be distinguished from similar tasks."""
Offers = Callable[[Place], SandboxCapabilities]


def require_tasks(config: Config) -> None:
    """Raise if tasks cannot be loaded or generated."""
    if isinstance(config.tasks, HarborTasks):
        require_no_overlap(config.tasks, *_own_tasks(config.tasks, capabilities_of(config)))
        return
    try:
        for split in ("train", "eval"):
            next(instances(config.tasks, split))
    except ValueError as error:
        raise AriseError(
            "config", Exit.CONFIG, str(error), "nothing was started", "fix tasks.mix or tasks.held_out"
        ) from None


def instructions(config: Config) -> dict[str, str]:
    """Return instructions by task id without a run; for the embedded world, only one sample per split."""
    if isinstance(config.tasks, HarborTasks):
        train, held_out = _own_tasks(config.tasks, capabilities_of(config))
        return {task_id: task.task.instruction for task_id, task in (train | held_out).items()}
    found = (next(instances(config.tasks, split))[0] for split in ("train", "eval"))
    return {task.id: task.instruction for task in found}


@asynccontextmanager
async def unforgeable(config: Config, pools: TrialPools) -> AsyncIterator[None]:
    """Raise if the reward of a custom task can be forged by an attempt and the configuration requires this check."""
    if isinstance(config.tasks, HarborTasks):
        train, held_out = _own_tasks(config.tasks, capabilities_of(config))
        await require_unforgeable(config.tasks, (*train.values(), *held_out.values()), pools)
    yield


def tasks_of(config: Config, folder: Path) -> tuple[Corpus, Corpus]:
    """Return training and held-out tasks; tasks of the embedded world are written to `folder`."""
    if isinstance(config.tasks, HarborTasks):
        return _own_tasks(config.tasks, capabilities_of(config))
    sizes = {"train": config.tasks.train_tasks, "eval": config.tasks.eval_tasks}
    for split, size in sizes.items():
        if not (folder / split / ".complete").exists():
            for task, instance in islice(instances(config.tasks, split), size):
                write_task(task, instance, folder / split)
            (folder / split / ".complete").touch()
    return _corpora(folder / "train", folder / "eval", capabilities_of(config))


def _own_tasks(tasks: HarborTasks, offered: Offers) -> tuple[Corpus, Corpus]:
    return _corpora(Path(tasks.train), Path(tasks.evaluation), offered, tasks.ignore)


def require_no_overlap(tasks: HarborTasks, train: Corpus, held_out: Corpus) -> None:
    """Raise if training tasks repeat held-out ones that are not in `tasks.allow_overlap`."""
    ours, theirs = ([text_of(task) for task in corpus.values()] for corpus in (train, held_out))
    found = [match for match in find_overlap(ours, theirs) if match.held_out not in tasks.allow_overlap]
    found = [match for match in found if match.kind != "paraphrased" or len(train) + len(held_out) >= MIN_FOR_WORDS]
    if found:
        listed = "\n".join(f"{m.train} repeats {m.held_out} ({m.kind}, {m.score:.2f})" for m in found[:20])
        raise AriseError(
            "tasks",
            Exit.TASKS,
            f"{len(found)} training tasks repeat held-out ones:\n{listed}",
            "nothing was started: the evaluation would measure what was trained on",
            "remove them (`arise tasks overlap TRAIN EVAL` lists all), or name the held-out ids in tasks.allow_overlap",
        )


def _corpora(train: Path, evaluation: Path, offered: Offers, ignore: Collection[str] = ()) -> tuple[Corpus, Corpus]:
    try:
        trained, held_out = (_corpus(source, offered, ignore) for source in (train, evaluation))
    except CorpusError as error:
        raise AriseError("tasks", Exit.TASKS, str(error), "nothing was started", "fix or remove these tasks") from None
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


def _corpus(source: Path, offered: Offers, ignore: Collection[str]) -> Corpus:
    """Return the tasks of a folder by id; raise if a task needs something that the sandboxes do not offer."""
    tasks = [without(task, ignore) for task in load_corpus(source)]
    if problems := [problem for task in tasks for problem in refused(task, offered(task.environment), ignore)]:
        raise CorpusError(problems)
    return {task.task.id: task for task in tasks}
