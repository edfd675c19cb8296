"""The tools of the tool-calling agent, as commands in its sandbox: bash, read, write, edit."""

import base64
import binascii
import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from arise.ports import Sandbox
from arise.rollouts.time_limit import UP
from arise.types import CommandResult, FunctionCall, Observation, ToolSpec


def _spec(
    name: str, description: str, required: Mapping[str, str], optional: Mapping[str, str] | None = None
) -> ToolSpec:
    """Return a tool with required string arguments and optional integer arguments."""
    properties = {key: {"type": "string", "description": text} for key, text in required.items()}
    properties |= {key: {"type": "integer", "description": text} for key, text in (optional or {}).items()}
    return ToolSpec(name, description, {"type": "object", "properties": properties, "required": list(required)})


SPECS = {
    "bash": _spec(
        "bash",
        "Run a shell command or script in the working directory and return its output.",
        {"command": "The command; it may have several lines."},
    ),
    "read": _spec(
        "read",
        "Return the lines of a text file.",
        {"path": "Path of the file."},
        {"start": "First line, from 1.", "count": "Number of lines."},
    ),
    "write": _spec(
        "write",
        "Create or replace a text file.",
        {"path": "Path of the file.", "content": "The whole new content."},
    ),
    "edit": _spec(
        "edit",
        "Replace a text that occurs exactly once in a file.",
        {"path": "Path of the file.", "old": "The text to replace.", "new": "The text to put in its place."},
    ),
}


class RefusedCallError(ValueError):
    """An invalid call; the message tells the model how to correct it."""


@dataclass(frozen=True)
class Toolbox:
    """The tools of one attempt; a failing call is an observation, never an error of the attempt."""

    sandbox: Sandbox
    names: Sequence[str]
    seconds: float
    chars: int

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """Return the tool specifications for the model."""
        return tuple(SPECS[name] for name in self.names)

    async def run(self, call: FunctionCall) -> tuple[Observation, bool]:
        """Run a call; return the observation, and whether the time limit of the attempt is reached."""
        try:
            arguments = self._checked(call)
            result = await self._tool(call.name)(arguments)
        except RefusedCallError as refused:
            return Observation(f"error: {refused}", error=True, call_id=call.id), False
        return self._observation(result, call.id), result.ended == UP

    def _tool(self, name: str) -> Callable[[dict[str, Any]], Awaitable[CommandResult]]:
        return {"bash": self._bash, "read": self._read, "write": self._write, "edit": self._edit}[name]

    def _checked(self, call: FunctionCall) -> dict[str, Any]:
        if call.name not in self.names:
            raise RefusedCallError(f"there is no tool {call.name!r}; the tools are: {', '.join(self.names)}")
        schema: Any = SPECS[call.name].parameters
        known, given = schema["properties"], dict(call.arguments)
        if unknown := sorted(set(given) - set(known)):
            raise RefusedCallError(f"{call.name} has no argument {unknown[0]!r}; its arguments are: {', '.join(known)}")
        for name in schema["required"]:
            if not isinstance(given.get(name), str):
                raise RefusedCallError(f"{call.name} needs the argument {name!r}, a string")
        for name in set(known) - set(schema["required"]):
            value = given.get(name, 1)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise RefusedCallError(f"the argument {name!r} of {call.name} is a whole number from 1")
        return given

    async def _bash(self, given: dict[str, Any]) -> CommandResult:
        return await self.sandbox.run(given["command"], self.seconds)

    async def _read(self, given: dict[str, Any]) -> CommandResult:
        start = given.get("start", 1)
        last = start + given["count"] - 1 if "count" in given else "$"
        return await self.sandbox.run(f"sed -n '{start},{last}p' -- {_quoted(given['path'])}", self.seconds)

    async def _write(self, given: dict[str, Any]) -> CommandResult:
        path, content = _quoted(given["path"]), given["content"].encode("utf-8", "surrogateescape")
        data = base64.b64encode(content).decode()
        lines = "\n".join(data[n : n + 76] for n in range(0, len(data), 76))
        return await self.sandbox.run(
            f"mkdir -p -- \"$(dirname -- {path})\" && base64 -d > {path} <<'END'\n{lines}\nEND", self.seconds
        )

    async def _edit(self, given: dict[str, Any]) -> CommandResult:
        found = await self.sandbox.run(f"base64 < {_quoted(given['path'])}", self.seconds)
        if found.exit_code != 0 or found.ended != "exit":
            return found
        try:
            if found.truncated:
                raise RefusedCallError(
                    f"{given['path']} is too large for edit: change it with bash, by sed or a script"
                )
            content = base64.b64decode("".join(found.output.split()), validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            raise RefusedCallError(f"{given['path']} is not a text file: change it with bash") from None
        times = content.count(given["old"]) if given["old"] else 0
        if times != 1:
            hint = "read the file first" if not times else "add lines around it until it is unique"
            raise RefusedCallError(f"the text of 'old' occurs {times} times in {given['path']}, not once: {hint}")
        changed = content.replace(given["old"], given["new"])
        return await self._write({"path": given["path"], "content": changed})

    def _observation(self, result: CommandResult, call_id: str) -> Observation:
        text, cut = shortened(result.output.rstrip("\n"), self.chars)
        failed = result.ended != "exit" or result.exit_code != 0
        if result.ended != "exit":
            text = f"{text}\nerror: ended by the {result.ended} limit".strip()
        elif failed:
            text = f"{text}\nexit code {result.exit_code}".strip()
        return Observation(text or "(no output)", failed, cut or result.truncated, call_id)


def shortened(text: str, limit: int) -> tuple[str, bool]:
    """Truncate the middle of a text to a limit and state the number of omitted characters."""
    if len(text) <= limit:
        return text, False
    head = max(1, limit * 2 // 3)
    tail = max(0, limit - head)
    left_out = len(text) - head - tail
    return f"{text[:head]}\n... ({left_out} characters left out) ...\n{text[len(text) - tail :]}", True


def _quoted(path: str) -> str:
    """Quote a path for the shell; a leading dash is not read as an option."""
    return shlex.quote(f"./{path}" if path.startswith("-") else path)
