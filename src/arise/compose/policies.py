"""The policy a run starts from: a small model cloned from demonstrations, or a pretrained one; cached.

Initial weights depend on the settings only, not on the seed of the run, so compared runs start from the same weights.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np

from arise.compose.demonstrations import demonstrations, row_writer, texts
from arise.compose.harnesses import HarnessParts
from arise.compose.imports import imported
from arise.compose.remote import check_machine, check_model, remote_engine, require_machine
from arise.compose.starts import cached_start
from arise.config import (
    ArealConfig,
    Config,
    PolicyConfig,
    PretrainedModel,
    SmallModel,
    VerlConfig,
)
from arise.engines.chat import ChatFormat
from arise.engines.formats.choose import choose_format
from arise.engines.local import LocalEngine
from arise.engines.local.cloning import CloneSpec, clone
from arise.engines.local.models import LoadedModel, load, save
from arise.engines.local.pretrained import intact
from arise.engines.local.small_model import small_model
from arise.engines.local.weights import LoraSpec, with_adapters
from arise.errors import AriseError, Exit
from arise.ports import Engine, Format, SandboxPool
from arise.text.progress import Progress
from arise.types import Tokens
from arise.world.shell_agent import SYSTEM
from arise.world.warm_start import Demonstration
from arise.world.wording import vocabulary

SMALL_CLONING = CloneSpec(learning_rate=1.5e-3, tokens_per_update=1024)
LONG_CLONING = CloneSpec(learning_rate=1.5e-3, tokens_per_update=1536)
"""For agents whose prompt is most of a row."""
PRETRAINED_CLONING = CloneSpec(learning_rate=1e-3, tokens_per_update=512)

log = logging.getLogger(__name__)


async def open_engine(config: Config, sandboxes: SandboxPool, harness: HarnessParts | None = None) -> Engine:
    """Open the configured engine with the initial model of the run."""
    if isinstance(config.policy, ArealConfig | VerlConfig):
        await require_machine(config.policy, config)
    found = ENGINES[config.policy.kind](config.policy, config, await starting_model(config, sandboxes, harness))
    return await found if isinstance(found, Awaitable) else found


async def starting_model(config: Config, sandboxes: SandboxPool, harness: HarnessParts | None = None) -> str:
    """Return the folder or name of the initial model; a warm start is created on first use and cached."""
    if config.model.kind == "pretrained" and not config.model.demonstrations:
        return config.model.name
    folder = cached_start(config)
    if not intact(folder):
        # Load the model before any sandbox is used: it may be missing.
        base = None if isinstance(config.model, SmallModel) else _loaded(config.model.name, _lora(config) is not None)
        shown = await demonstrations(config, sandboxes, harness)
        stop = Event()
        # In a thread, because a blocked event loop would make starting sandboxes time out. In one that ends, because
        # the OpenMP team that it leaves behind would slow every later update: libgomp stops spinning at barriers when
        # all teams together exceed the cores.
        with ThreadPoolExecutor(1, "arise-cloning") as thread:
            cloning = partial(_clone_into, folder, config, base, shown, stop)
            try:
                await asyncio.get_running_loop().run_in_executor(thread, cloning)
            finally:
                stop.set()
    return str(folder)


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
    """Return the chat format of the model; log a notice if its template does not support the tools of the agent."""
    chosen = config.model if isinstance(config.model, PretrainedModel) else PretrainedModel(format="generic")
    chat = choose_format(tokenizer, chosen.format, chosen.template_options)
    if config.agent.kind != "import" and (notice := getattr(chat, "notice", "")):
        log.info("%s", notice)
    return chat


async def check_remote(chosen: ArealConfig | VerlConfig, config: Config) -> str:
    """Return which environments a run will use; raises ValueError with the remedy for what would keep it from starting.

    A warm start that is not in the cache yet is not made for this: what depends on the model is then left out.
    """
    found = await check_machine(chosen, config)
    if isinstance(config.model, PretrainedModel) and not config.model.demonstrations:
        check_model(chosen, config, config.model.name, model_format)
    elif intact(start := cached_start(config)):
        check_model(chosen, config, str(start), model_format)
    return found


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


def _clone_into(
    folder: Path,
    config: Config,
    base: LoadedModel | None,
    shown: Sequence[Demonstration[Any]],
    stop: Event,
) -> None:
    """Train `base`, or a new small model, on demonstrations by behaviour cloning until `stop` is set."""
    if isinstance(config.model, SmallModel):
        corpus = [SYSTEM, *(text for each in shown for text in texts(each)), *10 * vocabulary()]
        shape = {"hidden": config.model.hidden, "layers": config.model.layers, "heads": config.model.heads}
        loaded = small_model(corpus, **shape, kv_heads=config.model.heads)
        model, spec = loaded.model, SMALL_CLONING if config.agent.kind == "shell" else LONG_CLONING
    else:
        assert base is not None
        loaded, spec = base, PRETRAINED_CLONING
        model = with_adapters(loaded.model, LoraSpec(), 0) if config.model.lora_rank else loaded.model
    write = row_writer(config, loaded.tokenizer, lambda: model_format(config, loaded.tokenizer))

    def rows_of(epoch: int) -> list[Tokens]:
        random = np.random.default_rng([epoch, 88])
        return [write(each, random) for each in shown]

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
