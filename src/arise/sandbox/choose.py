"""Choose the sandbox kind of a place: the lightest that provides everything it requires, with the reason."""

import asyncio
import os
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Literal

from arise.ports import Sandbox
from arise.sandbox.containers import ContainerPool
from arise.sandbox.image_sandbox import ImageSandbox
from arise.sandbox.images import Pull
from arise.sandbox.layout import WORKDIR, SandboxUnavailable
from arise.sandbox.limits import MIB, Limits
from arise.sandbox.network import networks
from arise.sandbox.overlay_pool import OverlayPool, why_not_fast
from arise.sandbox.plain import beyond_plain
from arise.sandbox.pool import BubblewrapPool, bubblewrap_capabilities
from arise.sandbox.programs import Program, find_program, missing_program, require_program
from arise.sandbox.verification import BubblewrapVerifierPool
from arise.types import BARE, Place, SandboxCapabilities, VerifierJob, VerifierRun

Kind = Literal["auto", "bubblewrap", "overlay", "podman", "docker"]


@dataclass(frozen=True)
class Equipment:
    """What an agent needs inside its sandboxes besides the task; the sandboxes of tests never have it."""

    limits: Limits | None = None
    """Limits of a sandbox without an image; the memory of one with an image is at least as large."""
    read_only: tuple[str, ...] = ()
    """Host paths, shown at the same path in a sandbox without an image."""
    mounts: Callable[[], tuple[tuple[str, str], ...]] = tuple
    """Host paths and their paths in an image; called when the first image is opened."""

    def added_to(self, place: Place) -> Place:
        """Return the place of an image with this equipment."""
        memory = self.limits.memory_bytes / MIB if self.limits and place.memory_mb else 0.0
        return replace(place, mounts=(*place.mounts, *self.mounts()), memory_mb=max(place.memory_mb, memory))


def why_image(place: Place) -> str:
    """Return why a place needs an image; "" if plain bubblewrap is enough."""
    offered = bubblewrap_capabilities()
    if place.image:
        return f"it names the image {place.image}"
    if place.dockerfile is not None and (line := beyond_plain(place.dockerfile.read_text("utf-8", "replace"))):
        return f"its Dockerfile says {line[:60]!r}"
    if place.dockerfile is None:
        return ""  # without an image there is no other way to run it
    amounts = ((place.cpus, offered.cpus), (place.memory_mb, offered.memory_mb), (place.storage_mb, offered.storage_mb))
    if any(there is not None and asked > there for asked, there in amounts):
        return "it asks for more than a sandbox in memory has"
    asked = {
        "a user": place.user,
        "a working directory": place.workdir not in ("", WORKDIR),
        "a network": place.network not in ("", "none"),
        "a healthcheck": place.healthcheck,
        "set-up commands": place.setup,
    }
    return next((f"it asks for {name}" for name, value in asked.items() if value), "")


def why_no_images(kind: Kind = "auto") -> tuple[str, str]:
    """Return why no image runs on this machine and the command that changes that; two empty texts if images run."""
    if kind == "bubblewrap":
        return 'sandbox.kind is "bubblewrap"', 'set sandbox.kind = "auto"'
    wanted = kind if kind in ("podman", "docker") else None
    if find_program(wanted) is None:
        return missing_program(wanted)
    if os.geteuid() == 0:
        return "", ""
    what = "only root can mount the file system that an attempt in an image leaves"
    if kind == "docker" or find_program("podman") is None:
        return what, "run ARISE as root"
    return what, "run ARISE as root, or in a namespace of your own: podman unshare arise ..."


def image_kind(kind: Kind) -> tuple[Literal["overlay", "podman", "docker"] | None, str]:
    """Return the sandbox kind that runs images on this machine and the reason; None if there is none."""
    if reason := why_no_images(kind)[0]:
        return None, reason
    if kind in ("podman", "docker"):
        return kind, f'sandbox.kind is "{kind}"'
    program = find_program()
    reason = why_not_fast()
    if reason and kind == "auto":
        return program, f"the fast path cannot be used: {reason}"
    return "overlay", f"images are built by {program} and run by bubblewrap"


def capabilities(kind: Kind) -> SandboxCapabilities:
    """Return the capabilities of a sandbox kind on this machine, before any sandbox is opened."""
    found, _ = image_kind(kind)
    if found is None:
        return bubblewrap_capabilities()
    return SandboxCapabilities(
        found if kind != "auto" else "auto",
        images=True,
        networks=networks(),
        users=True,
        healthcheck=True,
        setup=True,
        separate_verifier=True,
        steps=True,
    )


