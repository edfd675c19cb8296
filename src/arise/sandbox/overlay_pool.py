"""Sandboxes of the fast path, and verification on the file system that an attempt left."""

import asyncio
import contextlib
import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from arise.ports import Sandbox, SandboxLost, TreeRefused
from arise.sandbox.bubblewrap import with_env
from arise.sandbox.cgroup import find_cgroups
from arise.sandbox.health import become_ready
from arise.sandbox.image_sandbox import ImageSandbox, Left, environment, remove_scratch, require_user
from arise.sandbox.images import Image, Images, Pull
from arise.sandbox.launch import start
from arise.sandbox.layers import in_user_namespace
from arise.sandbox.layout import SandboxUnavailable
from arise.sandbox.limits import MIB, Limits
from arise.sandbox.network import networks
from arise.sandbox.overlay import IN_MEMORY, MAX_OPTIONS, ImageLayout
from arise.sandbox.owner import new_name
from arise.sandbox.pool import CLOSED, missing_limits, sweep, sweep_groups
from arise.sandbox.programs import Program, require_program
from arise.sandbox.restore import Restored, restore
from arise.sandbox.tree import FOLDER
from arise.sandbox.userns import UserNamespaces
from arise.sandbox.verification import SAFE_ENVIRONMENT, fill_tests, result_of
from arise.types import BARE, Place, SandboxCapabilities, VerifierJob, VerifierRun
from arise.types.sandbox import LOGS, TESTS

STARTING_AT_ONCE = 4
UNSIZED = f"without root, only up to {IN_MEMORY // MIB} MB of storage are capped; a task that asks for more is not"
ARTIFACTS = "/logs/artifacts"
MEMORY_MB, STORAGE_MB, PROCESSES = 2048.0, 10240.0, 512


def why_not_fast() -> str:
    """Return why the fast path is unavailable on this machine; "" if it is available."""
    if os.geteuid() != 0:
        return "only root can mount the file system of an image"
    missing = [name for name in ("bwrap", "unshare", "mount", "mkfs.ext4") if shutil.which(name) is None]
    return f"{', '.join(missing)} not installed" if missing else ""


def limits_of(place: Place) -> Limits:
    """Return the limits that a place requests, with Harbor's defaults for those it does not set."""
    disk = int((place.storage_mb or STORAGE_MB) * MIB)
    memory = int((place.memory_mb or MEMORY_MB) * MIB)
    small = disk <= IN_MEMORY
    return Limits(
        memory_bytes=memory + disk if small else memory,
        processes=PROCESSES,
        disk_bytes=disk,
        tmp_bytes=16 * MIB,
        open_files=20_000,
        cpus=place.cpus or None,
        in_memory=small,
    )


