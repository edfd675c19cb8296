"""Convert a tool call of any harness to generic acts: shells by command, file tools by path, browsers and records."""

import json
import re
import shlex
from collections.abc import Mapping, Sequence

from arise.analyst.acts import Act, Op, check_like, path_like
from arise.analyst.operations import acts_of_shell
from arise.analyst.tool_kinds import (
    BROWSER,
    CODE,
    NOTHING,
    PATCH,
    RECORD,
    SHELL,
    gesture_of,
    kind_of,
    noun_of,
    verb_of,
)
from arise.types import ToolCall

_SHELL_ARGUMENTS = ("command", "cmd", "script", "commands", "keystrokes", "input")
_PATH_ARGUMENTS = (
    "path", "file_path", "filepath", "file", "filename", "target", "paths", "files", "directory", "dir",
    "filePath", "notebook_path", "absolute_path", "relative_path", "target_file",
)  # fmt: skip
_EDITOR_COMMANDS = {
    "view": Op.READ,
    "create": Op.WRITE,
    "str_replace": Op.WRITE,
    "insert": Op.WRITE,
    "undo_edit": Op.WRITE,
}
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$|^\+\+\+ (?:b/)?(\S+)", re.MULTILINE)
_IDENTIFIER = re.compile(r"(?:^|_)(?:id|ids|number|email|key|name|url)$")


def acts_of_call(call: ToolCall) -> tuple[str, Sequence[Act]]:
    """Return a canonical text of a call and its acts; arguments of unexpected types are read as text."""
    kind = kind_of(call.name)
    arguments = call.arguments if isinstance(call.arguments, Mapping) else {}
    editor = _EDITOR_COMMANDS.get(str(arguments.get("command", ""))) if "path" in arguments else None
    if editor is None and kind in (SHELL, CODE):
        command = _shell_text(arguments) if kind == SHELL else _code_text(arguments)
        return " ".join(command.split()), acts_of_shell(command)
    text = f"{call.name} {_spelled(arguments)}"
    if editor is None:
        if kind == NOTHING:
            return text, ()
        if kind == PATCH:
            return text, _patch(call.name, text, arguments)
        if kind == BROWSER:
            return text, [Act(gesture_of(call.name), _address(arguments), "browser", text)]
        if kind == RECORD:
            return text, _record(call.name, text, arguments)
    op = editor or (kind if isinstance(kind, Op) else Op.CHECK if check_like(call.name) else Op.RUN)
    paths = _paths(arguments)
    acts = [Act(op, path, call.name, text) for path in paths or [""]]
    if op is Op.RUN:
        acts = [Act(Op.RUN, "", call.name, text), *(Act(Op.USE, path, call.name, text) for path in paths)]
    return text, acts


def _patch(name: str, text: str, arguments: Mapping[str, object]) -> list[Act]:
    """Return writes of the files that a patch touches; a patch in an unknown format still writes something."""
    body = "\n".join(value for value in arguments.values() if isinstance(value, str))
    paths = [next(filter(None, groups)).strip() for groups in _PATCHED.findall(body)] or _paths(arguments) or [""]
    return [Act(Op.WRITE, path, name, text) for path in dict.fromkeys(paths)]


def _record(name: str, text: str, arguments: Mapping[str, object]) -> list[Act]:
    """Return the acts of a structured interface on a record, e.g.

    `order/W123`; the answer to a change shows its result.
    """
    key = next((str(value) for name, value in arguments.items() if _IDENTIFIER.search(name) and value), "")
    path = f"{noun_of(name)}/{key}" if key else ""
    op = verb_of(name)
    acts = [Act(op, path, name, text)]
    return [*acts, Act(Op.READ, path, name, text)] if op in (Op.WRITE, Op.DELETE) else acts


def _address(arguments: Mapping[str, object]) -> str:
    value = arguments.get("url") or arguments.get("href") or arguments.get("query") or ""
    return value if isinstance(value, str) and "://" in value else ""


def _code_text(arguments: Mapping[str, object]) -> str:
    """Return the command that would run Python code passed to an interpreter; a file is run by its name."""
    code = next((str(arguments[key]) for key in ("code", "source", "input", "cell") if arguments.get(key)), "")
    return f"python3 - <<'END_OF_CODE'\n{code}\nEND_OF_CODE" if code else f"python3 {_shell_text(arguments)}"


def _shell_text(arguments: Mapping[str, object]) -> str:
    for key in _SHELL_ARGUMENTS:
        value = arguments.get(key)
        if isinstance(value, str):
            return value
        if isinstance(value, list | tuple):
            return _joined([str(word) for word in value])
    return " ".join(value for value in arguments.values() if isinstance(value, str))


def _joined(words: list[str]) -> str:
    """Return a command given as a list: the script of `bash -lc SCRIPT`, else the words quoted as needed."""
    if len(words) == 3 and words[1] in ("-c", "-lc", "-ec"):
        return words[2]
    return shlex.join(words) if any(" " in word or not word for word in words) else " ".join(words)


def _paths(arguments: Mapping[str, object]) -> list[str]:
    """Return the values of the usual path arguments; without those, any argument that looks like a file."""
    named = [arguments[key] for key in _PATH_ARGUMENTS if key in arguments]
    values = named or list(arguments.values())
    flat = [item for value in values for item in (value if isinstance(value, list | tuple) else (value,))]
    return [item for item in flat if isinstance(item, str) and item and (named or path_like(item))][:64]


def _spelled(arguments: Mapping[str, object]) -> str:
    try:
        return json.dumps(dict(arguments), sort_keys=True, default=str)
    except (TypeError, ValueError, RecursionError):
        return str(sorted(map(str, arguments)))
