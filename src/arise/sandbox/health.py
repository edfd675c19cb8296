"""Make a sandbox ready for an agent: run the task's set-up and wait for its healthcheck."""

import asyncio
import time

from arise.ports import Sandbox, SandboxLost
from arise.types import Healthcheck, Place

SETUP_SECONDS = 600.0
_SAID = 500


async def become_ready(sandbox: Sandbox, place: Place) -> None:
    """Create the working directory, run the set-up and wait for the healthcheck; raise SandboxLost on failure."""
    for command in place.setup:
        done = await sandbox.run(command, SETUP_SECONDS, user="root")
        if done.ended != "exit" or done.exit_code:
            raise SandboxLost(f"the set-up command {command!r} failed: {done.output.strip()[-_SAID:]}")
    if place.healthcheck is not None:
        await _healthy(sandbox, place.healthcheck)


async def _healthy(sandbox: Sandbox, check: Healthcheck) -> None:
    """Wait until the healthcheck succeeds; raise SandboxLost after `retries` failures past the start period."""
    begun, failures = time.monotonic(), 0
    while True:
        starting = time.monotonic() - begun < check.start_period
        done = await sandbox.run(check.command, check.timeout)
        if done.ended == "exit" and done.exit_code == 0:
            return
        failures += not starting
        if failures >= check.retries:
            said = done.output.strip()[-_SAID:]
            raise SandboxLost(f"the healthcheck {check.command!r} failed {failures} times: {said}")
        await asyncio.sleep(check.start_interval if starting else check.interval)
