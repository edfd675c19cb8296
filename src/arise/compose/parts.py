"""The parts of a run that need no run store: engine, judge, reflector and reference agent, each checked when opened.

Part of the composition root. An unusable part raises before the run is created.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from arise.compose.harnesses import HarnessParts
from arise.compose.judges import Judging, judging, observer
from arise.compose.references import ScriptedWorker
from arise.config import Config, WorldTasks
from arise.config.baselines import ElicitedCriteria
from arise.llm.agents.agent import endpoint_agent
from arise.llm.client.spend import Budget
from arise.ports import Agent, Engine, SandboxPool


@dataclass(frozen=True)
class RunParts:
    """The engine, judge and reflector of a run, and the agent for reference attempts, if any."""

    engine: Engine
    judges: Judging
    reference: Agent | None


@asynccontextmanager
async def prepared(
    config: Config, folder: Path, sandboxes: SandboxPool, harness: HarnessParts | None = None
) -> AsyncIterator[RunParts]:
    """Open every part and close all of them at exit; calls to models are recorded in `folder`."""
    async with AsyncExitStack() as stack:
        judges = await stack.enter_async_context(judging(config, folder))
        reference = await stack.enter_async_context(_reference_agent(config, folder, judges.budget))
        from arise.compose.policies import open_engine  # seconds of imports: not before endpoints are checked

        engine = await open_engine(config, sandboxes, harness)
        stack.callback(engine.close)
        yield RunParts(engine, judges, reference)


@asynccontextmanager
async def _reference_agent(config: Config, folder: Path, budget: Budget | None) -> AsyncIterator[Agent | None]:
    chosen = config.criteria
    if not isinstance(chosen, ElicitedCriteria):
        yield None
    elif chosen.endpoint is not None:
        record, observe = folder / "reference-calls.db", observer(folder)
        async with endpoint_agent(chosen.endpoint, config.agent, config.budget, record, observe, budget) as agent:
            yield agent
    else:
        assert isinstance(config.tasks, WorldTasks), "require_sound has seen to it"
        yield ScriptedWorker(config.tasks, config.agent)
