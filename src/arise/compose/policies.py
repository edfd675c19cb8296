"""The policy a run starts from: a small model cloned from demonstrations, or a pretrained one; cached.

Initial weights depend on the settings only, not on the seed of the run, so compared runs start from the same weights.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from hashlib import blake2b
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np

from arise.compose.imports import imported
from arise.compose.remote import remote_engine, require_environments
from arise.config import (
    ArealConfig,
    Config,
    PolicyConfig,
    PretrainedModel,
    SmallModel,
    ToolAgentConfig,
    VerlConfig,
    WorldTasks,
)
from arise.engines.chat import ChatFormat
from arise.engines.formats.choose import choose_format
from arise.engines.local import LocalEngine
from arise.engines.local.cloning import CloneSpec, clone
from arise.engines.local.models import LoadedModel, load, save
from arise.engines.local.pretrained import cache_root, intact
from arise.engines.local.small_model import small_model
from arise.engines.local.weights import LoraSpec, with_adapters
from arise.errors import AriseError, Exit
from arise.ports import Engine, Format, SandboxPool
from arise.rollouts.commands import SUBMIT, observe, parse_command
from arise.rollouts.guidance import with_guidance
from arise.rollouts.tools import SPECS
from arise.text.progress import Progress
from arise.types import FunctionCall, Message, Tokens
from arise.world.shell_agent import SYSTEM
from arise.world.warm_start import Demonstration, demonstrate
from arise.world.wording import vocabulary

RECIPE = 9
"""Part of the cache key: increment it when the demonstrations or the cloning change."""

SMALL_CLONING = CloneSpec(learning_rate=1.5e-3, tokens_per_update=1024)
PRETRAINED_CLONING = CloneSpec(learning_rate=1e-3, tokens_per_update=512)

log = logging.getLogger(__name__)


async def open_engine(config: Config, sandboxes: SandboxPool) -> Engine:
    """Open the configured engine with the initial model of the run."""
    if isinstance(config.policy, ArealConfig | VerlConfig):
        require_environments(config.policy)  # before minutes are spent on a warm start
    found = ENGINES[config.policy.kind](config.policy, config, await starting_model(config, sandboxes))
    return await found if isinstance(found, Awaitable) else found


async def starting_model(config: Config, sandboxes: SandboxPool) -> str:
    """Return the folder or name of the initial model; a warm start is created on first use and cached."""
    if config.model.kind == "pretrained" and not config.model.demonstrations:
        return config.model.name
    folder = cached_start(config)
    if not intact(folder):
        # Load the model before any sandbox is used: it may be missing.
        base = None if isinstance(config.model, SmallModel) else _loaded(config.model.name, _lora(config) is not None)
        demonstrations = await _demonstrations(config, sandboxes)
        stop = Event()
        try:  # in a thread: a blocked event loop would make starting sandboxes time out
            await asyncio.to_thread(_clone_into, folder, config, base, demonstrations, stop)
        finally:
            stop.set()
    return str(folder)


def cached_start(config: Config) -> Path:
    """Return the cache path of the warm start of this configuration; it may not exist yet."""
    return cache_root() / "starts" / _key(config)


def embedded_engine(chosen: PolicyConfig, config: Config, model: str) -> LocalEngine:
    """Return an in-process engine for a model given by folder or name."""
    lora = _lora(config)
    loaded = _loaded(model, lora is not None)
    window = min(config.sampling.context_length, loaded.model.config.max_position_embeddings)
    with _as_a_message():
        chat = None if config.agent.kind == "shell" else model_format(config, loaded.tokenizer)
        return LocalEngine(
            loaded.model,
            loaded.tokenizer,
            lora=lora,
            precision=config.optimizer.precision,
            token_budget=chosen.token_budget,
            batch_rows=chosen.batch_rows,
            cache_bytes=int(chosen.cache_gib * 2**30),
            context_length=window,
            end_ids=ChatFormat(loaded.tokenizer).end_ids if chat is None else chat.stop_ids,
            chat_format=chat,
            gradient_checkpointing=chosen.gradient_checkpointing,
            device=chosen.device,
            seed=config.train.seed,
        )


def model_format(config: Config, tokenizer: Any) -> Format:
    """Return the chat format of the model; log a notice if its template does not support tools."""
    chosen = config.model if isinstance(config.model, PretrainedModel) else PretrainedModel(format="generic")
    chat = choose_format(tokenizer, chosen.format, chosen.template_options)
    if notice := getattr(chat, "notice", ""):
        log.info("%s", notice)
    return chat


ENGINES: dict[str, Callable[[Any, Config, str], Engine | Awaitable[Engine]]] = {
    "embedded": embedded_engine,
    "areal": partial(remote_engine, make_format=model_format),
    "verl": partial(remote_engine, make_format=model_format),
    "import": lambda chosen, config, model: imported("policy", chosen, model=model, config=config),
}
"""By `policy.kind`; each receives its section, the whole configuration, and the model by folder or name."""


def _lora(config: Config) -> LoraSpec | None:
    if config.model.kind == "pretrained" and config.model.lora_rank:
        return LoraSpec(config.model.lora_rank, 2 * config.model.lora_rank)
    return None


def _loaded(name: str, lora: bool) -> LoadedModel:
    with _as_a_message():
        return load(name, lora=lora)


@contextmanager
def _as_a_message() -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise AriseError(
            "model",
            Exit.CONFIG,
            str(error),
            "nothing was trained",
            "fix model.name in the configuration, or the model",
        ) from None


async def _demonstrations(config: Config, sandboxes: SandboxPool) -> list[Demonstration]:
    if not isinstance(config.tasks, WorldTasks):
        raise AriseError(
            "config",
            Exit.CONFIG,
            f"model.kind = {config.model.kind!r} with demonstrations needs tasks.kind = 'world'",
            "nothing was started",
            "set model.kind = 'pretrained' with demonstrations = 0 for tasks of your own",
        )
    log.info("warm start: running %d demonstrations in sandboxes", config.model.demonstrations)
    return await demonstrate(
        config.tasks,
        config.model.demonstrations,
        sandboxes,
        lambda result: observe(result, config.agent.observation_chars),
        config.agent.max_turns,
        config.agent.command_seconds,
    )


def _clone_into(
    folder: Path,
    config: Config,
    base: LoadedModel | None,
    demonstrations: Sequence[Demonstration],
    stop: Event,
) -> None:
    """Train `base`, or a new small model, on demonstrations by behaviour cloning until `stop` is set."""
    if isinstance(config.model, SmallModel):
        corpus = [SYSTEM, *(text for d in demonstrations for text in _texts(d)), *10 * vocabulary()]
        shape = {"hidden": config.model.hidden, "layers": config.model.layers, "heads": config.model.heads}
        loaded = small_model(corpus, **shape, kv_heads=config.model.heads)
        model, spec = loaded.model, SMALL_CLONING
    else:
        assert base is not None
        loaded, spec = base, PRETRAINED_CLONING
        model = with_adapters(loaded.model, LoraSpec(), 0) if config.model.lora_rank else loaded.model
    write = _row_writer(config, loaded.tokenizer)

    def rows_of(epoch: int) -> list[Tokens]:
        random = np.random.default_rng([epoch, 88])
        return [write(demonstration, random) for demonstration in demonstrations]

    spec = CloneSpec(config.model.epochs, spec.learning_rate, spec.tokens_per_update)

    def report(done: int, updates: int, loss: float) -> None:
        if stop.is_set():
            raise InterruptedError("this start is no longer needed")
        if done == 1:
            wait.expect(updates)
        wait.add()
        if done == updates:
            log.info("warm start: cloned in %d updates, last loss %.2f", updates, loss)

    with Progress(log, "warm start: cloning") as wait:
        clone(model, rows_of, spec, report)
    folder.parent.mkdir(parents=True, exist_ok=True)
    save(model, loaded.tokenizer, folder)


def _row_writer(config: Config, tokenizer: Any) -> Callable[[Demonstration, np.random.Generator], Tokens]:
    """Return the function that turns a demonstration into tokens for the agent of this run."""
    if isinstance(config.agent, ToolAgentConfig):
        return partial(tool_demonstration_row, model_format(config, tokenizer), config.agent)
    return partial(demonstration_row, ChatFormat(tokenizer))


def tool_demonstration_row(
    chat: Format, agent: ToolAgentConfig, demonstration: Demonstration, random: np.random.Generator
) -> Tokens:
    """Return a demonstration as `bash` calls, in the token format that the tool agent records."""
    system = with_guidance(agent.system_prompt, demonstration.guidance(random))
    tools = [SPECS[name] for name in agent.tools]
    ids = chat.prompt([Message("system", system), Message("user", demonstration.instruction)], tools)
    generated = [False] * len(ids)
    for number, (answer, observation) in enumerate(demonstration.turns):
        command = parse_command(answer)
        call = FunctionCall(f"call{number:05d}", "bash", {"command": command or ""})
        done = command in (None, SUBMIT)
        said = chat.answer(Message("assistant", "Done.") if done else Message("assistant", calls=(call,)), tools)
        ids, generated = [*ids, *said], [*generated, *[True] * len(said)]
        if done:
            break
        longer = chat.extend(ids, [Message("tool", observation, call_id=call.id, name="bash")], tools)
        assert longer is not None, "a format continues what it wrote itself"
        ids, generated = longer, [*generated, *[False] * (len(longer) - len(ids))]
    return _as_tokens(ids, generated)


def demonstration_row(chat: ChatFormat, demonstration: Demonstration, random: np.random.Generator) -> Tokens:
    """Return a demonstration with matching guidance, in the token format that the shell agent records."""
    system = with_guidance(SYSTEM, demonstration.guidance(random))
    messages = [{"role": "system", "content": system}, {"role": "user", "content": demonstration.instruction}]
    ids = chat.prompt(messages)
    generated = [False] * len(ids)
    for number, (answer, observation) in enumerate(demonstration.turns, start=1):
        said = chat.answer(answer)
        ids, generated = [*ids, *said], [*generated, *[True] * len(said)]
        if number < len(demonstration.turns):
            ids = chat.extend(ids, observation)
            generated += [False] * (len(ids) - len(generated))
    return _as_tokens(ids, generated)


def _as_tokens(ids: Sequence[int], generated: Sequence[bool]) -> Tokens:
    return Tokens(
        np.array(ids, dtype=np.int64),
        np.array(generated, dtype=np.bool_),
        np.zeros(len(ids)),
        np.full(len(ids), -1, dtype=np.int64),
    )


def _texts(demonstration: Demonstration) -> list[str]:
    return [demonstration.instruction, *(text for turn in demonstration.turns for text in turn)]


def _key(config: Config) -> str:
    """Return a cache key of everything that the warm start depends on."""
    world = config.tasks.model_dump(exclude={"train_tasks", "eval_tasks"})
    shared, own = {"max_turns", "observation_chars"}, {"kind", "system_prompt", "tools"}
    tools = isinstance(config.agent, ToolAgentConfig)
    agent = config.agent.model_dump(mode="json", include=shared | own if tools else shared)
    model = config.model.model_dump(exclude=None if tools else {"format", "template_options"})
    if model.get("heads") == SmallModel().heads:
        del model["heads"]  # warm starts from before it could be chosen are still good
    facts = {"recipe": RECIPE, "model": model, "world": world, "agent": agent, "system": SYSTEM}
    return blake2b(json.dumps(facts, sort_keys=True).encode(), digest_size=8).hexdigest()
