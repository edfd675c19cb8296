"""Evaluate a policy on a run's held-out tasks: one of its checkpoints, its base model, or an endpoint.

Part of the composition root; needs no training.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, closing, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from arise.compose.build import redacting
from arise.compose.corpora import Corpus, instructions, tasks_of
from arise.compose.harnesses import HarnessParts, called_limits, open_harness, remote_harness_agent
from arise.compose.judges import judging, observer
from arise.compose.registry import base_prompt, evaluation_agent, token_count
from arise.compose.sandboxes import open_sandboxes
from arise.config import Config, NoJudging, ToolAgentConfig
from arise.config.agent import HarnessConfig
from arise.config.file import load_config
from arise.config.llm import EndpointConfig, PriceConfig
from arise.errors import AriseError, Exit
from arise.evaluation.attempts import Evaluator, require_own_label
from arise.evaluation.guidance import measure, report
from arise.evaluation.retention import Retired, as_pool, away_at, curves, retired
from arise.evaluation.rubrics import every_pair
from arise.llm.agents.agent import endpoint_agent
from arise.llm.agents.tool_agent import ToolEndpointAgent
from arise.observe.waits import bars
from arise.ports import Agent, SandboxPool
from arise.rollouts.collect import Collector
from arise.rollouts.guidance import SkillLimit, guessed_tokens
from arise.run.configuration import run_config
from arise.run.facts.score import Evaluation, stored_evaluation
from arise.run.folder import CONFIG_FILE, RunLock
from arise.run.labels import of_retention
from arise.run.store import RunStore
from arise.types import Pair, Pool

Write = Callable[[str], None]


@dataclass(frozen=True)
class PolicyChoice:
    """The evaluated policy: a checkpoint by its iteration (0 is the base model), or a model behind an endpoint."""

    iteration: int = 0
    endpoint: EndpointConfig | None = None
    tools: bool = False
    """Use the tool agent with its default limits, regardless of the run's agent."""

    @property
    def label(self) -> str:
        """Return the default name of its evaluation."""
        if self.endpoint is not None:
            return re.sub(r"[^\w.-]+", "-", self.endpoint.model, flags=re.ASCII).strip(".-")[:100] or "model"
        return f"eval-k{self.iteration:05d}" if self.iteration else "base"


@dataclass(frozen=True)
class Wanted:
    """Name and size of an evaluation; None uses the configuration of the run."""

    label: str
    tasks: int | None = None
    attempts: int | None = None


@dataclass(frozen=True)
class Candidate:
    """An evaluator of a policy, by default on the held-out tasks of the run, and the training tasks."""

    evaluator: Evaluator
    train: Corpus


def evaluate(folder: Path, lock: RunLock, policy: PolicyChoice, wanted: Wanted, write: Write) -> Evaluation:
    """Evaluate a policy on held-out tasks and record the result in the run under `wanted.label`."""
    require_own_label(wanted.label)

    async def whole(config: Config, store: RunStore) -> Evaluation:
        async with candidate(config, store, policy) as found:
            tasks = found.evaluator.tasks[: wanted.tasks]
            evaluator = replace(found.evaluator, tasks=tasks, attempts=wanted.attempts or found.evaluator.attempts)
            return await evaluator.take(wanted.label, policy.iteration)

    with bars(write), closing(RunStore.open(folder, lock)) as store:
        return asyncio.run(whole(run_config(folder, store)[0], store))


def guidance(
    folder: Path, lock: RunLock, policy: PolicyChoice, wanted: Wanted, everything: bool, write: Write
) -> dict[str, Any]:
    """Measure each behaviour of the run's last pool with and without skills; `everything` includes retired ones."""

    async def whole(config: Config, store: RunStore, pairs: Sequence[Pair]) -> dict[str, Any]:
        async with candidate(config, store, policy) as found:
            evaluator = replace(
                found.evaluator,
                tasks=found.evaluator.tasks[: wanted.tasks],
                attempts=wanted.attempts or found.evaluator.attempts,
                rubrics=Pool(tuple(pairs), version=1),
            )
            return report(pairs, await measure(evaluator, pairs, wanted.label, policy.iteration))

    with bars(write), closing(RunStore.open(folder, lock)) as store:
        config, pool = run_config(folder, store)[0], store.last_pool()
        pairs = (*pool.pairs, *pool.retired) if everything else pool.pairs
        if not pairs or isinstance(config.judge, NoJudging):
            raise AriseError(
                "config",
                Exit.CONFIG,
                f"{folder}: " + ("there is no skill in its pool" if not pairs else "it was made without a judge"),
                "nothing was tried",
                "retired skills: --all" if pool.retired else "name a run with a judge and at least one pool update",
            )
        return asyncio.run(whole(config, store, pairs))


def retention(folder: Path, lock: RunLock, attempts: int, write: Write) -> list[dict[str, Any]]:
    """Judge each retired rubric on its tasks, without skills, at every later kept checkpoint until its reactivation."""

    async def measure(config: Config, store: RunStore, gone: Sequence[Retired], iteration: int) -> None:
        async with candidate(config, store, PolicyChoice(iteration)) as found:
            wanted = {task_id for item in gone for task_id in item.task_ids}
            tasks = [task for task_id, task in found.train.items() if task_id in wanted]
            evaluator = replace(found.evaluator, tasks=tasks, attempts=attempts, rubrics=as_pool(gone))
            done = stored_evaluation(of_retention(iteration), store, len(tasks) * attempts)
            write((done or await evaluator.take(of_retention(iteration), iteration)).line())

    with bars(write), closing(RunStore.open(folder, lock)) as store:
        config, _ = run_config(folder, store)
        gone = retired(store)
        for iteration in kept_iterations(folder):
            if away := away_at(gone, iteration):
                asyncio.run(measure(config, store, away, iteration))
        return curves(gone, store)


