"""From a tool call of any harness to generic acts: shell tools by their command, file tools by name and path."""

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from arise.analyst.acts import Act, Op, check_like, path_like
from arise.analyst.operations import acts_of_shell
from arise.types import ToolCall

_SHELL_ARGUMENTS = ("command", "cmd", "script", "commands", "input")
_PATH_ARGUMENTS = ("path", "file_path", "filepath", "file", "filename", "target", "paths", "files", "directory", "dir")
_EDITOR_COMMANDS = {
    "view": Op.READ,
    "create": Op.WRITE,
    "str_replace": Op.WRITE,
    "insert": Op.WRITE,
    "undo_edit": Op.WRITE,
}
_BY_WORD = {
    "bash": "shell", "shell": "shell", "terminal": "shell", "exec": "shell", "execute": "shell", "command": "shell",
    "read": Op.READ, "view": Op.READ, "open": Op.READ, "cat": Op.READ, "fetch": Op.READ, "skill": Op.READ,
    "write": Op.WRITE, "create": Op.WRITE, "save": Op.WRITE, "edit": Op.WRITE, "replace": Op.WRITE, "insert": Op.WRITE,
    "patch": Op.WRITE, "multiedit": Op.WRITE, "append": Op.WRITE,
    "search": Op.SEARCH, "grep": Op.SEARCH, "glob": Op.LIST, "find": Op.SEARCH, "list": Op.LIST, "ls": Op.LIST,
    "delete": Op.DELETE, "remove": Op.DELETE, "rm": Op.DELETE, "copy": Op.BACKUP, "backup": Op.BACKUP,
    "submit": Op.FINISH, "finish": Op.FINISH, "answer": Op.FINISH, "complete": Op.FINISH, "completion": Op.FINISH,
    "done": Op.FINISH, "install": Op.INSTALL,
}  # fmt: skip


def acts_of_call(call: ToolCall) -> tuple[str, Sequence[Act]]:
    """One spelling of a call, and its acts; arguments of unexpected types are read as text."""
    kind = _kind(call.name)
    arguments = call.arguments if isinstance(call.arguments, Mapping) else {}
    editor = _EDITOR_COMMANDS.get(str(arguments.get("command", ""))) if "path" in arguments else None
    if kind == "shell" and editor is None:
        command = _shell_text(arguments)
        return " ".join(command.split()), acts_of_shell(command)
    text = f"{call.name} {_spelled(arguments)}"
    op = editor or (kind if isinstance(kind, Op) else Op.CHECK if check_like(call.name) else Op.RUN)
    paths = _paths(arguments)
    acts = [Act(op, path, call.name, text) for path in paths or [""]]
    if op is Op.RUN:
        acts = [Act(Op.RUN, "", call.name, text), *(Act(Op.USE, path, call.name, text) for path in paths)]
    return text, acts


@lru_cache(maxsize=1024)
def _kind(name: str) -> Op | str | None:
    words = [word for word in re.split(r"[^a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()) if word]
    if "run" in words and "command" in words:
        return "shell"
    return next((_BY_WORD[word] for word in words if word in _BY_WORD), None)


def _shell_text(arguments: Mapping[str, object]) -> str:
    for key in _SHELL_ARGUMENTS:
        value = arguments.get(key)
        if isinstance(value, str):
            return value
        if isinstance(value, list | tuple):
            return " ".join(map(str, value))
    return " ".join(value for value in arguments.values() if isinstance(value, str))


def _paths(arguments: Mapping[str, object]) -> list[str]:
    """Values of the usual path arguments; failing those, any argument that looks like a file."""
    named = [arguments[key] for key in _PATH_ARGUMENTS if key in arguments]
    values = named or list(arguments.values())
    flat = [item for value in values for item in (value if isinstance(value, list | tuple) else (value,))]
    return [item for item in flat if isinstance(item, str) and item and (named or path_like(item))][:64]


def _spelled(arguments: Mapping[str, object]) -> str:
    try:
        return json.dumps(dict(arguments), sort_keys=True, default=str)
    except (TypeError, ValueError, RecursionError):
        return str(sorted(map(str, arguments)))
