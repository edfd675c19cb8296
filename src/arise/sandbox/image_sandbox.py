"""One attempt in an image: the file system, users and environment that its task's author gave it."""

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
from arise.sandbox.network import Network
from arise.types import BARE, CommandResult, Place

_MISSING_USER = "the image has no user {!r}"


def require_user(image: Image, name: str) -> User:
    """A user of an image; one that it does not have is a fault of the task, told before anything runs."""
    found = resolve_user([Path(layer) for layer in image.layers], name)
    if found is None:
        raise SandboxLost(_MISSING_USER.format(name))
    return found


def environment(image: Image, user: User, given: Mapping[str, str]) -> dict[str, str]:
    """The variables of a command: those of the image, of the task, and those that name the user."""
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    base = {"PATH": path, "HOME": user.home, "USER": user.name, "TERM": "dumb"}
    return {**base, **image.env, **given}


@dataclass(frozen=True)
class Left:
    """The layer that an attempt leaves: where this process reads it, and where it is found for a mount."""

    upper: Path
    mounted: str
    namespace: int = -1
    """The mount namespace of `mounted`, where it is not that of the host."""


@dataclass(eq=False)
class ImageSandbox(BubblewrapSandbox):
    """A sandbox on an image's root file system; `folders["/"]` is that of the attempt, held until `close`."""

    image: Image = field(default_factory=lambda: Image(""))
    user: User = field(default_factory=User)
    place: Place = BARE
    scratch: Path | None = None
    network: Network = field(default_factory=Network)
    held: list[int] = field(default_factory=list)
    """Descriptors that live as long as the sandbox."""
    left: "Left | None" = None
    """The layer that the attempt wrote, for whoever verifies it."""

    async def run(
        self, command: str, timeout: float, env: Mapping[str, str] | None = None, user: str | None = None
    ) -> CommandResult:
        """Run one shell command in the working directory, as the task's user unless another is named."""
        known = require_user(self.image, user) if user else self.user
        named = {"HOME": known.home, "USER": known.name} if user else {}
        return await self.run_command(with_env(command, {**self.env, **named, **(env or {})}), timeout, user=known.mark)

    async def settle(self) -> None:
        """End every process but the sandbox itself, which can go on."""
        if self.alive:
            await self.run_command("true", 30, alone=True)

    async def reach(self, url: str) -> str:
        """Return the URL under which commands inside reach an endpoint that the host knows as `url`."""
        return await self.network.doors.open(self.pid, url)

    @property
    def pid(self) -> int:
        """Process 1 inside, by its number on the host."""
        lines = Path(f"/proc/self/fdinfo/{self.pidfds[0]}").read_text().splitlines()
        return int(next(line.split()[1] for line in lines if line.startswith("Pid:")))

    async def connect(self) -> None:
        """Give the sandbox the network that its place asks for."""
        variables = await self.network.connect(self.pid, self.place.network)
        self.env = {**self.env, **variables}

    async def end(self) -> None:
        """End every process of the sandbox and return when they are dead; the files stay until `close`."""
        self.network.close()
        await super().end()

    async def close(self) -> None:
        """End every process and release everything, the attempt's files among it."""
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
    """Remove the folder that layers were mounted in; nothing is mounted there in the namespace of this process."""
    with contextlib.suppress(OSError):
        shutil.rmtree(folder)
