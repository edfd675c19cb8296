"""Task images: pulled or built from a Dockerfile once for all attempts, and cached by content."""

import asyncio
import contextlib
import fcntl
import hashlib
import logging
import os
import shutil
import stat
import subprocess
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from arise.native.build import cache_folder
from arise.sandbox.owner import new_name, owner_mark
from arise.sandbox.programs import EngineFailed, Program
from arise.text.progress import Progress
from arise.types import Place

log = logging.getLogger(__name__)

Pull = Literal["missing", "never", "always"]
LABEL = "arise.image"
OWNER = "arise.owner"
"""The label of containers by which the next run finds those of a killed one."""
PULL_SECONDS = 1800.0
BUILDS_AT_ONCE = 2


@dataclass(frozen=True)
class Image:
    """An image on this machine with its configuration — `Image("sha256:...", workdir="/app")`."""

    id: str
    layers: tuple[str, ...] = ()
    """The folders of its file system, topmost first."""
    env: Mapping[str, str] = field(default_factory=dict)
    workdir: str = "/"
    user: str = ""


def context_digest(folder: Path) -> str:
    """Return a digest of everything a build can see: names, types, modes, links and contents of its context."""
    digest = hashlib.sha256(b"arise build context 1\0")
    for path in sorted(folder.rglob("*"), key=lambda path: path.relative_to(folder).as_posix()):
        info = path.lstat()
        name = path.relative_to(folder).as_posix()
        digest.update(f"{name}\0{stat.S_IFMT(info.st_mode):o}\0{stat.S_IMODE(info.st_mode):o}\0".encode())
        if stat.S_ISLNK(info.st_mode):
            digest.update(os.readlink(path).encode())
        elif stat.S_ISREG(info.st_mode):
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def read_image(found: Mapping[str, Any]) -> Image:
    """Return an image as described by `inspect`; without layers if its engine does not keep them as folders."""
    config = found.get("Config") or {}
    pairs = (entry.partition("=") for entry in config.get("Env") or ())
    driver = found.get("GraphDriver") or {}
    data = driver.get("Data") or {}
    layers = (
        [data.get("UpperDir", ""), *data.get("LowerDir", "").split(":")] if "overlay" in driver.get("Name", "") else []
    )
    return Image(
        found["Id"],
        tuple(layer for layer in layers if layer),
        {name: value for name, _, value in pairs},
        config.get("WorkingDir") or "/",
        config.get("User") or "",
    )


class BuildFailed(EngineFailed):
    """A Dockerfile that the engine could not build."""

    def __init__(self, dockerfile: Path, said: str) -> None:
        self.dockerfile, self.said = dockerfile, said
        super().__init__(f"{dockerfile} cannot be built: {said}")


