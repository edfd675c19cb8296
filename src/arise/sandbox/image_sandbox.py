"""One attempt in an image, with the file system, users and environment that the task author provided."""

import contextlib
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from arise.ports import SandboxLost
from arise.sandbox.bubblewrap import BubblewrapSandbox, with_env
from arise.sandbox.images import Image
from arise.sandbox.layers import User, resolve_user
from arise.sandbox.network import RESOLVER, Network
from arise.types import BARE, CommandResult, Place

_MISSING_USER = "the image has no user {!r}"


def require_user(image: Image, name: str) -> User:
    """Return a user of an image; raise SandboxLost if the image does not have it."""
    found = resolve_user([Path(layer) for layer in image.layers], name)
    if found is None:
        raise SandboxLost(_MISSING_USER.format(name))
    return found


def environment(image: Image, user: User, given: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a command: those of the image, of the task and of the user."""
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    base = {"PATH": path, "HOME": user.home, "USER": user.name, "TERM": "dumb"}
    return {**base, **image.env, **given}


@dataclass(frozen=True)
class Left:
    """The layer that an attempt leaves: its path for this process, and its path for a mount."""

    upper: Path
    mounted: str
    namespace: int = -1
    """The mount namespace of `mounted`, where it is not that of the host."""


@dataclass(eq=False)
class ImageSandbox(BubblewrapSandbox):
    """A sandbox on an image's root file system; `folders["/"]` is the attempt's root, kept open until `close`."""

    image: Image = field(default_factory=lambda: Image(""))
    user: User = field(default_factory=User)
    place: Place = BARE
    scratch: Path | None = None
    network: Network = field(default_factory=Network)
    held: list[int] = field(default_factory=list)
    """Descriptors that live as long as the sandbox."""
    left: "Left | None" = None
    """The layer that the attempt wrote, for the verifier."""

    async def run(
        self, command: str, timeout: float, env: Mapping[str, str] | None = None, user: str | None = None
    ) -> CommandResult:
        """Run one shell command in the working directory, as the task's user unless another is named."""
        known = require_user(self.image, user) if user else self.user
        named = {"HOME": known.home, "USER": known.name} if user else {}
        return await self.run_command(with_env(command, {**self.env, **named, **(env or {})}), timeout, user=known.mark)

    async def settle(self) -> None:
        """Kill every process except the sandbox itself, which stays usable."""
        if self.alive:
            await self.run_command("true", 30, alone=True)

    async def reach(self, url: str) -> str:
        """Return the URL under which commands inside reach an endpoint that the host knows as `url`."""
        return await self.network.doors.open(self.pid, url)

    @property
    def pid(self) -> int:
        """Return the host process id of process 1 inside."""
        lines = Path(f"/proc/self/fdinfo/{self.pidfds[0]}").read_text().splitlines()
        return int(next(line.split()[1] for line in lines if line.startswith("Pid:")))

    async def connect(self) -> None:
        """Connect the sandbox to the network that its place requires."""
        if self.place.network == "public":
            await self.run_command(f"echo {RESOLVER} > /etc/resolv.conf", 10)
        variables = await self.network.connect(self.pid, self.place.network)
        self.env = {**self.env, **variables}

    async def end(self) -> None:
        """Kill every process of the sandbox and wait until all are dead; the files stay until `close`."""
        self.network.close()
        await super().end()

    async def close(self) -> None:
        """Kill every process and release all resources, including the attempt's files."""
        done = self._closed
        await super().close()
        if done:
            return
        for fd in self.held:
            os.close(fd)
        self.held.clear()
        if self.scratch is not None:
            remove_scratch(self.scratch)


def remove_scratch(folder: Path) -> None:
    """Remove the folder in which layers were mounted; it holds no mounts in the namespace of this process."""
    with contextlib.suppress(OSError):
        shutil.rmtree(folder)
