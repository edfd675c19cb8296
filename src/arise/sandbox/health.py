"""What must be true before an agent starts: the task's set-up has run, and its healthcheck succeeds."""

import asyncio
import time

from arise.ports import Sandbox, SandboxLost
from arise.types import Healthcheck, Place

SETUP_SECONDS = 600.0
_SAID = 500


async def become_ready(sandbox: Sandbox, place: Place) -> None:
    """Make the working directory, run the set-up commands and wait for the healthcheck; raises SandboxLost."""
    for command in place.setup:
        done = await sandbox.run(command, SETUP_SECONDS, user="root")
        if done.ended != "exit" or done.exit_code:
            raise SandboxLost(f"the set-up command {command!r} failed: {done.output.strip()[-_SAID:]}")
    if place.healthcheck is not None:
        await _healthy(sandbox, place.healthcheck)


async def _healthy(sandbox: Sandbox, check: Healthcheck) -> None:
    """Failures in the start period do not count; after it, so many in a row are a fault of the environment."""
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
