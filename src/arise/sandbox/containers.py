"""Attempts in podman or docker containers, with the usual server inside so that commands start quickly.

The engine starts and limits the container; commands and their output use a socket. Attempts are verified as on the fast
path, on the layer that the container leaves.
"""

import asyncio
import contextlib
import json
import os
import re
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from arise.ports import Sandbox, SandboxLost
from arise.sandbox.cgroup import ROOT, ControlGroup
from arise.sandbox.health import become_ready
from arise.sandbox.image_sandbox import ImageSandbox, Left, environment, remove_scratch, require_user
from arise.sandbox.images import OWNER, Image, Images, Pull
from arise.sandbox.layers import User
from arise.sandbox.layout import Layout, SandboxUnavailable
from arise.sandbox.network import networks
from arise.sandbox.overlay_pool import OverlayPool, limits_of
from arise.sandbox.owner import new_name, orphaned, owner_mark
from arise.sandbox.programs import Program, require_program
from arise.sandbox.runtime import runtime
from arise.sandbox.seccomp import engine_profile
from arise.sandbox.tree import FOLDER
from arise.types import BARE, Place, SandboxCapabilities, VerifierJob, VerifierRun

CONTROL = "/run/arise-control"
START_SECONDS = 120.0
STARTING_AT_ONCE = 4


class ContainerSandbox(ImageSandbox):
    """A container; all its processes descend from its process 1, its files are in the engine's storage."""

    engine: Program
    name: str = ""

    async def close(self) -> None:
        """Kill every process and remove the container."""
        if not self._closed:
            await super().close()
            await self.engine.remove([self.name])


def run_line(name: str, image: Image, place: Place, env: dict[str, str], folder: Path) -> list[str]:
    """Return the arguments that start a container with podman or docker; it is connected to a network afterwards."""
    limits = limits_of(place)
    line = ["run", "--name", name, "--label", f"{OWNER}={owner_mark()}", "--hostname", "sandbox", "--network", "none"]
    memory = str(int((place.memory_mb or 2048.0) * 1024 * 1024))
    line += ["--memory", memory, "--memory-swap", memory, "--pids-limit", str(limits.processes + 1)]
    line += ["--cpus", f"{place.cpus:g}"] if place.cpus else []
    line += ["--ulimit", f"nofile={limits.open_files}:{limits.open_files}", "--ulimit", "core=0:0"]
    line += ["--ulimit", "nproc=20000:20000"]  # the engine's own default exceeds the maximum on some machines
    line += ["--ulimit", f"fsize={limits.disk_bytes}:{limits.disk_bytes}"]
    line += ["--cap-drop", "MKNOD", "--cap-drop", "SYS_CHROOT"]
    line += ["--security-opt", f"seccomp={folder / 'seccomp.json'}"]
    line += ["--user", "0:0", "--workdir", "/"]
    for variable, value in env.items():
        line += ["--env", f"{variable}={value}"]
    for path, inner in (*runtime().shown, *place.mounts, (str(folder / "control"), CONTROL)):
        line += ["--volume", f"{path}:{inner}:ro"]
    workdir = place.workdir or image.workdir
    server = runtime().command(f"{CONTROL}/socket", "0", "0", owner_mark(), workdir=workdir)
    return [*line, "--entrypoint", server[0], image.id, *server[1:]]


