"""`arise eval --suite`: evaluate a policy on a benchmark or a folder of tasks. Part of the composition root."""

import asyncio
from collections.abc import Callable, Collection
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from arise.compose import terminus
from arise.compose.evaluations import PolicyChoice, candidate
from arise.compose.sandboxes import capabilities_of
from arise.config import Config
from arise.config.agent import HarnessAgentConfig
from arise.errors import AriseError, Exit
from arise.evaluation.suite import SuiteScore, score_trials
from arise.harbor.pool import harbor_capabilities
from arise.harnesses.spec import names
from arise.native.build import cache_folder
from arise.observe.waits import bars
from arise.report.exports.harbor_job import Job, now
from arise.rollouts.collect import AGENT_SECONDS, Collector
from arise.run.configuration import run_config
from arise.run.folder import RunLock
from arise.run.store import RunStore
from arise.tasks import read_corpus, refused, without
from arise.types import TaskSpec

ATTEMPTS = 3
AT_ONCE = 8
HARBOR_TRIALS = replace(harbor_capabilities(), steps=True)
KNOWN = {"skillsbench": ("SkillsBench v1.1", 87), "terminal-bench": ("Terminal-Bench v2.1", 89)}
"""Suites by name: title and number of tasks that the paper evaluates."""


@dataclass(frozen=True)
class SuiteWanted:
    """Suite, label and number of attempts; `ignore` as in `tasks.ignore`."""

    suite: str
    label: str
    attempts: int = ATTEMPTS
    tasks: int | None = None
    ignore: tuple[str, ...] = ()
    agent: str = ""
    """A harness or `terminus-2`; "" uses the agent of the run."""
    environment: str = ""
    """With `terminus-2`: the environment of Harbor."""


def suite_folder(name: str) -> Path:
    """Return the path of a suite: the given folder or list, or the cache folder of a known suite."""
    if name not in KNOWN:
        return Path(name)
    folder = cache_folder() / "suites" / name
    if not folder.is_dir():
        raise AriseError(
            "tasks",
            Exit.TASKS,
            f"the tasks of {KNOWN[name][0]} are not at {folder}",
            "nothing was tried",
            "clone the benchmark and link its folder of tasks there, or name that folder with --suite",
        )
    return folder


def suite_tasks(
    name: str, config: Config, ignore: Collection[str], write: Callable[[str], None], agent: str = ""
) -> list[TaskSpec]:
    """Return every task of a suite; raise if any of them cannot be read or run."""
    corpus = read_corpus(suite_folder(name))
    tasks = [without(task, ignore) for task in corpus.tasks]
    offered = capabilities_of(config) if agent != terminus.NAME else lambda _: HARBOR_TRIALS
    unmet = [problem for task in tasks for problem in refused(task, offered(task.environment), ignore)]
    if problems := [*corpus.problems, *unmet]:
        listed = "\n".join(map(str, problems))
        remedy = "fix these tasks; --ignore names requirements that they can do without"
        raise AriseError("tasks", Exit.TASKS, listed, "nothing was tried", remedy)
    if name in KNOWN and len(tasks) != KNOWN[name][1]:
        write(f"{KNOWN[name][0]} has {KNOWN[name][1]} tasks, this folder has {len(tasks)}: the score is not comparable")
    return tasks


def with_agent(config: Config, wanted: SuiteWanted) -> Config:
    """Return the configuration with the harness of the evaluation, and the paper's time for an attempt."""
    if wanted.environment and wanted.agent != terminus.NAME:
        raise _unusable("--environment names an environment of Harbor", f"give --agent {terminus.NAME} too")
    if wanted.agent in ("", terminus.NAME):
        return config
    if wanted.agent not in names():
        known = ", ".join((*names(), terminus.NAME))
        raise _unusable(f"there is no agent {wanted.agent!r}", f"name one of: {known}")
    chosen = HarnessAgentConfig.model_validate({"kind": wanted.agent, "attempt_seconds": AGENT_SECONDS})
    return config.model_copy(update={"agent": chosen})


def _unusable(what: str, remedy: str) -> AriseError:
    return AriseError("config", Exit.CONFIG, what, "nothing was tried", remedy)


def evaluate_suite(
    folder: Path, lock: RunLock, policy: PolicyChoice, wanted: SuiteWanted, write: Callable[[str], None]
) -> SuiteScore:
    """Run every task of a suite and store each attempt in the job folder; a second call continues from there."""

    async def whole(config: Config, store: RunStore, tasks: list[TaskSpec]) -> SuiteScore:
        model = policy.endpoint.model if policy.endpoint else str(getattr(config.model, "name", config.model.kind))
        agent = wanted.agent or "arise"
        job = Job(store.folder / "jobs" / wanted.label, wanted.label, model, wanted.attempts, agent)
        job.start(wanted.suite, len(tasks))
        if wanted.agent == terminus.NAME:
            named = wanted.environment
            trials = await terminus.run_trials(store.folder, config, policy, job, tasks, named, AT_ONCE)
        else:
            async with candidate(config, store, policy) as found:
                trials = await _trials(job, found.evaluator.collector, tasks)
        score = score_trials(wanted.label, trials)
        job.end(score.facts())
        return score

    with bars(write), closing(RunStore.open(folder, lock)) as store:
        config = with_agent(run_config(folder, store)[0], wanted)
        tasks = suite_tasks(wanted.suite, config, wanted.ignore, write, wanted.agent)[: wanted.tasks]
        return asyncio.run(whole(config, store, tasks))


async def _trials(job: Job, collector: Collector, tasks: list[TaskSpec]) -> list[dict[str, Any]]:
    slots = asyncio.Semaphore(AT_ONCE)
    known = replace(collector, tasks={task.task.id: task for task in tasks})

    async def trial(task: TaskSpec, number: int) -> dict[str, Any]:
        async with slots:
            done = job.finished(task, number)
            if done is not None:
                return done
            started = now()
            rollout = await known.attempt(task, (), f"suite/{job.label}/{task.task.id}/{number}")
            return job.save(task, number, rollout, started)

    return await asyncio.gather(*(trial(task, number) for task in tasks for number in range(job.attempts)))
