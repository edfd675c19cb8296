"""Check whether this machine is ready for a run. Each finding has a result, and a remedy if something is missing."""

import asyncio
import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Literal, NamedTuple

import psutil

from arise.config import ArealConfig, Config, PolicyConfig, PretrainedModel, SmallModel, VerlConfig, WorldTasks
from arise.config.llm import EndpointConfig, ModelJudge
from arise.errors import AriseError, Exit
from arise.text.numbers import percent

GIB = 1 << 30
NEEDED_MEMORY, NEEDED_DISK = 3 * GIB, 2 * GIB
LEAST_FREE = 0.05
NEEDED_PYTHON = (3, 11)


class Finding(NamedTuple):
    """One check — `Finding("disk", "ok", "12 GiB free", "")`; a failure carries the exit code of a run."""

    name: str
    level: Literal["ok", "warning", "failure"]
    said: str
    remedy: str = ""
    exit_code: Exit = Exit.OK


def examine(config: Config, runs: Path) -> Iterator[Finding]:
    """Check everything that a run with this configuration needs, cheapest first; only endpoints need a network."""
    yield _python()
    packages = _packages(config)
    ready = packages.level == "ok"
    yield packages
    yield from _sandbox(config)
    yield _images(config)
    yield _disk(runs)
    yield _memory()
    yield _cores()
    yield _compiler()
    yield _tasks(config)
    yield from _imports(config)
    yield from _harnesses(config)
    yield from _endpoints(config)
    if ready:
        yield _engine(config)
        yield _start(config)


def _harnesses(config: Config) -> Iterator[Finding]:
    """Check the configured harness, then list which others are usable and how to install the rest."""
    from arise.harnesses.install import status
    from arise.harnesses.spec import names

    found = [status(name) for name in names()]
    for each in found:
        if each.name == config.agent.kind and not each.usable:
            yield Finding("harness", "failure", f"{each.name}: {each.said}", each.remedy, Exit.ENGINE)
        elif each.name == config.agent.kind:
            yield Finding("harness", "ok", f"{each.name}: {each.said}")
    usable, others = ([each.name for each in found if each.usable == wanted] for wanted in (True, False))
    said = f"usable: {', '.join(usable) or 'none'}" + (f"; not installed: {', '.join(others)}" if others else "")
    yield Finding("harnesses", "ok", said, "arise harness install NAME" if others else "")


def _python() -> Finding:
    major, minor, patch = sys.version_info[:3]
    said = f"{major}.{minor}.{patch}"
    if (major, minor) < NEEDED_PYTHON:
        return Finding("python", "failure", f"{said}, 3.11 or newer is needed", "install Python 3.11", Exit.ENGINE)
    return Finding("python", "ok", said)


def _packages(config: Config) -> Finding:
    wanted = ["torch", "transformers", "safetensors"]
    wanted += ["peft"] if isinstance(config.model, PretrainedModel) and config.model.lora_rank else []
    missing = [name for name in wanted if importlib.util.find_spec(name) is None]
    if missing:
        said, remedy = f"{' and '.join(missing)} not installed", f"pip install {_this_package('train')}"
        return Finding("packages", "failure", said, remedy, Exit.ENGINE)
    return Finding("packages", "ok", f"{', '.join(wanted)} are installed")


def _this_package(extra: str) -> str:
    """Return the argument of pip install: the checkout that contains this code, or the package name."""
    root = Path(__file__).parents[3]
    return f"-e '{root}[{extra}]'" if (root / "pyproject.toml").is_file() else f"'arise-rl[{extra}]'"


