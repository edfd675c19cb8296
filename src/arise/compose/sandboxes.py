"""The sandboxes of a run: as many as it needs, blind to runs, tasks and ARISE itself, with the limits it asks for."""

import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from arise.compose.harnesses import HarnessParts
from arise.compose.imports import imported
from arise.config import Config, HarborTasks
from arise.errors import AriseError, Exit
from arise.ports import SandboxPool
from arise.rollouts.oracle import TrialPools
from arise.rollouts.verifier import Verifier
from arise.sandbox import (
    BubblewrapPool,
    BubblewrapVerifierPool,
    SandboxUnavailable,
    bubblewrap_capabilities,
    missing_limits,
)
from arise.sandbox.cgroup import find_cgroups
from arise.types import SandboxCapabilities

ENFORCE = (
    "run as root, in a container with --privileged, or as a user with: systemd-run --user --scope arise ... "
    "(for cpu, user@.service needs Delegate=cpu memory pids)"
)


log = logging.getLogger(__name__)

SANDBOXES: dict[str, Callable[[Any, int, tuple[str, ...]], SandboxPool]] = {
    "bubblewrap": lambda _, size, hidden: BubblewrapPool(size, hidden=hidden),
    "import": lambda chosen, size, hidden: imported("sandbox", chosen, size=size, hidden=hidden),
}
"""By `sandbox.kind`; each is given its section, how many sandboxes are open at a time, and the paths to hide."""


@asynccontextmanager
async def _started(pool: SandboxPool) -> AsyncIterator[SandboxPool]:
    """Start a pool that is an async context manager, and close any."""
    if isinstance(pool, AbstractAsyncContextManager):
        async with pool:
            yield pool
        return
    try:
        yield pool
    finally:
        await pool.close()


@asynccontextmanager
async def open_sandboxes(
    config: Config, folder: Path, harness: HarnessParts | None = None
) -> AsyncIterator[tuple[SandboxPool, Verifier]]:
    """Open sandboxes for as many attempts as run together, and the verifier's own; log which limits are missing.

    Those of a harness show its installation and the endpoint's socket; the verifier's never do.
    """
    require_limits(config)
    batches = 1 + config.train.max_staleness
    ready = min(32, batches * config.train.tasks_per_iteration * config.train.group_size)
    hidden = tuple(map(str, private_paths(config, folder)))
    try:
        async with (
            _started(_pool(config, ready, hidden, harness)) as sandboxes,
            BubblewrapVerifierPool(min(8, ready), hidden=hidden) as tests,
        ):
            verifier = Verifier(tests)
            require_limits(config, verifier.notes)
            for note in verifier.notes:
                log.warning("limit not enforced by the kernel: %s", note)
            yield sandboxes, verifier
    except SandboxUnavailable as error:
        raise AriseError("sandbox", Exit.ENGINE, error.what, "nothing was run", error.remedy) from None


def _pool(config: Config, size: int, hidden: tuple[str, ...], harness: HarnessParts | None) -> SandboxPool:
    if harness is None:
        return SANDBOXES[config.sandbox.kind](config.sandbox, size, hidden)
    return BubblewrapPool(size, harness.limits, read_only=harness.seen, hidden=hidden)


def capabilities_of(config: Config) -> SandboxCapabilities:  # noqa: ARG001 - one kind of sandbox so far
    """What the sandboxes of a run offer its tasks, known before any is opened."""
    return bubblewrap_capabilities()


@asynccontextmanager
async def trial_pools(size: int) -> AsyncIterator[TrialPools]:
    """Open sandboxes to try tasks out in, without any run."""
    async with BubblewrapPool(size) as sandboxes, BubblewrapVerifierPool(size) as tests:
        yield TrialPools(sandboxes, Verifier(tests))


def require_limits(config: Config, missing: Sequence[str] | None = None) -> None:
    """Refuse a machine that does not enforce every limit, where the configuration asks for all of them."""
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
    """What no agent may read: this run, the runs beside it, and tasks with their tests."""
    here = folder.resolve()
    yield here
    beside = [path for path in here.parent.iterdir() if path.is_dir() and path != here]
    runs = [path for path in beside if (path / "run.db").exists()]
    # A folder that holds nothing but runs is hidden as a whole: more of them may come while this one goes on.
    yield from runs if len(runs) < len(beside) else [here.parent]
    if isinstance(config.tasks, HarborTasks):
        yield from map(Path, (config.tasks.train, config.tasks.evaluation))