def last_iteration(folder: Path) -> int:
    """Return the newest iteration with a checkpoint, or 0 if there is none."""
    return max(kept_iterations(folder), default=0)


def endpoint_of(
    folder: Path, model: str, base_url: str, key_env: str, price: PriceConfig | None = None, tools: bool = False
) -> EndpointConfig:
    """Return the endpoint of a model to evaluate, with the sampling of the run's own evaluations."""
    config = _with_agent(load_config(folder / CONFIG_FILE), tools)
    return EndpointConfig(
        model=model,
        base_url=base_url,
        api_key_env=key_env,
        price=price,
        temperature=config.evaluation.temperature,
        top_p=config.evaluation.top_p,
        max_tokens=config.agent.max_tokens,
    )


def _with_agent(config: Config, tools: bool) -> Config:
    """Return the configuration, with the tool agent if `tools` is set and the run's agent has no tools."""
    own = isinstance(config.agent, ToolAgentConfig | HarnessConfig) or not tools
    return config if own else config.model_copy(update={"agent": ToolAgentConfig()})


def kept_iterations(folder: Path) -> list[int]:
    """Return the iterations that still have a checkpoint, oldest first."""
    return sorted(int(path.parent.name[1:]) for path in folder.glob("checkpoints/k*/manifest.json"))


def require_checkpoint(folder: Path, iteration: int) -> Path:
    """Return the checkpoint of an iteration; raise with the list of kept checkpoints if it does not exist."""
    path = folder / "checkpoints" / f"k{iteration:05d}"
    if not (path / "manifest.json").is_file():
        kept = ", ".join(map(str, kept_iterations(folder))) or "none"
        raise AriseError(
            "storage",
            Exit.STORAGE,
            f"{folder} holds no checkpoint of iteration {iteration}; kept are those of: {kept}",
            "nothing was tried",
            "name one of these, or train with --set storage.keep_every=N to keep every N-th for good",
        )
    return path


@asynccontextmanager
async def candidate(config: Config, store: RunStore, policy: PolicyChoice) -> AsyncIterator[Candidate]:
    """Open the policy with its judge and sandboxes for an evaluation, and close everything at exit.

    Endpoints are checked first, so an unusable one raises before any attempt.
    """
    config = _with_agent(config, policy.tools)
    openings = [len(base_prompt(config)) + len(text) for text in instructions(config).values()]
    async with (
        judging(config, store.folder, again=True) as judges,
        _behind_an_endpoint(config, store, policy, max(openings, default=0)) as asked,
    ):
        train_tasks, held_out = tasks_of(config, store.folder / "tasks")
        async with (
            open_harness(config) as harness,
            open_sandboxes(config, store.folder, harness) as (sandboxes, verifier),
            nullcontext(asked) if asked else _trained_here(config, store, policy, sandboxes, harness) as found,
        ):
            tasks, (agent, limit) = train_tasks | held_out, found
            if harness is not None and isinstance(agent, ToolEndpointAgent):
                agent = remote_harness_agent(harness, config, agent)
            known, seed = redacting(config, agent), config.train.seed
            collector = Collector(known, sandboxes, verifier, tasks, store, seed, limit, base_prompt(config))
            attempts = config.evaluation.attempts
            evaluator = Evaluator(collector, list(held_out.values()), attempts, store, judges.judge, every_pair(store))
            yield Candidate(evaluator, train_tasks)


@asynccontextmanager
async def _behind_an_endpoint(
    config: Config, store: RunStore, policy: PolicyChoice, opening_chars: int
) -> AsyncIterator[tuple[Agent, SkillLimit] | None]:
    """Open the endpoint agent and its skill limit, with tokens estimated from characters; None without an endpoint."""
    if policy.endpoint is None:
        yield None
        return
    limit = SkillLimit.of(config.guidance.max_tokens, policy.endpoint.context_tokens, guessed_tokens)
    record, observe = store.folder / "policy-calls.db", observer(store.folder)
    endpoint, limits = called_limits(policy.endpoint, config.agent)
    async with endpoint_agent(
        endpoint, limits, config.budget, record, observe, again=True, opening_chars=opening_chars
    ) as agent:
        yield agent, limit


@asynccontextmanager
async def _trained_here(
    config: Config, store: RunStore, policy: PolicyChoice, sandboxes: SandboxPool, harness: HarnessParts | None
) -> AsyncIterator[tuple[Agent, SkillLimit]]:
    checkpoint = require_checkpoint(store.folder, policy.iteration) if policy.iteration else None
    from arise.compose.policies import open_engine  # seconds of imports, which an endpoint does not need

    engine = await open_engine(config, sandboxes, harness)
    try:
        if checkpoint:
            await engine.load_state(str(checkpoint))
        limit = SkillLimit.of(config.guidance.max_tokens, engine.capabilities().context_length, token_count(engine))
        yield evaluation_agent(config, engine, harness), limit
    finally:
        engine.close()
