"""Harnesses as agents of a run: the endpoint they call, what their sandboxes hold, and the agent."""

import asyncio
import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from arise.config import Config
from arise.config.agent import AgentConfig, CommandAgentConfig, HarnessAgentConfig, HarnessConfig, ToolAgentConfig
from arise.config.llm import EndpointConfig
from arise.config.records import SandboxConfig
from arise.config.schema import SamplingConfig
from arise.endpoint.policy import Policy
from arise.endpoint.serving import on_socket
from arise.endpoint.sessions import CallLimits
from arise.errors import AriseError, Exit
from arise.harnesses.agent import HarnessAgent
from arise.harnesses.carried import carried
from arise.harnesses.install import folder_of, require, seen_paths, status
from arise.harnesses.launch import Launcher, processes
from arise.harnesses.remote import RemoteHarnessAgent
from arise.harnesses.spec import Harness
from arise.llm.agents.tool_agent import ToolEndpointAgent
from arise.ports import Engine, Format, Sandbox
from arise.sandbox import MIB, Limits
from arise.sandbox.choose import Equipment
from arise.sandbox.image_sandbox import ImageSandbox


@dataclass(frozen=True)
class HarnessParts:
    """The additional parts of a run with a harness: its launcher, and what its sandboxes hold."""

    launcher: Launcher
    equipment: Equipment


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
    if not isinstance(config.sandbox, SandboxConfig):
        what = (
            f"agent.kind = {chosen.kind!r} needs a sandbox of this machine, not sandbox.kind = {config.sandbox.kind!r}"
        )
        raise AriseError("config", Exit.CONFIG, what, "nothing was started", "set sandbox.kind = 'auto'")
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
    async with on_socket() as endpoint:
        slots = asyncio.Semaphore(chosen.at_once or processes())
        harness, socket = harness_of(chosen), str(endpoint.socket.parent)
        equipment, program = equipment_of(chosen, harness, socket), partial(program_in, chosen, harness)
        yield HarnessParts(Launcher(harness, endpoint, program, chosen.attempt_seconds, slots), equipment)


def equipment_of(chosen: HarnessAgentConfig | CommandAgentConfig, harness: Harness, socket: str) -> Equipment:
    """Return the paths that sandboxes mount for a harness, and the limits of one that runs it with its subprocesses."""
    memory = harness.memory_mb * MIB
    limits = Limits(memory_bytes=memory, tmp_bytes=memory // 4, processes=512, open_files=4096)
    if isinstance(chosen, CommandAgentConfig):
        paths = tuple(chosen.read_only)
        return Equipment(limits, (socket, *paths), lambda: tuple((path, path) for path in paths))
    seen = tuple(map(str, seen_paths(chosen.kind)))
    return Equipment(limits, (socket, *seen), lambda: carried(chosen.kind).mounts)


def program_in(chosen: HarnessAgentConfig | CommandAgentConfig, harness: Harness, sandbox: Sandbox) -> str:
    """Return the shell words that start a harness: its own program, or in an image its program with all it needs."""
    if isinstance(chosen, CommandAgentConfig):
        return ""
    if isinstance(sandbox, ImageSandbox):
        return carried(chosen.kind).program
    return shlex.quote(str(folder_of(chosen.kind) / harness.program))


def called_limits(endpoint: EndpointConfig, limits: AgentConfig) -> tuple[EndpointConfig, AgentConfig]:
    """Return the endpoint and the limits of the agent that calls a model for a harness; others are unchanged."""
    if not isinstance(limits, HarnessConfig):
        return endpoint, limits
    return endpoint.model_copy(update={"max_tokens": limits.max_tokens}), ToolAgentConfig(max_tokens=limits.max_tokens)


def remote_harness_agent(parts: HarnessParts, config: Config, model: ToolEndpointAgent) -> RemoteHarnessAgent:
    """Return the agent of an evaluation that a harness drives with a model behind an endpoint."""
    chosen = config.agent
    assert isinstance(chosen, HarnessConfig), "its parts are there"
    limits = CallLimits(chosen.max_turns, chosen.max_tokens)
    return RemoteHarnessAgent(parts.launcher, model.ask, limits, model.client.endpoint.context_tokens)


def harness_agent(
    parts: HarnessParts, chosen: HarnessConfig, engine: Engine, chat: Format, sampling: SamplingConfig
) -> HarnessAgent:
    """Return the agent of a run that a harness drives."""
    policy = Policy(engine, chat, chosen.model_name, sampling.temperature, sampling.top_p)
    limits = CallLimits(chosen.max_turns, chosen.max_tokens, chosen.attempt_tokens)
    return HarnessAgent(parts.launcher, policy, limits)
