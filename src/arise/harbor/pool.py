"""Sandboxes in environments of Harbor: its own, such as podman, or those of a provider, such as Daytona or Modal.

Each sandbox is a trial of Harbor whose agent is ARISE. Harbor builds, starts, limits and stops the environment, and
runs the tests its own way.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from arise.harbor.client import HarborWorker
from arise.harbor.trials import HarborEnvironment, outcome, trial_config
from arise.ports import Sandbox, SandboxLost
from arise.sandbox.owner import new_name
from arise.types import BARE, CommandResult, Place, RewardFile, SandboxCapabilities, VerifierJob, VerifierRun
from arise.types.sandbox import MAX_REPORT_BYTES, REWARD_JSON, TEST_REPORT

TIME_TO_LIVE = 86_400.0
"""Seconds after which Harbor ends an attempt that ARISE still holds open."""
NOTES = (
    "Harbor runs the tests where the agent worked, without ending its processes or restoring system files first, "
    "unless the task asks for a separate verifier",
)


def harbor_capabilities() -> SandboxCapabilities:
    """Return what Harbor's environments give a task; Harbor itself refuses what one of them does not support."""
    return SandboxCapabilities(
        "harbor",
        images=True,
        networks=frozenset({"none", "allow", "public"}),
        gpus=None,
        tpus=True,
        users=True,
        healthcheck=True,
        compose=True,
        separate_verifier=True,
    )


@dataclass
class HarborSandbox:
    """One trial of Harbor while an agent of ARISE works in its environment."""

    worker: HarborWorker
    name: str
    workdir: str
    folder: Path
    closed: bool = False

    async def run(
        self, command: str, timeout: float, env: Mapping[str, str] | None = None, user: str | None = None
    ) -> CommandResult:
        """Run one shell command in the working directory of the environment."""
        asked = {"command": command, "seconds": timeout, "env": dict(env or {}), "user": user}
        return CommandResult(**await self.worker.call("run", box=self.name, **asked))

    async def put(self, source: Path, target: str) -> None:
        """Copy a file or the content of a folder into the environment."""
        await self.worker.call("put", box=self.name, source=str(source.resolve()), target=target)

    async def get(self, source: str, target: Path) -> tuple[str, ...]:
        """Copy a file or the content of a folder to the host."""
        done = await self.worker.call("get", box=self.name, source=source, target=str(target.resolve()))
        if not done["found"]:
            raise FileNotFoundError(source)
        return ()

    async def reach(self, url: str) -> str:
        """Raise SandboxLost: an environment elsewhere has no way back to this machine."""
        raise SandboxLost(f"commands in an environment of Harbor cannot reach {url}: use an agent that runs outside")

    async def end(self) -> None:
        """Do nothing: Harbor decides what happens between the agent and its tests."""

    async def close(self) -> None:
        """Stop the environment."""
        if not self.closed:
            self.closed = True
            await self.worker.call("close", box=self.name)


class HarborPool:
    """`async with HarborPool(HarborEnvironment("podman")) as pool: box = await pool.open(task.place)`."""

    def __init__(self, environment: HarborEnvironment, worker: HarborWorker | None = None) -> None:
        self.environment, self.worker = environment, worker or HarborWorker()

    @property
    def capabilities(self) -> SandboxCapabilities:
        return harbor_capabilities()

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what differs from verification by ARISE, for the run record."""
        return NOTES

    async def open(self, place: Place = BARE) -> HarborSandbox:
        """Start a trial of the task that `place` belongs to and return when its environment is ready."""
        if place.directory is None:
            raise SandboxLost("an environment of Harbor needs the folder of a task")
        name = new_name()
        config = trial_config(place.directory, name, self.worker.scratch, self.environment)
        opened = await self.worker.call("open", box=name, config=config, seconds=TIME_TO_LIVE)
        return HarborSandbox(self.worker, name, opened["workdir"], self.worker.scratch / name)

    async def verify(self, attempt: Sandbox, job: VerifierJob) -> VerifierRun:  # noqa: ARG002 - Harbor knows the task
        """Let Harbor run the tests of the trial and return their result."""
        assert isinstance(attempt, HarborSandbox), "an attempt is verified by the pool that opened it"
        result = (await self.worker.call("verify", box=attempt.name))["result"]
        found = outcome(result)
        if found.fault:
            raise SandboxLost(found.fault)
        said = _read(attempt.folder / "verifier" / "test-stdout.txt").decode("utf-8", "replace")
        tests = _read(attempt.folder / "verifier" / TEST_REPORT)
        if found.reason:
            return VerifierRun(said, notes=(found.reason,), tests=tests)
        return VerifierRun(said, rewards=(_reward(result),), tests=tests)

    async def __aenter__(self) -> Self:
        await self.worker.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop every environment."""
        await self.worker.close()


def _reward(result: Mapping[str, Any]) -> RewardFile:
    return RewardFile(REWARD_JSON, json.dumps(result["verifier_result"]["rewards"]).encode())


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_REPORT_BYTES)
    except OSError:
        return b""
