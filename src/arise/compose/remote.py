"""Engines on other processes, from a configuration: everything that can be wrong is checked before one is started."""

import glob
import os
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from arise.config import ArealConfig, Config, SmallModel, VerlConfig
from arise.engines.chat import ChatFormat
from arise.engines.environments import gpus_here, python_of, recipes
from arise.engines.faults import EngineFault
from arise.engines.local.models import model_folder, tokenizer_and_config
from arise.engines.local.pretrained import cache_root, parameters_in
from arise.engines.manifest import model_digest
from arise.engines.remote.engine import RemoteEngine
from arise.engines.remote.policy import Policy
from arise.engines.remote.trainer import TrainerSpec
from arise.engines.vllm.fleet import Fleet
from arise.engines.vllm.launch import VllmSpec, max_lora_rank
from arise.engines.vllm.spec import FleetSpec
from arise.engines.vllm.untied import untied_copy
from arise.errors import AriseError, Exit
from arise.ports import Format

CPU_HEAD_SIZES = (32, 64, 80, 96, 112, 128, 160, 192, 224, 256)
"""Head sizes that vLLM's attention supports on a CPU."""
TRAINER_COPIES, SERVER_COPIES = 5, 2
"""fp32 copies of the weights. A trainer holds weights, gradient, two moments and a published copy, a server the sampled
weights and those that replace them."""
PROCESS_GIB = 0.8
"""Memory of a process before it loads a model: mostly the library's code."""

START_SERVERS = "start the servers that policy.sampler.addresses names, with `arise engines serve`"

Chosen = ArealConfig | VerlConfig
MakeFormat = Callable[[Config, Any], Format]


async def remote_engine(chosen: Chosen, config: Config, model: str, make_format: MakeFormat) -> RemoteEngine:
    """Start a trainer and its sampling servers for a model given by folder or name."""
    with _as_a_message():
        trainer, fleet_spec, policy = _checked(chosen, config, model, make_format)
    work = _work_folder(chosen)
    engine = RemoteEngine(policy, trainer, Fleet(fleet_spec(work)), work, recover_every=chosen.recover_every)
    try:
        return await engine.open()
    except EngineFault as fault:
        what, _, said = str(fault).partition("\n")
        remedy = f"read the log; its last lines:\n{said}" if said else START_SERVERS
        raise AriseError("engine", Exit.ENGINE, what, "nothing was trained", remedy) from None


async def require_machine(chosen: Chosen, config: Config) -> None:
    """Raise one error for all that `check_machine` finds, before minutes are spent on a warm start."""
    with _as_a_message():
        await check_machine(chosen, config)


@contextmanager
def _as_a_message() -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        what, _, remedy = str(error).rpartition(": ")
        what, remedy = (what, remedy) if what else (remedy, "change [policy] or [model] in the configuration")
        raise AriseError("engine", Exit.ENGINE, what, "nothing was started", remedy) from None


def check_environments(chosen: Chosen) -> str:
    """Return which environments will be used; raises ValueError if one is missing or of another version."""
    trainer = python_of(chosen.kind, chosen.environment, chosen.device)
    if chosen.sampler.addresses:
        return f"{trainer.parent.parent}, servers at {', '.join(chosen.sampler.addresses)}"
    return f"{trainer.parent.parent}, {python_of('vllm', chosen.sampler.environment, chosen.device).parent.parent}"


