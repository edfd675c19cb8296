"""The time limit of an attempt, enforced by a sandbox wrapper."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from arise.ports import Sandbox
from arise.types import CommandResult

UP = "time"


@dataclass
class WithinTime:
    """A sandbox whose commands together take at most `seconds`; from the limit on, each ends with `time`.

    Only commands count, because the time an agent waits for its model depends on the machine and the other attempts.
    """

    sandbox: Sandbox
    seconds: float | None
    used: float = 0.0

    @property
    def workdir(self) -> str:
        return self.sandbox.workdir

    async def run(
        self, command: str, timeout: float, env: Mapping[str, str] | None = None, user: str | None = None
    ) -> CommandResult:
        """Run a command with the smaller of its timeout and the time left for the attempt."""
        if self.seconds is None:
            return await self.sandbox.run(command, timeout, env, user)
        left = self.seconds - self.used
        if left <= 0:
            return CommandResult("", 124, UP)
        begun, given = time.monotonic(), min(timeout, left)
        result = await self.sandbox.run(command, given, env, user)
        # A sandbox may allow a command more time while it waits for a processor; that time does not count.
        self.used += min(time.monotonic() - begun, given)
        return replace(result, ended=UP) if result.ended == "timeout" and left <= timeout else result

    async def put(self, source: Path, target: str) -> None:
        await self.sandbox.put(source, target)

    async def get(self, source: str, target: Path) -> tuple[str, ...]:
        return await self.sandbox.get(source, target)

    async def reach(self, url: str) -> str:
        return await self.sandbox.reach(url)

    async def end(self) -> None:
        await self.sandbox.end()

    async def close(self) -> None:
        await self.sandbox.close()
