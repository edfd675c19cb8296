"""Run a harness in a sandbox that can reach only the endpoint, until it exits or reaches a limit."""

import asyncio
import shlex
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from arise.endpoint.sessions import Session
from arise.harnesses.spec import Harness, Values
from arise.ports import Sandbox
from arise.types import CommandResult

HOME = "/tmp/harness"  # noqa: S108 - the sandbox's own
INSTRUCTION, LOG, START = f"{HOME}/instruction.md", f"{HOME}/output.log", f"{HOME}/start.sh"
LAST_BYTES = 4000
TAIL_SECONDS = 60.0


@dataclass(frozen=True)
class Ended:
    """How a harness ended — `Ended("exit", 0, "done")`: its own exit, a sandbox limit, or the end of its session."""

    how: str
    """`exit`, `session` (no further call would be answered), or the sandbox limit that was reached."""
    exit_code: int
    output: str
    """The end of the harness's output."""


async def write_file(sandbox: Sandbox, path: str, text: str) -> None:
    """Write a text file in a sandbox."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", errors="replace", prefix="arise-") as file:
        file.write(text)
        file.flush()
        await sandbox.put(Path(file.name), path)


async def launch(
    harness: Harness, sandbox: Sandbox, session: Session, values: Values, instruction: str, seconds: float
) -> Ended:
    """Configure and start a harness and wait until it ends; kill all its processes before returning."""
    for path, text in harness.files.items():
        await write_file(sandbox, values.fill(path), values.fill(text))
    await write_file(sandbox, INSTRUCTION, instruction)
    env = {name: values.fill(value) for name, value in harness.env.items()}
    await write_file(sandbox, START, script(values.fill(harness.command), env))
    running = asyncio.create_task(sandbox.run(f"bash {START} > {LOG} 2>&1", seconds))
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


def script(command: str, env: Mapping[str, str]) -> str:
    """Return a shell script that runs a command with the given environment variables."""
    exports = [f"export {name}={shlex.quote(value)}" for name, value in env.items()]
    return "\n".join([*exports, command.strip(), ""])


async def _last(sandbox: Sandbox, result: CommandResult) -> str:
    """Return the end of a harness's output if its sandbox is still running."""
    if result.ended != "exit":
        return result.output[-LAST_BYTES:]
    return (await sandbox.run(f"tail -c {LAST_BYTES} {LOG}", TAIL_SECONDS)).output