class ChosenPool:
    """Open each place in the lightest faithful sandbox kind, and verify in the same kind as the attempt."""

    def __init__(
        self,
        kind: Kind = "auto",
        size: int = 4,
        tests: int = 4,
        hidden: tuple[str, ...] = (),
        pull: Pull = "missing",
        tell: Callable[[str], None] | None = None,
        network: str = "public",
        equipment: Equipment | None = None,
    ) -> None:
        self.kind, self.pull, self.network, self.equipment = kind, pull, network, equipment or Equipment()
        self._plain = BubblewrapPool(size, self.equipment.limits, read_only=self.equipment.read_only, hidden=hidden)
        self._plain_tests = BubblewrapVerifierPool(tests, hidden=hidden)
        self._images: OverlayPool | ContainerPool | None = None
        self._stack = AsyncExitStack()
        self._starting = asyncio.Lock()
        self._tell = tell or (lambda _: None)
        self._told: set[str] = set()

    @property
    def capabilities(self) -> SandboxCapabilities:
        return capabilities(self.kind)

    @property
    def plain_pools(self) -> tuple[BubblewrapPool, BubblewrapPool]:
        """Return the pools without images: one for agents, one for tests."""
        return self._plain, self._plain_tests.pool

    @property
    def notes(self) -> tuple[str, ...]:
        """Return the limits that this machine does not enforce, for the run record."""
        return self._plain_tests.notes

    async def open(self, place: Place = BARE) -> Sandbox:
        """Open a fresh sandbox of the lightest kind that provides everything the place requires.

        A place without a network setting uses the pool's default.
        """
        reason = why_image(place)
        if not reason and self.kind in ("auto", "bubblewrap"):
            self._say("bubblewrap", "it needs no image")
            return await self._plain.open(place)
        if place.dockerfile is None and not place.image:
            return await self._plain.open(place)
        pool = await self._image_pool()
        self._say(pool.capabilities.kind, reason or f'sandbox.kind is "{self.kind}"')
        return await pool.open(self.equipment.added_to(self._connected(place)))

    def _connected(self, place: Place) -> Place:
        """Return the place with the default network if it names none; report that network once."""
        if place.network:
            return place
        chosen = self.network if self.network in networks() else "none"
        why = "the default of the format" if chosen == "public" else "no network"
        if chosen != self.network:
            why += ", because slirp4netns is not installed"
        self._once(f'sandbox: tasks that name no network get "{chosen}" ({why}); sandbox.network changes it')
        return replace(place, network=chosen)

    def _say(self, kind: str, reason: str) -> None:
        """Report the chosen kind and the reason, once per kind."""
        if kind not in self._told:
            self._told.add(kind)
            self._tell(f"sandbox: {kind}, because {reason}")

    def _once(self, message: str) -> None:
        if message not in self._told:
            self._told.add(message)
            self._tell(message)

    async def _image_pool(self) -> OverlayPool | ContainerPool:
        async with self._starting:
            if self._images is None:
                kind, reason = image_kind(self.kind)
                if kind is None:
                    raise SandboxUnavailable(f"the task needs an image, and {reason}", why_no_images(self.kind)[1])
                program = require_program(None if kind == "overlay" else kind)
                pool = _pool(kind, program, self.pull)
                await self._stack.enter_async_context(pool)
                self._images = pool  # only once it has started
            return self._images

    async def prepare(self, places: "list[Place]") -> None:
        """Build or pull every image that these places need before any attempt waits for one."""
        needed = [place for place in places if why_image(place) or self.kind not in ("auto", "bubblewrap")]
        needed = [place for place in needed if place.image or place.dockerfile is not None]
        if needed:
            pool = await self._image_pool()
            await asyncio.gather(*(pool.images.get(place) for place in needed))

    async def verify(self, attempt: Sandbox, job: VerifierJob) -> VerifierRun:
        """Run test.sh in the same sandbox kind as the attempt."""
        if isinstance(attempt, ImageSandbox):
            return await (await self._image_pool()).verify(attempt, replace(job, place=self._connected(job.place)))
        return await self._plain_tests.verify(attempt, job)

    async def __aenter__(self) -> "ChosenPool":
        try:
            await self._stack.enter_async_context(self._plain)
            await self._stack.enter_async_context(self._plain_tests)
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every sandbox of every kind."""
        await self._stack.aclose()


def _pool(kind: str, program: Program, pull: Pull) -> OverlayPool | ContainerPool:
    return OverlayPool(program, pull) if kind == "overlay" else ContainerPool(program, pull)
