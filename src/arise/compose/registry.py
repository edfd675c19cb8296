"""Which class each kind of a section stands for: one table per seam, so that a new kind is one class and one line.

Engines are in `policies.py`, judges and reflectors in `judges.py`, sandboxes in `sandboxes.py`.
"""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from arise.baselines.response import response_credit
from arise.baselines.ruscarl import BarePromptRows, ScaffoldedGuidance
from arise.baselines.uniform import Uniform
from arise.baselines.vade import Vade
from arise.compose.imports import imported
from arise.config import Config, Imported
from arise.config.sampler import ImportedSampler
from arise.errors import AriseError, Exit
from arise.method.credit import CreditRule, separate_credit
from arise.method.sampler import CapabilitySampler
from arise.observe.trackers import KINDS, Mirrors, Open
from arise.ports import Agent, Engine, Guidance, Sampler
from arise.rollouts.shell_agent import ShellAgent
from arise.rollouts.showing import ActiveSkills
from arise.types import Task

MakeSampler = Callable[[Any, list[Task], np.random.Generator], Sampler]
MakeAgent = Callable[[Any, Engine, Any], Agent]


def _imported_sampler(chosen: ImportedSampler, tasks: list[Task], random: np.random.Generator) -> Sampler:
    """A sampler of the user's own, whose state is known to survive a commit and a resume."""
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
    "skills": lambda chosen, _: ActiveSkills(chosen.share),
    "scaffold": lambda chosen, config: ScaffoldedGuidance(chosen, config.train.iterations, config.train.seed),
}
AGENTS: dict[str, MakeAgent] = {
    "shell": lambda chosen, engine, sampling: ShellAgent(engine, engine.chat, chosen, sampling),
    "import": lambda chosen, engine, sampling: imported(
        "agent", chosen, engine=engine, limits=chosen, sampling=sampling
    ),
}


def make_sampler(config: Config, tasks: list[Task]) -> Sampler:
    """The sampler of a run, with its own stream of random numbers."""
    return SAMPLERS[config.sampler.kind](config.sampler, tasks, np.random.default_rng([config.train.seed, 1]))


def make_credit(config: Config) -> CreditRule:
    """The rule that turns a judged group into advantages."""
    return CREDITS[config.credit.kind](config.credit)


def make_guidance(config: Config) -> Guidance:
    """Which skills stand in which prompt."""
    return GUIDANCES[config.guidance.kind](config.guidance, config)


def training_agent(config: Config, engine: Engine) -> Agent:
    """The agent as it is trained; RuscaRL trains on rows without the scaffold."""
    agent = AGENTS[config.agent.kind](config.agent, engine, config.sampling)
    if config.guidance.kind == "scaffold" and not config.guidance.trained_with:
        return BarePromptRows(agent, engine, engine.chat, config.sampling.temperature)
    return agent


def evaluation_agent(config: Config, engine: Engine) -> Agent:
    """The agent as it is evaluated: with its own sampling, its rows as they are."""
    sampling = config.sampling.model_copy(
        update={"temperature": config.evaluation.temperature, "top_p": config.evaluation.top_p}
    )
    return AGENTS[config.agent.kind](config.agent, engine, sampling)


def open_trackers(config: Config, folder: Path) -> Mirrors:
    """The trackers that a configuration asks for; nothing is imported for the others."""
    chosen, settings = config.trackers, config.model_dump()
    openers: dict[str, Open] = {}
    for tracker in chosen.use:
        if isinstance(tracker, Imported):
            openers[tracker.path] = partial(imported, "trackers", tracker, folder=folder, settings=settings)
        else:
            openers[tracker] = partial(KINDS[tracker], folder, chosen, settings)
    return Mirrors(openers)