class Images:
    """Every requested image, each prepared once — `await Images(program).get(place)`."""

    def __init__(self, program: Program, pull: Pull = "missing") -> None:
        self.program, self.pull = program, pull
        self._known: dict[str, asyncio.Task[Image]] = {}
        self._slots = asyncio.Semaphore(BUILDS_AT_ONCE)
        self._wait = Progress(log, "task images")
        self.built = 0
        """Number of builds that were run because no earlier one had the same content."""

    async def get(self, place: Place) -> Image:
        """Return the image of a place; concurrent calls share one build, and a failed build is not cached.

        As in Harbor and BenchFlow, an image that a task names takes precedence over its Dockerfile.
        """
        if place.image or place.dockerfile is None:
            key = place.image
        else:
            key = await asyncio.to_thread(context_digest, place.context or place.dockerfile.parent)
            if place.context is not None:
                key = hashlib.sha256(f"{key} {place.dockerfile.relative_to(place.context)}".encode()).hexdigest()
        task = self._known.get(key)
        if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
            task = asyncio.create_task(self._prepare(key, place))
            self._known[key] = task
        return await asyncio.shield(task)

    async def _prepare(self, key: str, place: Place) -> Image:
        self._wait.expect(1)
        try:
            async with self._slots:
                if place.image or place.dockerfile is None:
                    return await self._taken(place)
                context = place.context or place.dockerfile.parent
                return await self._build(key, place.dockerfile, context, place.build_timeout)
        finally:
            self._wait.add()

    async def _taken(self, place: Place) -> Image:
        try:
            return await self._take(place.image)
        except EngineFailed as error:
            if place.dockerfile is None:
                raise
            raise EngineFailed(f'{error}; to build {place.dockerfile} instead, ignore "docker_image"') from error

    async def _take(self, name: str) -> Image:
        found = await self.program.inspect("image", name) if self.pull != "always" else None
        if found is None:
            if self.pull == "never":
                raise EngineFailed(f'the image {name} is not on this machine, and sandbox.pull is "never"')
            await self.program.call("pull", "--quiet", name, seconds=PULL_SECONDS)
            found = await self.program.inspect("image", name)
        if found is None:
            raise EngineFailed(f"the image {name} is absent after it was pulled")
        return await self._with_layers(read_image(found))

    async def _build(self, key: str, dockerfile: Path, context: Path, seconds: float) -> Image:
        tag = f"localhost/arise:{key[:40]}"
        async with _locked(key):
            found = await self.program.inspect("image", tag)
            if found is None:
                labels = ("--label", f"{LABEL}={key}")
                pull = ("--pull",) if self.pull == "always" else ()
                line = ("build", "--quiet", *pull, "--tag", tag, *labels, "--file", str(dockerfile), str(context))
                try:
                    await self.program.call(*line, seconds=seconds)
                except EngineFailed as error:
                    raise BuildFailed(dockerfile, str(error)) from error
                self.built += 1
                found = await self.program.inspect("image", tag)
        if found is None:
            raise EngineFailed(f"the image of {dockerfile} is absent after it was built")
        return await self._with_layers(read_image(found))

    async def _with_layers(self, image: Image) -> Image:
        """Return the image with a folder of its files, unpacked once if the engine keeps none.

        Such are docker's containerd store, the default since Docker 29, and the storage drivers vfs and btrfs.
        """
        if image.layers:
            return image
        key = image.id.removeprefix("sha256:")
        folder = cache_folder() / "images" / key
        async with _locked(key):
            if not folder.is_dir():
                await self._unpack(image.id, folder)
        return replace(image, layers=(str(folder),))

    async def _unpack(self, image: str, folder: Path) -> None:
        folder.parent.mkdir(0o700, parents=True, exist_ok=True)
        draft, name = folder.with_name(new_name()), new_name()
        archive = draft.with_suffix(".tar")
        draft.mkdir(0o755)
        line = ("create", "--name", name, "--label", f"{OWNER}={owner_mark()}", image, "true")
        await self.program.call(*line, seconds=PULL_SECONDS)
        try:
            await self.program.call("export", "--output", str(archive), name, seconds=PULL_SECONDS)
            unpack = ["tar", "-C", str(draft), "--numeric-owner", "-xpf", str(archive)]
            await asyncio.to_thread(subprocess.run, unpack, check=True, capture_output=True)
            draft.rename(folder)
        except subprocess.CalledProcessError as error:
            raise EngineFailed(f"the files of {image} cannot be unpacked: {error.stderr[-500:]!r}") from error
        finally:
            await self.program.remove([name])
            archive.unlink(missing_ok=True)
            shutil.rmtree(draft, ignore_errors=True)


@contextlib.asynccontextmanager
async def _locked(key: str) -> AsyncIterator[None]:
    """Lock builds of the same content on this machine, across runs; the kernel releases the lock with its owner."""
    folder = cache_folder() / "builds"
    folder.mkdir(parents=True, exist_ok=True)
    with _opened(folder / f"{key[:40]}.lock") as fd:
        await asyncio.to_thread(fcntl.flock, fd, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield fd
    finally:
        os.close(fd)