class OverlayPool:
    """`async with OverlayPool() as pool: box = await pool.open(Place(dockerfile=...))`; also verifies attempts."""

    def __init__(self, program: Program | None = None, pull: Pull = "missing") -> None:
        self.program = program or require_program()
        self.images = Images(self.program, pull)
        self.cgroups = find_cgroups()
        self._namespaces = UserNamespaces()
        self._slots = asyncio.Semaphore(STARTING_AT_ONCE)
        self._open: set[ImageSandbox] = set()
        self._closed = False

    @property
    def capabilities(self) -> SandboxCapabilities:
        return SandboxCapabilities(
            "overlay",
            images=True,
            networks=networks(),
            users=True,
            healthcheck=True,
            setup=True,
            separate_verifier=True,
            steps=True,
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """Return the limits that this machine does not enforce, for the run record."""
        notes = missing_limits(self.cgroups)
        return (*notes, UNSIZED) if in_user_namespace() else notes

    async def start(self) -> None:
        """Remove leftovers of dead runs; raise SandboxUnavailable if the fast path is unavailable."""
        if reason := why_not_fast():
            raise SandboxUnavailable(f"the fast path cannot be used: {reason}", 'set sandbox.kind = "podman"')
        sweep(self.cgroups)

    async def open(self, place: Place = BARE) -> ImageSandbox:
        """Open a fresh sandbox on the image of `place`, set up and healthy."""
        image = await self.images.get(place)
        workdir = place.workdir or image.workdir
        user = require_user(image, place.user or image.user)
        layout = ImageLayout(
            limits_of(place),
            workdir,
            mounts=place.mounts,
            lower=image.layers,
            env=environment(image, user, place.env),
            user=user,
        )
        sandbox = await self._start(layout, image, place)
        try:
            await sandbox.connect()
            await become_ready(sandbox, place)
        except BaseException:
            await sandbox.close()
            raise
        return sandbox

    async def _start(
        self, layout: ImageLayout, image: Image, place: Place, passed: Sequence[int] = (), scratch: Path | None = None
    ) -> ImageSandbox:
        if self._closed:
            raise SandboxLost(CLOSED)
        options = len(":".join(layout.lower))
        if options > MAX_OPTIONS:
            raise SandboxLost(f"the image has too many layers ({len(layout.lower)}) for one mount: squash them")
        scratch = scratch or Path(tempfile.gettempdir(), new_name())
        async with self._slots:
            namespace = await self._namespaces.take()
            try:
                layout = replace(layout, scratch=scratch, namespace=namespace, passed=(namespace, *passed))
                await asyncio.to_thread(layout.prepare)
                sandbox = await start(layout, self.cgroups, ImageSandbox)
            except BaseException:
                remove_scratch(scratch)
                raise
            finally:
                os.close(namespace)
        assert isinstance(sandbox, ImageSandbox)
        sandbox.image, sandbox.user, sandbox.place, sandbox.scratch = image, layout.user, place, scratch
        self._open.add(sandbox)
        sandbox.on_close = self._forget
        outer = f"/proc/{sandbox.process.pid}"
        upper = os.open(f"{outer}/root{layout.upper}", FOLDER)
        mounts = os.open(f"{outer}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)  # keeps the layers after the processes exit
        sandbox.held += [upper, mounts]
        sandbox.left = Left(Path(f"/proc/self/fd/{upper}"), str(layout.upper), mounts)
        return sandbox

    def _forget(self, sandbox: object) -> None:
        self._open.discard(sandbox)

    async def verify(self, attempt: Sandbox, job: VerifierJob) -> VerifierRun:
        """Run test.sh on the file system that an attempt left, or in a separate environment."""
        assert isinstance(attempt, ImageSandbox), "an attempt is verified by the pool that opened it"
        await attempt.settle()
        if job.separate:
            return await self._verify_apart(attempt, job)
        scratch = Path(tempfile.gettempdir(), new_name())
        scratch.mkdir(0o700)
        try:
            try:
                done = await asyncio.to_thread(_restore, attempt, scratch / "restored")
            except TreeRefused as error:
                remove_scratch(scratch)
                return VerifierRun(refused=str(error))
            layout, passed = _over(attempt, job, scratch / "restored", tuple(done.programs))
            sandbox = await self._start(layout, attempt.image, job.place, passed, scratch)
        except BaseException:
            remove_scratch(scratch)
            raise
        try:
            await sandbox.connect()
            if done.loader_changed:
                await sandbox.run_command("ldconfig", 60)
            sandbox.left_out += done.notes()
            return await run_tests(sandbox, job)
        finally:
            await sandbox.close()

    async def _verify_apart(self, attempt: ImageSandbox, job: VerifierJob) -> VerifierRun:
        """Copy only the artifacts of the attempt to an environment that the agent never saw."""
        own = job.place.dockerfile is not None or bool(job.place.image)
        place = job.place if own else replace(job.place, image=attempt.image.id)
        image = await self.images.get(place) if own else attempt.image
        sandbox = await self._start(_alone(image, place, job), image, place)
        try:
            await sandbox.connect()
            with tempfile.TemporaryDirectory(prefix=f"{new_name()}-", ignore_cleanup_errors=True) as folder:
                for at, source in enumerate((*job.artifacts, ARTIFACTS)):
                    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                        sandbox.left_out += await attempt.get(source, Path(folder, str(at)))
                        await sandbox.put(Path(folder, str(at)), source)
            return await run_tests(sandbox, job)
        except TreeRefused as error:
            return VerifierRun(refused=str(error))
        finally:
            await sandbox.close()

    async def close(self) -> None:
        """Close every sandbox and return when all their processes are dead."""
        self._closed = True
        await asyncio.gather(*(sandbox.close() for sandbox in tuple(self._open)))
        await self._namespaces.close()
        sweep_groups(self.cgroups)

    async def __aenter__(self) -> Self:
        try:
            await self.start()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _restore(attempt: ImageSandbox, layer: Path) -> Restored:
    assert attempt.left is not None
    layer.mkdir(0o755)
    layers = [Path(folder) for folder in attempt.image.layers]
    return restore(attempt.left.upper, layers, layer, attempt.image.env, (TESTS, LOGS, "/run/arise"))


def _alone(image: Image, place: Place, job: VerifierJob) -> ImageLayout:
    """Return the layout of a verifier sandbox on an image."""
    user = require_user(image, job.user or place.user or image.user)
    return ImageLayout(
        limits_of(place),
        place.workdir or image.workdir,
        folders=(LOGS,),
        shown=(TESTS,),
        guard=(LOGS, TESTS),
        lower=image.layers,
        env=environment(image, user, place.env),
        user=user,
        watching=user.uid != 0,
    )


def _over(
    attempt: ImageSandbox, job: VerifierJob, layer: Path, programs: tuple[str, ...]
) -> tuple[ImageLayout, tuple[int, ...]]:
    """Return the layout of a verifier sandbox on what an attempt left, and the file descriptors it needs."""
    assert attempt.left is not None
    left = attempt.left
    layout = replace(
        _alone(attempt.image, job.place, job),
        workdir=attempt.workdir,
        lower=(str(layer), left.mounted, *attempt.image.layers),
        inside=left.namespace,
        added=programs,
    )
    return layout, (left.namespace,) if left.namespace >= 0 else ()


async def run_tests(sandbox: ImageSandbox, job: VerifierJob) -> VerifierRun:
    """Copy the tests into the sandbox and run test.sh under the guard."""
    await fill_tests(sandbox, job)
    sandbox.shown[TESTS].chmod(0o755)  # the user that runs the tests must be able to read them
    command = with_env(f"exec bash {TESTS}/test.sh", {**SAFE_ENVIRONMENT, **sandbox.env, **job.env})
    done = await sandbox.run_command(command, job.timeout, alone=True, guarded=True, user=sandbox.user.mark)
    return result_of(done, sandbox, guarded=True)