class ContainerPool:
    """`async with ContainerPool(Program("podman")) as pool: box = await pool.open(Place(image="debian"))`."""

    def __init__(self, program: Program | None = None, pull: Pull = "missing") -> None:
        self.program = program or require_program()
        self.images = Images(self.program, pull)
        self._tests = OverlayPool(self.program, pull)
        self._slots = asyncio.Semaphore(STARTING_AT_ONCE)
        self._open: set[object] = set()

    @property
    def capabilities(self) -> SandboxCapabilities:
        return SandboxCapabilities(
            self.program.name,
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
        storage = f"{self.program.name} limits each file and not the sum of all files that a container writes"
        return (*self._tests.notes, storage)

    async def __aenter__(self) -> "ContainerPool":
        await self._tests.__aenter__()
        await self._require_layers()
        await self.sweep()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def _require_layers(self) -> None:
        """Raise SandboxUnavailable if the engine keeps no layer of what a container wrote: verification needs it."""
        key = "{{.Driver}}" if self.program.name == "docker" else "{{.Store.GraphDriverName}}"
        driver = (await self.program.call("info", "--format", key)).strip()
        if "overlay" not in driver:
            what = f"{self.program.name} keeps containers with the storage driver {driver!r}, which has no layers"
            raise SandboxUnavailable(what, 'set sandbox.kind = "overlay", or the engine\'s storage driver to overlay')

    async def sweep(self) -> int:
        """Remove the containers of dead owners and return their number."""
        listed = await self.program.call("ps", "--all", "--filter", f"label={OWNER}", "--format", "{{.Names}}")
        names = [name for name in listed.split() if orphaned(name)]
        await self.program.remove(names)
        return len(names)

    async def open(self, place: Place = BARE) -> ImageSandbox:
        """Open a fresh container on the image of `place`, set up and healthy."""
        image = await self.images.get(place)
        user = require_user(image, place.user or image.user)
        name = new_name()
        folder = Path(tempfile.gettempdir(), name)
        async with self._slots:
            try:
                sandbox = await self._start(name, folder, image, place, user)
            except BaseException:
                await self._discard(name, folder)
                raise
        try:
            await sandbox.connect()
            await become_ready(sandbox, place)
        except BaseException:
            await sandbox.close()
            raise
        return sandbox

    async def _discard(self, name: str, folder: Path) -> None:
        with contextlib.suppress(SandboxLost):
            await self.program.remove([name])
        remove_scratch(folder)

    async def _start(self, name: str, folder: Path, image: Image, place: Place, user: User) -> ContainerSandbox:
        (folder / "control").mkdir(0o755, parents=True)
        folder.chmod(0o700)
        (folder / "seccomp.json").write_text(json.dumps(engine_profile()))
        with contextlib.ExitStack() as stack:
            listening = stack.enter_context(socket.socket(socket.AF_UNIX))
            listening.bind(str(folder / "control" / "socket"))
            listening.listen(1)
            listening.setblocking(False)
            errors = os.memfd_create("arise-container-errors")
            stack.callback(os.close, errors)
            env = environment(image, user, place.env)
            process = subprocess.Popen(
                [self.program.name, *run_line(name, image, place, env, folder)],
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                env=self.program.settings(),
                cwd=folder,  # podman's monitor leaves a file `oom` where it was started
                start_new_session=True,
            )
            connection = await _accepted(listening, process, errors)
        reader, writer = await asyncio.open_unix_connection(sock=connection)
        async with asyncio.timeout(START_SECONDS):
            await reader.readexactly(1)
        found = await self.program.inspect("container", name)
        if found is None:
            raise SandboxLost("the container ended while it started")
        return self._hold(found, process, reader, writer, folder, image, place, user, name)

    def _hold(
        self,
        found: dict[str, Any],
        process: "subprocess.Popen[bytes]",
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        folder: Path,
        image: Image,
        place: Place,
        user: User,
        name: str,
    ) -> ContainerSandbox:
        pid = int(found["State"]["Pid"])
        pidfds = os.pidfd_open(pid), os.pidfd_open(process.pid)
        folders = {"/": os.open(f"/proc/{pid}/root", FOLDER)}
        layout = Layout(limits_of(place), place.workdir or image.workdir)
        box = ContainerSandbox(layout, process, reader, writer, pidfds, folders, {}, _group(pid))
        box.image, box.user, box.place, box.scratch = image, user, place, folder
        box.engine, box.name, box.on_close = self.program, name, self._open.discard
        upper = _upper_layer(pid, found)
        box.left = Left(upper, str(upper))
        self._open.add(box)
        return box

    async def verify(self, attempt: Sandbox, job: VerifierJob) -> VerifierRun:
        """Run test.sh on the file system of a finished attempt, with the original system files restored."""
        return await self._tests.verify(attempt, job)

    async def close(self) -> None:
        """Kill and remove every container."""
        await asyncio.gather(*(box.close() for box in tuple(self._open) if isinstance(box, ContainerSandbox)))
        await self._tests.close()


async def _accepted(listening: socket.socket, process: "subprocess.Popen[bytes]", errors: int) -> socket.socket:
    """Return the connection of the server inside; raise SandboxLost if it does not connect."""
    loop = asyncio.get_running_loop()
    waiting = asyncio.ensure_future(loop.sock_accept(listening))
    try:
        async with asyncio.timeout(START_SECONDS):
            while not (await asyncio.wait({waiting}, timeout=0.05))[0]:
                if process.poll() is not None:
                    said = os.pread(errors, 2000, 0).decode("utf-8", "replace").strip()
                    raise SandboxLost(f"the container did not start: {said or 'no message'}")
        return waiting.result()[0]
    except TimeoutError:
        raise SandboxLost(f"the container did not start within {START_SECONDS:g} s") from None
    finally:
        waiting.cancel()


def _upper_layer(pid: int, found: dict[str, Any]) -> Path:
    """Return the folder of what a container writes: as the engine says, or else as its root is mounted."""
    data = (found.get("GraphDriver") or {}).get("Data") or {}
    if "UpperDir" in data:
        return Path(data["UpperDir"])
    for line in Path(f"/proc/{pid}/mountinfo").read_text().splitlines():
        mount, _, source = line.partition(" - ")
        if mount.split()[4] == "/" and (upper := re.search(r"\bupperdir=([^,]+)", source)):
            return Path(upper[1])
    raise SandboxLost("the engine does not tell where it keeps the files of a container")


def _group(pid: int) -> ControlGroup | None:
    """Return the cgroup that the engine created, used to count OOM kills."""
    own = [line.split(":", 2) for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines()]
    for _, names, path in own:
        if names == "memory":
            return ControlGroup((), ROOT / "memory" / path.lstrip("/") / "memory.oom_control")
        if names == "" and (ROOT / path.lstrip("/") / "memory.events").exists():
            return ControlGroup((), ROOT / path.lstrip("/") / "memory.events")
    return None
