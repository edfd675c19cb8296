"""Where the warm start of a configuration is cached. Importing it loads no torch."""

import json
from dataclasses import asdict
from hashlib import blake2b
from pathlib import Path

from arise.compose.harnesses import harness_of
from arise.config import Config, SmallModel, ToolAgentConfig
from arise.config.agent import HarnessConfig
from arise.engines.local.pretrained import cache_root
from arise.world.shell_agent import SYSTEM

RECIPE = 9
"""Part of the cache key: increment it when the demonstrations or the cloning change."""


def cached_start(config: Config) -> Path:
    """Return the cache path of the warm start of this configuration; it may not exist yet."""
    return cache_root() / "starts" / _key(config)


def _key(config: Config) -> str:
    """Return a cache key of everything that the warm start depends on."""
    world = config.tasks.model_dump(exclude={"train_tasks", "eval_tasks"})
    shared, own = {"max_turns", "observation_chars"}, {"kind", "system_prompt", "tools"}
    tools = isinstance(config.agent, ToolAgentConfig)
    agent = config.agent.model_dump(mode="json", include=shared | own if tools else shared)
    if tools:
        agent["looks_at_once"] = True
    if isinstance(config.agent, HarnessConfig):
        agent |= asdict(harness_of(config.agent))
    plain = config.agent.kind == "shell"
    model = config.model.model_dump(exclude={"format", "template_options"} if plain else None)
    if model.get("heads") == SmallModel().heads:
        del model["heads"]  # warm starts from before it could be chosen are still good
    facts = {"recipe": RECIPE, "model": model, "world": world, "agent": agent, "system": SYSTEM}
    return blake2b(json.dumps(facts, sort_keys=True).encode(), digest_size=8).hexdigest()
