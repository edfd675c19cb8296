"""The policy a run starts from: a small model cloned from demonstrations, or a pretrained one; kept in a cache.

The same settings always give the same initial weights, whatever the run's seed: runs that are compared start alike.
"""

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from threading import Event

import numpy as np

from arise.config import Config, SmallModel, WorldTasks
from arise.engines.chat import ChatFormat
from arise.engines.local import LocalEngine
from arise.engines.local.cloning import CloneSpec, clone
from arise.engines.local.models import LoadedModel, load, save
from arise.engines.local.pretrained import cache_root, intact
from arise.engines.local.small_model import small_model
from arise.engines.local.weights import LoraSpec, with_adapters
from arise.errors import AriseError, Exit
from arise.ports import SandboxPool
from arise.rollouts.guidance import with_guidance
from arise.rollouts.shell_agent import SYSTEM, observe
from arise.types import Tokens
from arise.world.habits import asked_given_shown, guidance
from arise.world.warm_start import Demonstration, demonstrate
from arise.world.wording import vocabulary

RECIPE = 9
"""Part of the cache key: raise it when the demonstrations or the cloning change."""

SMALL_CLONING = CloneSpec(learning_rate=1.5e-3, tokens_per_update=1024)
PRETRAINED_CLONING = CloneSpec(learning_rate=1e-3, tokens_per_update=512)

Tell = Callable[[str], None]


async def starting_model(config: Config, sandboxes: SandboxPool, tell: Tell) -> LoadedModel:
    """The model with its tokenizer, made on first use."""
    lora = None
    if config.model.kind == "pretrained" and config.model.lora_rank:
        lora = LoraSpec(config.model.lora_rank, 2 * config.model.lora_rank)
    if config.model.kind == "pretrained" and not config.model.demonstrations:
        found = _loaded(config.model.name, lora is not None)
        return LoadedModel(found.name, found.model, found.tokenizer, lora)
    folder = cached_start(config)
    if not intact(folder):
        # Before a sandbox is used: the model may not be there.
        base = None if isinstance(config.model, SmallModel) else _loaded(config.model.name, lora is not None)
        demonstrations = await _demonstrations(config, sandboxes, tell)
        stop = Event()
        try:  # in a thread: sandboxes that start meanwhile would wait for the event loop and be given up
            await asyncio.to_thread(_clone_into, folder, config, base, demonstrations, tell, stop)
        finally:
            stop.set()
    found = _loaded(str(folder), lora is not None)
    return LoadedModel(config.model.kind, found.model, found.tokenizer, lora)


def cached_start(config: Config) -> Path:
    """Where the policy lies that a run with this configuration starts from, once it is made."""
    return cache_root() / "starts" / _key(config)


def build_engine(config: Config, loaded: LoadedModel) -> LocalEngine:
    """The embedded engine around a loaded model."""
    window = min(config.sampling.context_length, loaded.model.config.max_position_embeddings)
    with _as_a_message():
        return LocalEngine(
            loaded.model,
            loaded.tokenizer,
            lora=loaded.lora,
            precision=config.optimizer.precision,
            token_budget=config.policy.token_budget,
            batch_rows=config.policy.batch_rows,
            cache_bytes=int(config.policy.cache_gib * 2**30),
            context_length=window,
            end_ids=ChatFormat(loaded.tokenizer).end_ids,
            gradient_checkpointing=config.policy.gradient_checkpointing,
            device=config.policy.device,
            seed=config.train.seed,
        )


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
            "mend model.name in the configuration, or the model",
        ) from None


async def _demonstrations(config: Config, sandboxes: SandboxPool, tell: Tell) -> list[Demonstration]:
    if not isinstance(config.tasks, WorldTasks):
        raise AriseError(
            "config",
            Exit.CONFIG,
            f"model.kind = {config.model.kind!r} with demonstrations needs tasks.kind = 'world'",
            "nothing was started",
            "set model.kind = 'pretrained' with demonstrations = 0 for tasks of your own",
        )
    tell(f"warm start: running {config.model.demonstrations} demonstrations in sandboxes")
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
    tell: Tell,
    stop: Event,
) -> None:
    """Clone demonstrations into `base`, or into a small model made for them, until `stop` is set."""
    if isinstance(config.model, SmallModel):
        corpus = [SYSTEM, *(text for d in demonstrations for text in _texts(d)), *10 * vocabulary()]
        loaded = small_model(corpus, hidden=config.model.hidden, layers=config.model.layers)
        model, spec = loaded.model, SMALL_CLONING
    else:
        assert base is not None
        loaded, spec = base, PRETRAINED_CLONING
        model = with_adapters(loaded.model, LoraSpec(), 0) if config.model.lora_rank else loaded.model
    chat = ChatFormat(loaded.tokenizer)

    def rows_of(epoch: int) -> list[Tokens]:
        random = np.random.default_rng([epoch, 88])
        return [demonstration_row(chat, demonstration, random) for demonstration in demonstrations]

    spec = CloneSpec(config.model.epochs, spec.learning_rate, spec.tokens_per_update)
    told = 0

    def report(done: int, updates: int, loss: float) -> None:
        nonlocal told
        if stop.is_set():
            raise InterruptedError("nobody waits for this start any more")
        if done * 10 // updates > told:
            told = done * 10 // updates
            tell(f"warm start: cloning {10 * told} %, loss {loss:.2f}")

    clone(model, rows_of, spec, report)
    folder.parent.mkdir(parents=True, exist_ok=True)
    save(model, loaded.tokenizer, folder)


def demonstration_row(chat: ChatFormat, demonstration: Demonstration, random: np.random.Generator) -> Tokens:
    """A demonstration, below guidance that fits it, as the token record that the agent itself would have left."""
    system = with_guidance(SYSTEM, guidance(asked_given_shown(demonstration.habits, random), random))
    messages = [{"role": "system", "content": system}, {"role": "user", "content": demonstration.instruction}]
    ids = chat.prompt(messages)
    generated = [False] * len(ids)
    for number, (answer, observation) in enumerate(demonstration.turns, start=1):
        said = chat.answer(answer)
        ids, generated = [*ids, *said], [*generated, *[True] * len(said)]
        if number < len(demonstration.turns):
            ids = chat.extend(ids, observation)
            generated += [False] * (len(ids) - len(generated))
    return Tokens(
        np.array(ids, dtype=np.int64),
        np.array(generated, dtype=np.bool_),
        np.zeros(len(ids)),
        np.full(len(ids), -1, dtype=np.int64),
    )


def _texts(demonstration: Demonstration) -> list[str]:
    return [demonstration.instruction, *(text for turn in demonstration.turns for text in turn)]


def _key(config: Config) -> str:
    """Everything the start depends on, as a name."""
    world = config.tasks.model_dump(exclude={"train_tasks", "eval_tasks"})
    agent = config.agent.model_dump(include={"max_turns", "observation_chars"})
    facts = {"recipe": RECIPE, "model": config.model.model_dump(), "world": world, "agent": agent, "system": SYSTEM}
    return blake2b(json.dumps(facts, sort_keys=True).encode(), digest_size=8).hexdigest()
