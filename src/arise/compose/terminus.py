"""`arise eval --suite --agent terminus-2`: trials of Harbor with its own agent and the policy behind an endpoint.

Part of the composition root. The agent runs outside the environment, so it needs no way from there to the endpoint.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from arise.compose.evaluations import PolicyChoice
from arise.compose.registry import format_of
from arise.config import Config
from arise.config.llm import EndpointConfig
from arise.config.records import HarborSandboxConfig
from arise.endpoint.app import create_app
from arise.endpoint.policy import Policy
from arise.endpoint.serving import running
from arise.endpoint.sessions import CallLimits, Session, Sessions
from arise.errors import AriseError, Exit
from arise.harbor.client import HarborWorker
from arise.harbor.trials import HarborEnvironment, TrialOutcome, outcome, trial_config
from arise.ports import SandboxLost
from arise.report.dashboard.serving import listen
from arise.report.exports.harbor_job import Job, now
from arise.rollouts.collect import AGENT_SECONDS
from arise.sandbox.owner import new_name
from arise.sandbox.programs import find_program
from arise.types import TaskSpec

NAME = "terminus-2"
MAX_TOKENS = 4096
KEY = "OPENAI_API_KEY"


@dataclass(frozen=True)
class Address:
    """Where the agent of one trial calls the policy — `Address("openai/policy", "http://127.0.0.1:4000/v1", 32768)`."""

    model: str
    url: str
    window: int
    max_tokens: int = MAX_TOKENS
    temperature: float | None = None

    def agent(self, seconds: float) -> dict[str, Any]:
        """Return the agent of a trial; the terminal is not recorded, since that installs programs in the image."""
        sizes = {"max_input_tokens": self.window, "max_output_tokens": self.max_tokens}
        costs = {"input_cost_per_token": 0.0, "output_cost_per_token": 0.0}
        options = {"api_base": self.url, "model_info": sizes | costs, "record_terminal_session": False}
        if self.temperature is not None:
            options["temperature"] = self.temperature
        return {"name": NAME, "model_name": self.model, "kwargs": options, "override_timeout_sec": seconds}


Serve = Callable[[str], AbstractAsyncContextManager[Address]]


def environment_of(config: Config, named: str) -> HarborEnvironment:
    """Return Harbor's environment: as named, as configured, or the container engine of this machine."""
    chosen = config.sandbox
    if named:
        return HarborEnvironment(named)
    if isinstance(chosen, HarborSandboxConfig):
        return HarborEnvironment(chosen.environment, chosen.options)
    return HarborEnvironment(find_program() or "docker")


def require_runnable(tasks: list[TaskSpec]) -> None:
    """Raise if a task is not in Harbor's own format."""
    if other := [task.task.id for task in tasks if task.layout != "harbor"]:
        raise AriseError(
            "tasks",
            Exit.TASKS,
            f"{len(other)} tasks are in BenchFlow's format, which Harbor does not read: {', '.join(other[:5])}",
            "nothing was tried",
            f"leave --agent {NAME} out, or name a harness that `arise harness list` shows",
        )


@asynccontextmanager
async def served(folder: Path, config: Config, policy: PolicyChoice) -> AsyncIterator[tuple[Serve, str]]:
    """Serve the policy; yield a function that opens the address of one trial, and the key that calls need."""
    if policy.endpoint is not None:
        given = policy.endpoint
        key = os.environ.get(given.api_key_env, "") if given.api_key_env else ""
        yield lambda _: _elsewhere(given), key or "none"
        return
    from arise.compose.trained import trained_engine  # seconds of imports, which an endpoint does not need

    async with trained_engine(folder, policy.iteration) as (_, engine, _at):
        sampling, sessions = config.evaluation, Sessions()
        known = Policy(engine, format_of(engine), "policy", sampling.temperature, sampling.top_p)
        listener = listen("127.0.0.1", 0, "endpoint")
        base = f"http://127.0.0.1:{listener.getsockname()[1]}"

        @asynccontextmanager
        async def here(key: str) -> AsyncIterator[Address]:
            session = Session(known, CallLimits(0, MAX_TOKENS), key, config.train.seed)
            sessions.add(session)
            try:
                yield Address("openai/policy", f"{base}/r/{session.token}/v1", known.window)
            finally:
                await sessions.end(session)
            if session.fault:
                raise SandboxLost(f"policy: {session.fault}")

        async with running(create_app(sessions), listener):
            yield here, "none"


@asynccontextmanager
async def _elsewhere(given: EndpointConfig) -> AsyncIterator[Address]:
    temperature = given.temperature
    yield Address(f"openai/{given.model}", given.base_url, given.context_tokens, given.max_tokens, temperature)


async def run_trials(
    folder: Path, config: Config, policy: PolicyChoice, job: Job, tasks: list[TaskSpec], named: str, at_once: int
) -> list[dict[str, Any]]:
    """Run every attempt that the job folder does not hold yet, and return the results of all."""
    require_runnable(tasks)
    environment, slots = environment_of(config, named), asyncio.Semaphore(at_once)
    async with served(folder, config, policy) as (serve, key), HarborWorker(variables={KEY: key}) as worker:

        async def one(task: TaskSpec, number: int) -> dict[str, Any]:
            done = job.finished(task, number)
            if done is not None:
                return done
            async with slots:
                started, name = now(), new_name()
                request = trial_config(task.directory, name, worker.scratch, environment)
                key = f"suite/{job.label}/{task.task.id}/{number}"
                result, earned = await _trial(worker, serve, request, task, key)
                return job.adopt(task, number, worker.scratch / name, result, earned, started)

        return await asyncio.gather(*(one(task, number) for task in tasks for number in range(job.attempts)))


async def _trial(
    worker: HarborWorker, serve: Serve, request: dict[str, Any], task: TaskSpec, key: str
) -> tuple[dict[str, Any], TrialOutcome]:
    result: dict[str, Any] = {}
    try:
        async with serve(key) as address:
            agent = address.agent(task.agent.timeout or AGENT_SECONDS)
            result = (await worker.call("trial", config=request | {"agent": agent}))["result"]
    except SandboxLost as fault:
        return result, TrialOutcome(None, str(fault))
    return result, outcome(result)
