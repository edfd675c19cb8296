"""Map each `kind` of a section to its class: one table per extension point, so a new kind is one class and one line.

Engines are in `policies.py`, judges and reflectors in `judges.py`, sandboxes in `sandboxes.py`.
"""

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from arise.baselines.response import response_credit
from arise.baselines.ruscarl import BarePromptRows, ScaffoldedGuidance
from arise.baselines.uniform import Uniform
from arise.baselines.vade import Vade
from arise.compose.harnesses import HarnessParts, harness_agent
from arise.compose.imports import imported
from arise.config import Config, Imported, ToolAgentConfig
from arise.config.agent import HarnessConfig
from arise.config.sampler import ImportedSampler
from arise.config.schema import SamplingConfig
from arise.errors import AriseError, Exit
from arise.method.credit import CreditRule, separate_credit
from arise.method.sampler import CapabilitySampler
from arise.observe.trackers import KINDS, Mirrors, Open
from arise.ports import Agent, Engine, Format, Guidance, Sampler
from arise.rollouts.showing import ActiveSkills
from arise.rollouts.tool_agent import ToolAgent
from arise.rollouts.tools import SPECS
from arise.types import Message, Task
from arise.world.shell_agent import SYSTEM, ShellAgent

LEAST_REPLY = 64
"""Minimum tokens for the first reply; a call does not fit into fewer."""

MakeSampler = Callable[[Any, list[Task], np.random.Generator], Sampler]
MakeAgent = Callable[[Any, Engine, Any], Agent]


def _imported_sampler(chosen: ImportedSampler, tasks: list[Task], random: np.random.Generator) -> Sampler:
    """Construct a custom sampler; raise if its state does not survive a commit and a resume."""
    sampler: Sampler = imported("sampler", chosen, tasks=tasks, random=random)
    try:
        sampler.restore(json.loads(json.dumps(sampler.to_dict(), allow_nan=False)))
    except Exception as error:  # code of the user
        raise AriseError(
            "config",
            Exit.CONFIG,
            f"sampler.path = {chosen.path!r}: its state cannot be saved and restored: {type(error).__name__}: {error}",
            "nothing was started",
            "let to_dict() return JSON values only, and restore() accept them",
        ) from error
    return sampler


SAMPLERS: dict[str, MakeSampler] = {
    "capability": lambda chosen, tasks, random: CapabilitySampler(tasks, random, chosen),
    "uniform": lambda _, tasks, random: Uniform(tasks, random),
    "vade": lambda chosen, tasks, random: Vade(tasks, random, chosen),
    "import": _imported_sampler,
}
CREDITS: dict[str, Callable[[Any], CreditRule]] = {
    "separate": separate_credit,
    "response": response_credit,
    "import": lambda chosen: imported("credit", chosen),
}
GUIDANCES: dict[str, Callable[[Any, Config], Guidance]] = {
    "skills": lambda chosen, _: ActiveSkills(chosen),
    "scaffold": lambda chosen, config: ScaffoldedGuidance(chosen, config.train.iterations, config.train.seed),
}


def format_of(engine: Engine) -> Format:
    """Return the chat format of the engine's model; raise if a custom engine has none."""
    found: Format | None = getattr(engine, "format", None)
    if found is None:
        raise AriseError(
            "config",
            Exit.CONFIG,
            f"this agent.kind needs an engine with an attribute `format`, {type(engine).__name__} has none",
            "nothing was started",
            "add `format`, for example arise.engines.formats.generic.GenericFormat(tokenizer)",
        )
    return found


AGENTS: dict[str, MakeAgent] = {
    "shell": lambda chosen, engine, sampling: ShellAgent(engine, engine.chat, chosen, sampling),
    "tools": lambda chosen, engine, sampling: ToolAgent(engine, format_of(engine), chosen, sampling),
    "import": lambda chosen, engine, sampling: imported(
        "agent", chosen, engine=engine, limits=chosen, sampling=sampling
    ),
}


def make_sampler(config: Config, tasks: list[Task]) -> Sampler:
    """Return the sampler of a run, with its own random stream."""
    return SAMPLERS[config.sampler.kind](config.sampler, tasks, np.random.default_rng([config.train.seed, 1]))


def make_credit(config: Config) -> CreditRule:
    """Return the rule that turns a judged group into advantages."""
    return CREDITS[config.credit.kind](config.credit)


def make_guidance(config: Config) -> Guidance:
    """Return the rule that selects the skills of each prompt."""
    return GUIDANCES[config.guidance.kind](config.guidance, config)


def base_prompt(config: Config) -> str:
    """Return the system prompt without skills."""
    if isinstance(config.agent, HarnessConfig):
        return ""  # a harness has its own system prompt
    return config.agent.system_prompt if isinstance(config.agent, ToolAgentConfig) else SYSTEM


def token_count(engine: Engine) -> Callable[[str], int]:
    """Return the function that counts the tokens of a text for the policy."""
    found: Format | None = getattr(engine, "format", None)
    return engine.chat.count if found is None else found.count


def require_room(config: Config, engine: Engine, instructions: Mapping[str, str]) -> None:
    """Raise if the context window cannot hold the tool agent's first prompt and a reply."""
    if not isinstance(config.agent, ToolAgentConfig):
        return
    chat, window = format_of(engine), engine.capabilities().context_length
    tools = [SPECS[name] for name in config.agent.tools]
    opening = Message("system", base_prompt(config))
    sizes = {name: len(chat.prompt([opening, Message("user", text)], tools)) for name, text in instructions.items()}
    task_id = max(sizes, key=lambda name: sizes[name])
    if sizes[task_id] + LEAST_REPLY > window:
        raise AriseError(
            "config",
            Exit.CONFIG,
            f"the first prompt of {task_id} has {sizes[task_id]} tokens, the model's window is {window}",
            "nothing was started",
            "raise sampling.context_length or take a model with a longer window; offer fewer agent.tools, shorten "
            "agent.system_prompt or the instruction",
        )


def _agent(config: Config, engine: Engine, sampling: SamplingConfig, harness: HarnessParts | None) -> Agent:
    if harness is not None and isinstance(config.agent, HarnessConfig):
        return harness_agent(harness, config.agent, engine, format_of(engine), sampling)
    return AGENTS[config.agent.kind](config.agent, engine, sampling)


def training_agent(config: Config, engine: Engine, harness: HarnessParts | None = None) -> Agent:
    """Return the training agent; its token rows exclude the guidance unless `guidance.trained_with` is set."""
    agent = _agent(config, engine, config.sampling, harness)
    if not config.guidance.trained_with:
        return BarePromptRows(agent, engine, engine.chat, SYSTEM, config.sampling.temperature)
    return agent


def evaluation_agent(config: Config, engine: Engine, harness: HarnessParts | None = None) -> Agent:
    """Return the evaluation agent, with the sampling of evaluations and unmodified token rows."""
    sampling = config.sampling.model_copy(
        update={"temperature": config.evaluation.temperature, "top_p": config.evaluation.top_p}
    )
    return _agent(config, engine, sampling, harness)


def open_trackers(config: Config, folder: Path) -> Mirrors:
    """Open the configured trackers; packages of other trackers are not imported."""
    chosen, settings = config.trackers, config.model_dump()
    openers: dict[str, Open] = {}
    for tracker in chosen.use:
        if isinstance(tracker, Imported):
            openers[tracker.path] = partial(imported, "trackers", tracker, folder=folder, settings=settings)
        else:
            openers[tracker] = partial(KINDS[tracker], folder, chosen, settings)
    return Mirrors(openers)
