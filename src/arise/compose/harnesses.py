"""Harnesses as agents of a run: the endpoint they call, the paths their sandboxes mount, and the agent."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from arise.config import Config
from arise.config.agent import CommandAgentConfig, HarnessAgentConfig, HarnessConfig
from arise.config.schema import SamplingConfig
from arise.endpoint.policy import Policy
from arise.endpoint.serving import on_socket
from arise.endpoint.sessions import CallLimits
from arise.errors import AriseError, Exit
from arise.harnesses.agent import HarnessAgent
from arise.harnesses.install import folder_of, require, seen_paths, status
from arise.harnesses.launch import Launcher, processes
from arise.harnesses.spec import Harness
from arise.ports import Engine, Format
from arise.sandbox import MIB, Limits


@dataclass(frozen=True)
class HarnessParts:
    """The additional parts of a run with a harness: its launcher and the paths to mount."""

    launcher: Launcher
    seen: tuple[str, ...]
    """Host paths that its sandboxes mount."""

    @property
    def limits(self) -> Limits:
        """Return the limits of a sandbox that runs the harness and its subprocesses."""
        memory = self.launcher.harness.memory_mb * MIB
        return Limits(memory_bytes=memory, tmp_bytes=memory // 4, processes=512, open_files=4096)


def harness_of(config: HarnessConfig) -> Harness:
    """Return the harness that a section names or describes."""
    if isinstance(config, CommandAgentConfig):
        return Harness("command", config.command, env=config.env, files=config.files, memory_mb=config.memory_mb)
    assert isinstance(config, HarnessAgentConfig), "there are two kinds of section"
    return replace(require(config.kind), arguments=tuple(config.arguments))


def require_harness(config: Config) -> None:
    """Raise if the configured harness cannot be used on this machine."""
    chosen = config.agent
    if not isinstance(chosen, HarnessConfig):
        return
    if config.sandbox.kind not in ("auto", "bubblewrap"):
        what = f"agent.kind = {chosen.kind!r} needs sandbox.kind = 'bubblewrap', not {config.sandbox.kind!r}"
        raise AriseError("config", Exit.CONFIG, what, "nothing was started", "set sandbox.kind = 'bubblewrap'")
    if isinstance(chosen, CommandAgentConfig):
        for path in chosen.read_only:
            if not Path(path).exists():
                what = f"agent.read_only: there is no {path}"
                raise AriseError("config", Exit.CONFIG, what, "nothing was started", "name a path that exists")
        return
    found = status(chosen.kind)
    if not found.usable:
        what = f"agent.kind = {chosen.kind!r}: {found.said}"
        raise AriseError("harness", Exit.ENGINE, what, "nothing was started", found.remedy)


@asynccontextmanager
async def open_harness(config: Config) -> AsyncIterator[HarnessParts | None]:
    """Serve the endpoint during a run with a harness; yield None for any other agent."""
    chosen = config.agent
    if not isinstance(chosen, HarnessConfig):
        yield None
        return
    require_harness(config)
    own = isinstance(chosen, CommandAgentConfig)
    paths = tuple(chosen.read_only) if isinstance(chosen, CommandAgentConfig) else map(str, seen_paths(chosen.kind))
    async with on_socket() as endpoint:
        install = None if own else folder_of(chosen.kind)
        slots = asyncio.Semaphore(chosen.at_once or processes())
        launcher = Launcher(harness_of(chosen), endpoint, install, chosen.attempt_seconds, slots)
        yield HarnessParts(launcher, (str(endpoint.socket.parent), *paths))


def harness_agent(
    parts: HarnessParts, chosen: HarnessConfig, engine: Engine, chat: Format, sampling: SamplingConfig
) -> HarnessAgent:
    """Return the agent of a run that a harness drives."""
    policy = Policy(engine, chat, chosen.model_name, sampling.temperature, sampling.top_p)
    limits = CallLimits(chosen.max_turns, chosen.max_tokens, chosen.attempt_tokens)
    return HarnessAgent(parts.launcher, policy, limits)
