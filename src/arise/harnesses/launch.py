"""Run a harness in a sandbox that can reach only the endpoint, until it exits or reaches a limit."""

import asyncio
import os
import shlex
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from arise.endpoint.serving import Endpoint
from arise.endpoint.sessions import Serves
from arise.harnesses.spec import Harness, Values
from arise.ports import Sandbox
from arise.types import CommandResult

HOME = "/tmp/harness"  # noqa: S108 - the sandbox's own
INSTRUCTION, LOG, START = f"{HOME}/instruction.md", f"{HOME}/output.log", f"{HOME}/start.sh"
LAST_BYTES = 4000
TAIL_SECONDS = FOLDER_SECONDS = 60.0


@dataclass(frozen=True)
class Ended:
    """How a harness ended — `Ended("exit", 0, "done")`: its own exit, a sandbox limit, or the end of its session."""

    how: str
    """`exit`, `session` (no further call would be answered), or the sandbox limit that was reached."""
    exit_code: int
    output: str
    """The end of the harness's output."""


async def write_file(sandbox: Sandbox, path: str, text: str) -> None:
    """Write a text file in a sandbox, which the user of its commands may change."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", errors="replace", prefix="arise-") as file:
        file.write(text)
        file.flush()
        os.fchmod(file.fileno(), 0o666)
        await sandbox.put(Path(file.name), path)


@dataclass(frozen=True)
class Launcher:
    """Start a harness in sandboxes — `Launcher(harness("pi"), endpoint, lambda sandbox: "/opt/pi")`.

    `program` returns the shell words that start it in a sandbox, whose system may be another than the host's. At most
    `at_once` run at a time: each is a whole program, and a machine full of them starves its sandboxes.
    """

    harness: Harness
    endpoint: Endpoint
    program: Callable[[Sandbox], str] = lambda _: ""
    seconds: float = 3600.0
    at_once: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(processes()))

    async def run(self, session: Serves, sandbox: Sandbox, instruction: str, window: int, max_tokens: int) -> Ended:
        """Serve a session to the harness until it ends; kill all its processes before returning."""
        async with self.at_once, self.endpoint.session(session):
            url = await sandbox.reach(f"unix:{self.endpoint.socket}")
            own, program = shlex.join(self.harness.arguments), self.program(sandbox)
            key, model = session.token, session.model
            values = Values(url, key, model, HOME, INSTRUCTION, program, str(window), str(max_tokens), own)
            await self._configure(sandbox, values, instruction)
            return await self._until_ended(session, sandbox)

    async def _configure(self, sandbox: Sandbox, values: Values, instruction: str) -> None:
        files = {values.fill(path): values.fill(text) for path, text in self.harness.files.items()}
        folders = sorted({HOME, *(str(PurePosixPath(path).parent) for path in files)})
        await sandbox.run(f"mkdir -p {shlex.join(folders)}", FOLDER_SECONDS)  # they then belong to the right user
        for path, text in files.items():
            await write_file(sandbox, path, text)
        await write_file(sandbox, INSTRUCTION, instruction)
        env = {name: values.fill(value) for name, value in self.harness.env.items()}
        await write_file(sandbox, START, script(values.fill(self.harness.command), env))

    async def _until_ended(self, session: Serves, sandbox: Sandbox) -> Ended:
        running = asyncio.create_task(sandbox.run(f"bash {START} > {LOG} 2>&1", self.seconds))
        over = asyncio.create_task(session.over.wait())
        try:
            await asyncio.wait({running, over}, return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                result = running.result()
                return Ended(result.ended, result.exit_code, await _last(sandbox, result))
            return Ended("session", 0, "")
        finally:
            over.cancel()
            running.cancel()
            await asyncio.gather(running, over, return_exceptions=True)
            await sandbox.end()


def processes() -> int:
    """Return how many harnesses may run at once on this machine: two for each processor."""
    return 2 * len(os.sched_getaffinity(0))


def script(command: str, env: Mapping[str, str]) -> str:
    """Return a shell script that runs a command with the given environment variables."""
    exports = [f"export {name}={shlex.quote(value)}" for name, value in env.items()]
    return "\n".join([*exports, command.strip(), ""])


async def _last(sandbox: Sandbox, result: CommandResult) -> str:
    """Return the end of a harness's output if its sandbox is still running."""
    if result.ended != "exit":
        return result.output[-LAST_BYTES:]
    return (await sandbox.run(f"tail -c {LAST_BYTES} {LOG}", TAIL_SECONDS)).output


def silence(harness: Harness, ended: Ended) -> str:
    """Return a message for a harness that made no call, with the last lines of its output."""
    said = ended.output.strip().splitlines()[-5:]
    return f"{harness.name} ended without a call to the endpoint ({ended.how}, exit code {ended.exit_code}): " + (
        " / ".join(said) or "it printed nothing"
    )
