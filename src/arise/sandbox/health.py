"""Make a sandbox with an image ready for an agent: files, set-up and healthcheck of the task."""

import asyncio
import shlex
import time

from arise.ports import Sandbox, SandboxLost
from arise.types import Healthcheck, Place
from arise.types.sandbox import COMPOSE_FILE

_SAID = 500


class NotReady(SandboxLost):
    """A set-up command or a healthcheck failed."""


async def become_ready(sandbox: Sandbox, place: Place) -> None:
    """Copy the files that no build put into the image, run the set-up, wait for the healthcheck, or raise NotReady."""
    described = place.dockerfile is not None or (place.files is not None and (place.files / COMPOSE_FILE).exists())
    if place.image and place.files is not None and not described:
        await sandbox.put(place.files, sandbox.workdir)
    for asked in place.setup:
        command = f"cd {shlex.quote(asked.cwd)} && {{\n{asked.command}\n}}" if asked.cwd else asked.command
        done = await sandbox.run(command, asked.timeout, asked.env, user=asked.user)
        if done.ended != "exit" or done.exit_code:
            raise NotReady(f"the set-up command {asked.command!r} failed: {done.output.strip()[-_SAID:]}")
    if place.healthcheck is not None:
        await become_healthy(sandbox, place.healthcheck)


async def become_healthy(sandbox: Sandbox, check: Healthcheck) -> None:
    """Wait until the healthcheck succeeds; raise NotReady after `retries` failures past the start period."""
    begun, failures = time.monotonic(), 0
    while True:
        starting = time.monotonic() - begun < check.start_period
        done = await sandbox.run(check.command, check.timeout)
        if done.ended == "exit" and done.exit_code == 0:
            return
        failures += not starting
        if failures >= check.retries:
            said = done.output.strip()[-_SAID:]
            raise NotReady(f"the healthcheck {check.command!r} failed {failures} times: {said}")
        await asyncio.sleep(check.start_interval if starting else check.interval)
