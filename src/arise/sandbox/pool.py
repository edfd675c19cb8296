"""Sandboxes started in advance, so that opening one costs only a copy of the task's files."""

import asyncio
import os
import platform
import resource
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from arise.ports import SandboxLost
from arise.sandbox.bubblewrap import BubblewrapSandbox
from arise.sandbox.cgroup import Cgroups, find_cgroups
from arise.sandbox.launch import NotCovered, start
from arise.sandbox.layout import WORKDIR, Layout
from arise.sandbox.limits import MIB, Limits
from arise.sandbox.native_server import native_server
from arise.sandbox.owner import end_orphans, orphans
from arise.sandbox.seccomp import filter_program
from arise.types import BARE, Place, SandboxCapabilities

STARTING_AT_ONCE = 2
CLOSED = "the sandbox pool is closed"


def _raise_open_files() -> None:
    """Raise the soft limit on open files: a few hundred sandboxes would exceed the usual 1024 descriptors."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def sweep(cgroups: Cgroups | None) -> None:
    """Remove the processes, cgroups and folders of dead owners."""
    _raise_open_files()
    end_orphans()
    sweep_groups(cgroups)
    for path in orphans(Path(tempfile.gettempdir())):
        shutil.rmtree(path, ignore_errors=True)


def sweep_groups(cgroups: Cgroups | None) -> None:
    """Remove the cgroups of dead owners; again at the end of a pool, as their processes may still have been dying."""
    if cgroups is not None:
        cgroups.sweep()


def missing_limits(cgroups: Cgroups | None) -> tuple[str, ...]:
    """Return every limit that the kernel does not enforce on this machine, and its substitute."""
    notes = []
    if cgroups is None:
        watched = "memory" if os.geteuid() else "memory and processes"
        notes.append(
            f"no writable control groups with memory and pids: {watched} of a sandbox can exceed the limit "
            "briefly, until its server notices and ends what runs there, and files in memory are not counted"
        )
    if cgroups is None or not cgroups.shares:
        notes.append("no writable control group with cpu: a busy sandbox slows the others down")
    if filter_program(platform.machine()) is None:
        notes.append(f"no system-call filter for {platform.machine()}: namespaces alone confine the sandbox")
    return tuple(notes)


def bubblewrap_capabilities(limits: Limits | None = None) -> SandboxCapabilities:
    """Return the capabilities of a bubblewrap sandbox: the programs of this machine, no network, one user."""
    limits = limits or Limits()
    return SandboxCapabilities(
        "bubblewrap",
        cpus=len(os.sched_getaffinity(0)),
        memory_mb=limits.memory_bytes / MIB,
        storage_mb=limits.disk_bytes / MIB,
        workdir=WORKDIR,
    )


class BubblewrapPool:
    """Fresh sandboxes, `size` kept ready — `async with BubblewrapPool(8) as pool: box = await pool.open(place)`."""

    def __init__(
        self,
        size: int = 4,
        limits: Limits | None = None,
        folders: tuple[str, ...] = (),
        workdir: str = WORKDIR,
        shown: tuple[str, ...] = (),
        read_only: tuple[str, ...] = (),
        hidden: tuple[str, ...] = (),
        guard: tuple[str, str] | None = None,
    ) -> None:
        late = native_server() is not None
        self.layout = Layout(limits or Limits(), workdir, folders, shown, read_only, hidden, guard, late=late)
        self.size = size
        self.cgroups = find_cgroups()
        self._ready: asyncio.Queue[BubblewrapSandbox | SandboxLost] = asyncio.Queue()
        self._slots = asyncio.Semaphore(STARTING_AT_ONCE)
        self._starting: set[asyncio.Task[None]] = set()
        self._open: set[BubblewrapSandbox] = set()
        self._closed = False
        self._watches_capped = True

    @property
    def capabilities(self) -> SandboxCapabilities:
        return bubblewrap_capabilities(self.layout.limits)

    @property
    def notes(self) -> tuple[str, ...]:
        """Return every limit that the kernel does not enforce on this machine, and its substitute."""
        uncapped = (
            () if self._watches_capped else ("no cap on inotify: one sandbox can leave no instance to the others",)
        )
        return missing_limits(self.cgroups) + uncapped

    async def start(self) -> None:
        """Remove leftovers of dead runs and start the pool; raise SandboxUnavailable with the remedy if that fails."""
        sweep(self.cgroups)
        try:
            first = await start(self.layout, self.cgroups)
        except NotCovered:
            self.layout = replace(self.layout, late=False)
            first = await start(self.layout, self.cgroups)
        self._watches_capped = first.watches_capped
        self._ready.put_nowait(first)
        for _ in range(self.size - 1):
            self._begin()

    def _begin(self) -> None:
        """Start one more sandbox in the background."""
        task = asyncio.get_running_loop().create_task(self._add())
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)

    async def _add(self) -> None:
        async with self._slots:
            if self._closed:
                return
            try:
                self._ready.put_nowait(await start(self.layout, self.cgroups))
            except SandboxLost as fault:
                self._ready.put_nowait(fault)

    async def open(self, place: Place = BARE) -> BubblewrapSandbox:
        """Open a fresh sandbox whose working directory holds a copy of the files of `place`.

        `capabilities` lists the other supported settings of a place; unsupported tasks are refused earlier.
        """
        sandbox = await self._start_with(place) or await self._take()
        self._open.add(sandbox)
        sandbox.on_close, sandbox.env = self._open.discard, place.env
        try:
            if place.files is not None:
                await sandbox.fill(sandbox.workdir, place.files, place.skip)
        except BaseException:
            await sandbox.close()
            raise
        return sandbox

    async def _start_with(self, place: Place) -> BubblewrapSandbox | None:
        """Start a sandbox on demand, for a place with folders or mounts that the prepared ones do not have."""
        there = (*self.layout.writable, *self.layout.shown)
        missing = tuple(folder for folder in place.folders if folder not in there)
        if not missing and not place.mounts:
            return None
        if self._closed:
            raise SandboxLost(CLOSED)
        async with self._slots:
            layout = replace(self.layout, shown=(*self.layout.shown, *missing), mounts=place.mounts)
            return await start(layout, self.cgroups)

    async def _take(self) -> BubblewrapSandbox:
        while not self._closed:
            self._begin()
            found = await self._ready.get()
            if isinstance(found, SandboxLost):
                if self._closed:
                    self._ready.put_nowait(found)  # for the next waiting task
                raise found
            if self._closed:
                await found.close()
                break
            if found.alive:
                return found
            await found.close()
        raise SandboxLost(CLOSED)

    async def close(self) -> None:
        """Close every sandbox, in use or prepared, and return when all their processes are dead."""
        self._closed = True
        await asyncio.gather(*self._starting, return_exceptions=True)
        while not self._ready.empty():
            found = self._ready.get_nowait()
            if isinstance(found, BubblewrapSandbox):
                self._open.add(found)
        self._ready.put_nowait(SandboxLost(CLOSED))
        await asyncio.gather(*(sandbox.close() for sandbox in tuple(self._open)))
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