async def check_machine(chosen: Chosen, config: Config) -> str:
    """Check what does not depend on the model's files; return which environments will be used, raise ValueError."""
    found = check_environments(chosen)
    _require_places(chosen)
    if rank := lora_rank(config):
        max_lora_rank(rank)
    if chosen.device == "cpu":
        _require_memory(chosen, 0, rank > 0)
        if isinstance(config.model, SmallModel):
            _require_head_size(config.model.hidden // config.model.heads)
    else:
        _require_gpus(chosen)
        _require_flash_attention(chosen)
    if chosen.sampler.addresses:
        spec = FleetSpec(None, 0, chosen.sampler.addresses, frozenset(), 0, first_seconds=1.0, key=_key(chosen))
        try:
            await Fleet(replace(spec, release=recipes()["vllm"].version)).reach()
        except EngineFault as fault:
            raise ValueError(f"{fault}: {START_SERVERS}") from None
    return found


def check_model(chosen: Chosen, config: Config, model: str, make_format: MakeFormat) -> None:
    """Check what depends on the model's files; raises ValueError."""
    _checked(chosen, config, model, make_format)


def _checked(
    chosen: Chosen, config: Config, model: str, make_format: MakeFormat
) -> tuple[TrainerSpec, Callable[[Path], FleetSpec], Policy]:
    check_environments(chosen)
    rank = lora_rank(config)
    folder = model_folder(model)
    tokenizer, facts = tokenizer_and_config(str(folder or model))
    if chosen.device == "cpu":
        if folder is None:
            raise ValueError(f"on a CPU the weights of {model} are prepared for vLLM: download it, name its folder")
        _require_head_size(getattr(facts, "head_dim", None) or facts.hidden_size // facts.num_attention_heads)
        _require_memory(chosen, parameters_in(folder), rank > 0)
    chat = None if config.agent.kind == "shell" else make_format(config, tokenizer)
    end_ids = ChatFormat(tokenizer).end_ids if chat is None else chat.stop_ids
    window = min(config.sampling.context_length, facts.max_position_embeddings)
    policy = Policy(
        str(folder or model),
        tokenizer,
        window,
        facts.vocab_size,
        frozenset(i for i in end_ids if i < facts.vocab_size),
        chat,
    )
    trainer = TrainerSpec(
        chosen.kind,
        python_of(chosen.kind, chosen.environment, chosen.device),
        policy.folder,
        processes=chosen.processes,
        device=chosen.device,
        precision=config.optimizer.precision,
        token_budget=chosen.token_budget,
        gradient_checkpointing=chosen.gradient_checkpointing,
        backend=getattr(chosen, "backend", ""),
        lora_rank=rank,
        threads=chosen.threads,
        launch=chosen.launch,
        host=chosen.host or "127.0.0.1",
        start_seconds=chosen.start_seconds,
    )
    return trainer, partial(_fleet_spec, chosen, config, policy), policy


def _fleet_spec(chosen: Chosen, config: Config, policy: Policy, work: Path) -> FleetSpec:
    sampler = chosen.sampler
    start = None
    if not sampler.addresses:
        server = _server_spec(chosen, config, policy.window, first_gpu=0 if chosen.launch else chosen.processes)
        start = partial(server.start, logs=work / "logs")
    return FleetSpec(
        start,
        sampler.servers,
        sampler.addresses,
        policy.end_ids,
        policy.window,
        start_seconds=sampler.start_seconds,
        key=_key(chosen),
        base=policy.folder if lora_rank(config) else "",
    )


def _key(chosen: Chosen) -> str:
    name = chosen.sampler.key_env
    if name and not os.environ.get(name):
        raise ValueError(
            f"policy.sampler.key_env names {name}, which is not set: export it with the key of the servers"
        )
    return os.environ[name] if name else ""


def _server_spec(chosen: Chosen, config: Config, window: int, first_gpu: int) -> VllmSpec:
    sampler = chosen.sampler
    return VllmSpec(
        python_of("vllm", sampler.environment, chosen.device),
        window,
        device=chosen.device,
        precision=config.optimizer.precision,
        gpus=sampler.gpus,
        first_gpu=first_gpu,
        cache_gib=sampler.cache_gib,
        rows=sampler.rows,
        threads=sampler.threads,
        arguments=sampler.arguments,
        lora_rank=lora_rank(config),
    )


def lora_rank(config: Config) -> int:
    """Return the rank of the adapters that are trained; 0 where all weights are."""
    return config.model.lora_rank if config.model.kind == "pretrained" else 0


def server_command(config: Config, host: str, port: int, number: int) -> tuple[list[str], dict[str, str]]:
    """Return the command and the variables of one sampling server, to be listed in `policy.sampler.addresses`."""
    chosen = config.policy
    if not isinstance(chosen, ArealConfig | VerlConfig) or config.model.kind != "pretrained":
        remedy = "name a configuration with policy.kind = 'areal' or 'verl' and model.kind = 'pretrained'"
        raise AriseError("engine", Exit.CONFIG, "no sampling server is configured", "nothing was started", remedy)
    with _as_a_message():
        folder = str(model_folder(config.model.name) or config.model.name)
        _, facts = tokenizer_and_config(folder)
        if chosen.device == "cpu" and not lora_rank(config):
            folder = untied_copy(folder, cache_root() / "engines" / "untied" / model_digest(folder)[:16])
        window = min(config.sampling.context_length, facts.max_position_embeddings)
        server = _server_spec(chosen, config, window, first_gpu=0)
    return server.command(folder, port, host), server.environment(number)


def _require_places(chosen: Chosen) -> None:
    """Raise ValueError unless the folder of the weights, the launcher and this machine's name can be used."""
    if chosen.weights_dir:
        try:
            Path(chosen.weights_dir).expanduser().mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryDirectory(dir=Path(chosen.weights_dir).expanduser()).cleanup()
        except OSError as error:
            raise ValueError(
                f"policy.weights_dir {chosen.weights_dir} cannot be written ({error.strerror}): name another folder"
            ) from None
    if chosen.launch and not shutil.which(chosen.launch[0]):
        raise ValueError(f"policy.launch starts {chosen.launch[0]}, which is not on this machine: name its path")
    if chosen.host:
        try:
            socket.create_server((chosen.host, 0)).close()
        except OSError as error:
            raise ValueError(
                f"policy.host {chosen.host} is no name of this machine ({error.strerror}): "
                "give the one under which the others reach it"
            ) from None


def _require_flash_attention(chosen: Chosen) -> None:
    """Raise ValueError if processes divide rows in an environment that cannot."""
    folder = python_of(chosen.kind, chosen.environment, chosen.device).parent.parent
    backend = getattr(chosen, "backend", "")
    if "c" in backend and not list(folder.glob("lib/python*/site-packages/flash_attn")):
        raise ValueError(
            f"policy.backend {backend} divides rows (c), and {folder} lacks flash-attn: "
            f"run `{folder}/bin/python -m pip install flash-attn --no-build-isolation`, or leave out c"
        )


def _require_gpus(chosen: Chosen) -> None:
    found = gpus_here()
    servers = 0 if chosen.sampler.addresses else chosen.sampler.servers
    trainers = 0 if chosen.launch else chosen.processes
    needed = trainers + servers * chosen.sampler.gpus
    if found < needed:
        parts = f"{trainers} trainer processes and {servers} servers of {chosen.sampler.gpus}"
        raise ValueError(
            f"{parts} need {needed} GPUs, this machine has {found}: use fewer, or set policy.device = 'cpu'"
        )


def _require_head_size(size: int) -> None:
    if size not in CPU_HEAD_SIZES:
        sizes = ", ".join(map(str, CPU_HEAD_SIZES))
        raise ValueError(
            f"the model's attention heads have {size} values; vLLM on a CPU computes {sizes}: "
            "choose another model (for model.kind = 'small', set model.heads)"
        )


def _require_memory(chosen: Chosen, parameters: int, adapters: bool) -> None:
    servers = 0 if chosen.sampler.addresses else chosen.sampler.servers
    trainer, server = (2, 1) if adapters else (TRAINER_COPIES, SERVER_COPIES)  # the base model has no moments
    weights = 4 * parameters * (trainer + server * servers) / 2**30
    needed = weights + PROCESS_GIB * (chosen.processes + servers) + servers * max(1, round(chosen.sampler.cache_gib))
    free = psutil.virtual_memory().available / 2**30
    if needed > free:
        raise ValueError(
            f"{chosen.processes} trainer processes and {servers} servers need about {needed:.1f} GiB of memory, "
            f"{free:.1f} are available: use a smaller model, fewer servers, or less policy.sampler.cache_gib"
        )


def _work_folder(chosen: Chosen) -> Path:
    """Make a folder of this run for weights and logs; those whose run has died are removed.

    Machines share `weights_dir`, and a number of a process means nothing on another one.
    """
    root = Path(chosen.weights_dir).expanduser() if chosen.weights_dir else cache_root() / "engines" / "runs"
    root.mkdir(parents=True, exist_ok=True)
    here = f"run-{socket.gethostname()}-"
    for left in root.glob(f"{glob.escape(here)}*-*"):
        owner = left.name.removeprefix(here).partition("-")[0]
        if owner.isdigit() and not psutil.pid_exists(int(owner)):
            shutil.rmtree(left, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"{here}{os.getpid()}-", dir=root))
