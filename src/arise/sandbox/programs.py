"""Command-line interface of the container engine: podman, or docker with the same arguments."""

import asyncio
import contextlib
import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from arise.native.build import cache_folder
from arise.ports import SandboxLost
from arise.sandbox.layout import SandboxUnavailable

Name = Literal["podman", "docker"]
PACKAGES = "podman runc netavark aardvark-dns passt slirp4netns fuse-overlayfs iptables buildah"
INSTALL = f"apt-get install --no-install-recommends {PACKAGES}"
INSTALL_DOCKER = "apt-get install --no-install-recommends docker.io slirp4netns"
DOCKER_HOST = "unix:///var/run/docker.sock"
CALL_SECONDS = 60.0
REMOVE_SECONDS = 300.0
_TAIL = 2000
# For a machine without systemd, where podman does not start containers with its own defaults.
_SETTINGS = """[containers]
default_ulimits=["nofile=20000:20000","nproc=20000:20000"]
netns="host"
[engine]
cgroup_manager="cgroupfs"
events_logger="file"
runtime="runc"
"""


class EngineFailed(SandboxLost):
    """A call of the container engine failed; the message ends with its last output."""


def docker_socket(host: str | None = None) -> Path | None:
    """Return the socket of docker's daemon on this machine; None if its daemon is elsewhere or not running."""
    address = host or os.environ.get("DOCKER_HOST") or DOCKER_HOST
    path = Path(address.removeprefix("unix://"))
    return path if address.startswith("unix://") and path.is_socket() else None


def find_program(wanted: Name | None = None) -> Name | None:
    """Return a working container engine of this machine, preferring podman to docker; None if there is none."""
    if wanted != "docker" and shutil.which("podman"):
        return "podman"
    # The docker client alone runs nothing: it needs its daemon.
    if wanted != "podman" and shutil.which("docker") and docker_socket() is not None:
        return "docker"
    return None


def missing_program(wanted: Name | None = None) -> tuple[str, str]:
    """Return why there is no container engine, and the command that provides one."""
    if wanted != "docker":
        what = "podman is not installed" if wanted == "podman" else "no container engine is installed"
        return what, f"as root: {INSTALL}"
    if shutil.which("docker") is None:
        return "docker is not installed", f"as root: {INSTALL_DOCKER}"
    address = os.environ.get("DOCKER_HOST") or DOCKER_HOST
    if not address.startswith("unix://"):
        what = f"docker's daemon is on another machine ({address}), and attempts are verified on its files"
        return what, "run ARISE on that machine, or unset DOCKER_HOST"
    what = f"docker's daemon does not run: there is no socket {address.removeprefix('unix://')}"
    return what, 'start it (as root: systemctl start docker), or set sandbox.kind = "auto"'


def require_program(wanted: Name | None = None) -> "Program":
    """Return the container engine; raise SandboxUnavailable with the command that provides one if there is none."""
    found = find_program(wanted)
    if found is None:
        what, remedy = missing_program(wanted)
        raise SandboxUnavailable(f"the tasks need images, and {what}", remedy)
    return Program(found)


@dataclass(frozen=True)
class Program:
    """Call the engine — `await Program("podman").call("image", "inspect", "debian")`."""

    name: str
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))

    def settings(self) -> dict[str, str]:
        """Return the environment of every call, with ARISE's own CONTAINERS_CONF if the machine needs one."""
        if self.name != "podman" or "CONTAINERS_CONF" in self.environment or Path("/run/systemd/system").exists():
            return self.environment
        path = cache_folder() / "containers.conf"
        if not path.exists() or path.read_text() != _SETTINGS:
            path.parent.mkdir(parents=True, exist_ok=True)
            draft = path.with_suffix(f".{os.getpid()}")
            draft.write_text(_SETTINGS)
            draft.replace(path)
        return self.environment | {"CONTAINERS_CONF": str(path)}

    async def call(self, *arguments: str, seconds: float = CALL_SECONDS) -> str:
        """Run one command to completion and return its output; raise EngineFailed if it fails."""
        line = [self.name, *arguments]
        try:
            process = await asyncio.create_subprocess_exec(
                *line,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=self.settings(),
                start_new_session=True,
            )
        except OSError as error:
            raise EngineFailed(f"{self.name} cannot be started: {error}") from error
        try:
            async with asyncio.timeout(seconds):
                output, errors = await process.communicate()
        except TimeoutError:
            raise EngineFailed(f"`{' '.join(line[:3])}` took longer than {seconds:g} s") from None
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, 9)
                await process.wait()
        if process.returncode:
            said = (output + errors).decode("utf-8", "replace").strip()[-_TAIL:]
            raise EngineFailed(f"`{' '.join(line[:3])}` failed with code {process.returncode}: {said}")
        return output.decode("utf-8", "replace")

    async def inspect(self, kind: Literal["image", "container"], name: str) -> dict[str, Any] | None:
        """Return the engine's description of an image or container; None if it does not exist."""
        try:
            (found,) = json.loads(await self.call(kind, "inspect", name))
        except EngineFailed as error:
            absent = ("no such", "not known", "does not exist", "not found")
            if any(sign in str(error).lower() for sign in absent):
                return None
            raise
        return dict(found)

    async def remove(self, names: Sequence[str]) -> None:
        """Remove containers, running or not, with their processes and files."""
        if names:
            await self.call("rm", "--force", "--volumes", *names, seconds=REMOVE_SECONDS)