def _sandbox(config: Config) -> Iterator[Finding]:
    """Open a sandbox as a run does, and check which limits the kernel enforces."""
    from arise.compose.sandboxes import ENFORCE
    from arise.sandbox import BubblewrapPool, SandboxLost, SandboxUnavailable

    async def opened() -> tuple[str, ...]:
        async with BubblewrapPool(1) as pool:
            return pool.notes

    try:
        missing = asyncio.run(opened())
    except SandboxUnavailable as error:
        yield Finding("bubblewrap", "failure", f"no sandbox starts: {error.what}", error.remedy, Exit.ENGINE)
        return
    except SandboxLost as error:
        yield Finding("bubblewrap", "failure", f"no sandbox starts: {error}", "try on an idle machine", Exit.ENGINE)
        return
    yield Finding("bubblewrap", "ok", "a sandbox starts")
    for note in missing:
        if config.sandbox.require_limits:
            yield Finding("limits", "failure", note, ENFORCE, Exit.ENGINE)
        else:
            yield Finding("limits", "warning", note, ENFORCE)
    if not missing:
        yield Finding("limits", "ok", "the kernel caps memory, processes and processor share of every sandbox")


def _images(config: Config) -> Finding:
    from arise.compose.sandboxes import images_here

    said, remedy = images_here(config)
    return Finding("images", "ok", said, remedy)


def _compiler() -> Finding:
    """Check whether parts of ARISE can be compiled on this machine."""
    from arise.native.build import COST, REMEDY, obstacle

    reason = obstacle()
    if reason:
        return Finding("compiler", "warning", f"{reason}: plain code runs, {COST}", REMEDY)
    return Finding("compiler", "ok", "sampling and sandboxes run compiled code")


def _disk(runs: Path) -> Finding:
    there = _nearest(runs)
    usage = shutil.disk_usage(there)
    said = f"{usage.free / GIB:.1f} GiB free ({percent(usage.free / usage.total)}) at {there}"
    if not _writable(there):
        return Finding("disk", "failure", f"{there} cannot be written", "give another --run-dir", Exit.STORAGE)
    if usage.free < LEAST_FREE * usage.total or usage.free < NEEDED_DISK / 4:
        return Finding("disk", "failure", said, "free disk space, or give another --run-dir", Exit.STORAGE)
    if usage.free < NEEDED_DISK:
        return Finding("disk", "warning", said, f"a long run needs {NEEDED_DISK / GIB:.0f} GiB")
    return Finding("disk", "ok", said)


def _nearest(folder: Path) -> Path:
    """Return the folder, or its nearest existing parent."""
    return next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())


def _writable(there: Path) -> bool:
    return there.is_dir() and os.access(there, os.W_OK)


def _memory() -> Finding:
    free = psutil.virtual_memory().available
    said = f"{free / GIB:.1f} GiB available"
    if free < NEEDED_MEMORY:
        return Finding(
            "memory", "warning", said, f"a run needs up to {NEEDED_MEMORY / GIB:.0f} GiB: end other programs"
        )
    return Finding("memory", "ok", said)


def _cores() -> Finding:
    cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    threads = os.environ.get("OMP_NUM_THREADS", "as many as cores")
    said = f"{cores} cores, load {load:.1f}, threads for torch: {threads}"
    if load > cores / 2 and threads != "1":
        remedy = "on a busy machine threads wait for each other: wait, or set OMP_NUM_THREADS=1"
        return Finding("cores", "warning", said, remedy)
    return Finding("cores", "ok", said)


def _tasks(config: Config) -> Finding:
    from arise.compose.build import require_sound
    from arise.compose.corpora import tasks_of

    try:
        require_sound(config)
    except AriseError as error:
        return _refused("tasks", error)
    if isinstance(config.tasks, WorldTasks):
        said = f"the world makes {config.tasks.train_tasks} for training and {config.tasks.eval_tasks} held out"
        return Finding("tasks", "ok", said)
    train, held_out = tasks_of(config, Path())
    return Finding("tasks", "ok", f"{len(train)} for training and {len(held_out)} held out can be loaded")


def _refused(name: str, error: AriseError) -> Finding:
    return Finding(name, "failure", error.what, error.remedy, error.exit_code)


def _imports(config: Config) -> Iterator[Finding]:
    """Check that every custom part can be imported and has the methods of its port."""
    from arise.compose.imports import check_imports

    try:
        found = check_imports(config)
    except AriseError as error:
        yield _refused("own parts", error)
        return
    if found:
        yield Finding("own parts", "ok", ", ".join(part.path for part in found))


