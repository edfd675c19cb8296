"""The sandboxes of a run: their number, their limits, and the paths hidden from the agent."""

import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from arise.compose.harnesses import HarnessParts
from arise.compose.imports import imported
from arise.config import Config, HarborTasks
from arise.config.records import HarborSandboxConfig, ImportedSandbox, SandboxConfig
from arise.errors import AriseError, Exit
from arise.harbor.pool import HarborPool, harbor_capabilities
from arise.harbor.trials import HarborEnvironment
from arise.ports import SandboxPool, VerifierPool
from arise.rollouts.oracle import TrialPools
from arise.rollouts.verifier import Verifier
from arise.sandbox import (
    BubblewrapVerifierPool,
    SandboxUnavailable,
    bubblewrap_capabilities,
    missing_limits,
)
from arise.sandbox.cgroup import find_cgroups
from arise.sandbox.choose import ChosenPool, Equipment, Kind, capabilities, image_kind, why_no_images
from arise.sandbox.layers import in_user_namespace
from arise.sandbox.network import networks
from arise.types import Place, SandboxCapabilities

ENFORCE = (
    "run as root, in a container with --privileged, or as a user with: systemd-run --user --scope arise ... "
    "(for cpu, user@.service needs Delegate=cpu memory pids)"
)


log = logging.getLogger(__name__)


@asynccontextmanager
async def _started(pool: SandboxPool) -> AsyncIterator[SandboxPool]:
    """Start a pool if it is an async context manager, and close it at exit."""
    if isinstance(pool, AbstractAsyncContextManager):
        async with pool:
            yield pool
        return
    try:
        yield pool
    finally:
        await pool.close()


Pools = tuple[SandboxPool, VerifierPool]
"""The sandbox pools of agents and of verifiers."""


@asynccontextmanager
async def _on_this_machine(
    chosen: SandboxConfig, size: int, hidden: tuple[str, ...], equipment: Equipment | None = None
) -> AsyncIterator[Pools]:
    tests, network = min(8, size), chosen.network
    async with ChosenPool(chosen.kind, size, tests, hidden, chosen.pull, log.info, network, equipment) as both:
        yield both, both


@asynccontextmanager
async def _of_your_own(chosen: ImportedSandbox, size: int, hidden: tuple[str, ...]) -> AsyncIterator[Pools]:
    """Open a custom sandbox pool; its attempts are verified in bubblewrap."""
    own: SandboxPool = imported("sandbox", chosen, size=size, hidden=hidden)
    async with _started(own) as pool, BubblewrapVerifierPool(min(8, size), hidden=hidden) as tests:
        yield pool, tests


@asynccontextmanager
async def _of_harbor(chosen: HarborSandboxConfig, size: int, hidden: tuple[str, ...]) -> AsyncIterator[Pools]:  # noqa: ARG001
    async with HarborPool(HarborEnvironment(chosen.environment, chosen.options)) as both:
        yield both, both


SANDBOXES: dict[str, Callable[[Any, int, tuple[str, ...]], AbstractAsyncContextManager[Pools]]] = {
    "auto": _on_this_machine,
    "harbor": _of_harbor,
    "import": _of_your_own,
}
"""By the section's default kind; each receives its section, the number of open sandboxes, and the paths to hide."""


@asynccontextmanager
async def open_sandboxes(
    config: Config, folder: Path, harness: HarnessParts | None = None
) -> AsyncIterator[tuple[SandboxPool, Verifier]]:
    """Open sandboxes for all concurrent attempts and for the verifier; log the limits that are not enforced.

    Harness sandboxes mount its installation and the endpoint's socket; verifier sandboxes never do.
    """
    require_limits(config)
    batches = 1 + config.train.max_staleness
    ready = min(32, batches * config.train.tasks_per_iteration * config.train.group_size)
    hidden = tuple(map(str, private_paths(config, folder)))
    try:
        async with _opened(config, ready, hidden, harness) as (sandboxes, tests):
            verifier = Verifier(tests)
            require_limits(config, verifier.notes)
            for note in verifier.notes:
                log.warning("limit not enforced by the kernel: %s", note)
            yield sandboxes, verifier
    except SandboxUnavailable as error:
        raise AriseError("sandbox", Exit.ENGINE, error.what, "nothing was run", error.remedy) from None


