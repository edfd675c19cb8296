"""The plain-text agent protocol: one shell command per turn, written after `$ `, until submission."""

import re

from arise.config import AgentConfig
from arise.ports import Sandbox
from arise.rollouts.time_limit import UP
from arise.types import CommandResult, Observation, StopReason, ToolCall, Turn

SUBMIT = "submit"
NO_COMMAND = "error: no command , answer with one line : $ command"
_COMMAND = re.compile(r"^\s*\$ ?(.+?)\s*$", re.MULTILINE)


def parse_command(text: str) -> str | None:
    """Return the first `$ command` line of an answer, or None."""
    found = _COMMAND.search(text)
    return found[1] if found else None


def observe(result: CommandResult, limit: int) -> Observation:
    """Return the observation of a command: its output, truncated to `limit`, and how it failed."""
    text, cut = result.output.strip(), False
    if len(text) > limit:
        text, cut = text[:limit] + " ... (cut)", True
    failed = result.ended != "exit" or result.exit_code != 0
    if result.ended != "exit":
        text = f"{text}\nerror: ended by the {result.ended} limit".strip()
    return Observation(text or ("error" if failed else "done"), failed, cut or result.truncated)


async def act(text: str, finish: str, sandbox: Sandbox, limits: AgentConfig) -> tuple[Turn, StopReason | None]:
    """Run the command of an answer; return the turn, and the stop reason if the attempt ends."""
    if finish == "context":
        return Turn(text), StopReason.CONTEXT_LIMIT
    if finish == "length":
        return Turn(text), StopReason.TOKEN_LIMIT
    command = parse_command(text)
    if command is None:
        return Turn(text, (), (Observation(NO_COMMAND, error=True),)), None
    call = ToolCall("bash", {"command": command})
    if command == SUBMIT:
        return Turn(text, (call,)), StopReason.FINISHED
    result = await sandbox.run(command, limits.command_seconds)
    stop = StopReason.TIME_LIMIT if result.ended == UP else None
    return Turn(text, (call,), (observe(result, limits.observation_chars),)), stop