def _engine(config: Config) -> Finding:
    """Check that the engine can be imported and that the configured device works."""
    if isinstance(config.policy, ArealConfig | VerlConfig):
        from arise.compose.policies import check_remote

        try:
            found = asyncio.run(check_remote(config.policy, config))
            return Finding("engine", "ok", f"{config.policy.kind} and vllm: {found}")
        except ValueError as error:
            what, _, remedy = str(error).rpartition(": ")
            return Finding("engine", "failure", what, remedy, Exit.ENGINE)
    if not isinstance(config.policy, PolicyConfig):
        return Finding("engine", "ok", config.policy.path)
    try:
        from arise.engines.local.device import torch_on

        version = torch_on(config.policy.device)
    except (ImportError, RuntimeError, AssertionError) as error:
        said = f"policy.device = {config.policy.device!r} cannot be used: {str(error).splitlines()[0]}"
        return Finding("engine", "failure", said, "set policy.device = 'cpu'", Exit.ENGINE)
    return Finding("engine", "ok", f"torch {version} on {config.policy.device}")


def _start(config: Config) -> Finding:
    """Check that the model exists or can be created; the first run with a warm start fills the cache."""
    from arise.compose.starts import cached_start
    from arise.engines.local.pretrained import PULLABLE, cache_root

    if not isinstance(config.model, SmallModel):
        from arise.engines.local.models import model_folder

        try:
            folder = model_folder(config.model.name)
        except ValueError as error:
            pull = f"arise models pull {config.model.name}" if config.model.name in PULLABLE else ""
            remedy = pull or "set model.name to a folder, a hub name, or one that `arise models list` shows"
            return Finding("model", "failure", str(error), remedy, Exit.CONFIG)
        if folder is None:
            said = f"{config.model.name} is not a folder here: the first run looks for it on the hub"
            return Finding("model", "warning", said, "without a network, set model.name to a folder that holds it")
        if not config.model.demonstrations:
            return Finding("model", "ok", f"{config.model.name} is in {folder}")
    if cached_start(config).is_dir():
        return Finding("warm start", "ok", f"cached in {cached_start(config)}")
    if not _writable(_nearest(cache_root())):
        remedy = "export ARISE_CACHE=FOLDER that can be written"
        return Finding("warm start", "failure", f"the cache {cache_root()} cannot be written", remedy, Exit.STORAGE)
    return Finding("warm start", "ok", f"none cached in {cache_root()}: the first run makes one, in a few minutes")


def _endpoints(config: Config) -> Iterator[Finding]:
    """Make the first call to every model that a run would call."""
    named = {"judge": config.judge, "reflector": config.reflector, "references": config.criteria}
    found = {name: getattr(section, "endpoint", None) for name, section in named.items()}
    if found["judge"] is None:
        yield Finding("judge", "ok", f"{config.judge.kind}: no key and no network needed")
    for name, endpoint in found.items():
        if endpoint is not None:
            yield _answers(name, endpoint, config)


def _answers(name: str, endpoint: EndpointConfig, config: Config) -> Finding:
    from arise.llm.client.spend import Budget
    from arise.llm.first_call.first_call import first_call
    from arise.llm.first_call.needs import agent_needs, expected_of_run, run_needs
    from arise.llm.first_call.served import price_text
    from arise.run.calls import Store

    needs = agent_needs(config.agent) if name == "references" else run_needs(config)

    async def ask() -> tuple[str, bool]:
        with closing(Store(":memory:")) as store:
            budget = Budget(store, config.budget)
            served = await first_call(endpoint, store, budget, name, needs)
            said = served.line(endpoint, needs, price_text(endpoint, budget.price(endpoint, served.tokens)))
            if isinstance(config.judge, ModelJudge) and name == "judge" and not served.unchecked:
                said += f"; per iteration {expected_of_run(served, config.judge, config, budget)}"
            return said, not served.unchecked and (served.control is True or not needs.judges)

    try:
        said, sound = asyncio.run(ask())
    except AriseError as error:
        return _refused(name, error)
    if sound:
        return Finding(name, "ok", said)
    return Finding(name, "warning", said, f"arise judge check --model {endpoint.model} --base-url {endpoint.base_url}")