@asynccontextmanager
async def _opened(
    config: Config, size: int, hidden: tuple[str, ...], harness: HarnessParts | None
) -> AsyncIterator[Pools]:
    opened: AbstractAsyncContextManager[Pools]
    if harness is not None:
        assert isinstance(config.sandbox, SandboxConfig), "harnesses run in sandboxes of this machine"
        opened = _on_this_machine(config.sandbox, size, hidden, harness.equipment)
    else:
        opened = SANDBOXES[type(config.sandbox).model_fields["kind"].default](config.sandbox, size, hidden)
    async with opened as pools:
        yield pools


def capabilities_of(config: Config) -> Callable[[Place], SandboxCapabilities]:
    """Return a function from a place to the capabilities of the run's sandboxes, without opening one.

    Attempts in custom sandboxes are verified in bubblewrap, so a task that needs its own image is refused there.
    """
    chosen = config.sandbox
    if isinstance(chosen, ImportedSandbox):
        return offers("bubblewrap")
    return (lambda _: harbor_capabilities()) if isinstance(chosen, HarborSandboxConfig) else offers(chosen.kind)


def offers(kind: Kind) -> Callable[[Place], SandboxCapabilities]:
    """Return the same function for a sandbox kind; a task without an image always runs in bubblewrap."""
    plain, images = bubblewrap_capabilities(), capabilities(kind)
    return lambda place: images if place.image or place.dockerfile is not None else plain


def images_here(config: Config) -> tuple[str, str]:
    """Return how tasks with an image run on this machine, and what would make them run, or run with a network."""
    if not isinstance(config.sandbox, SandboxConfig):
        return f'sandbox.kind is "{config.sandbox.kind}"', ""
    kind, reason = image_kind(config.sandbox.kind)
    if kind is None:
        return f"no task with an image can run: {reason}", why_no_images(config.sandbox.kind)[1]
    said = f"tasks with an image run in {kind}{' without root' if in_user_namespace() else ''}: {reason}"
    return (said, "") if "public" in networks() else (f"{said}; no network", "apt-get install slirp4netns")


@asynccontextmanager
async def trial_pools(
    size: int, kind: Kind = "auto", network: str = "public", tell: Callable[[str], None] | None = None
) -> AsyncIterator[TrialPools]:
    """Open sandboxes to check tasks without a run."""
    async with ChosenPool(kind, size, size, tell=tell, network=network) as pool:
        yield TrialPools(pool, Verifier(pool))


def require_limits(config: Config, missing: Sequence[str] | None = None) -> None:
    """Raise if `sandbox.require_limits` is set and this machine does not enforce every limit."""
    if not config.sandbox.require_limits:
        return
    missing = missing_limits(find_cgroups()) if missing is None else missing
    if missing:
        raise AriseError(
            "sandbox",
            Exit.ENGINE,
            "sandbox.require_limits = true, and the kernel does not enforce every limit here: " + "; ".join(missing),
            "nothing was started",
            f"{ENFORCE}; or set sandbox.require_limits = false",
        )


def private_paths(config: Config, folder: Path) -> Iterator[Path]:
    """Yield the paths that agents must not read: this run, its sibling runs, and tasks with their tests."""
    here = folder.resolve()
    yield here
    beside = [path for path in here.parent.iterdir() if path.is_dir() and path != here]
    runs = [path for path in beside if (path / "run.db").exists()]
    # Hide a folder that contains only runs as a whole, because new runs may start there during this one.
    yield from runs if len(runs) < len(beside) else [here.parent]
    if isinstance(config.tasks, HarborTasks):
        yield from map(Path, (config.tasks.train, config.tasks.evaluation))
