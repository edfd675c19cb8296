"""Classify tools by name: shells, file tools, browsers, and structured interfaces such as `update_order`."""

import re
from functools import lru_cache

from arise.analyst.acts import Op

SHELL, CODE, PATCH, BROWSER, RECORD, NOTHING = "shell", "code", "patch", "browser", "record", "nothing"

_BY_WORD = {
    "bash": SHELL, "shell": SHELL, "terminal": SHELL, "exec": SHELL, "execute": SHELL, "command": SHELL,
    "keystrokes": SHELL, "stdin": NOTHING,
    "python": CODE, "ipython": CODE, "notebook": CODE, "interpreter": CODE, "jupyter": CODE,
    "read": Op.READ, "view": Op.READ, "open": Op.READ, "cat": Op.READ, "fetch": Op.READ, "skill": Op.READ,
    "write": Op.WRITE, "create": Op.WRITE, "save": Op.WRITE, "edit": Op.WRITE, "replace": Op.WRITE, "insert": Op.WRITE,
    "patch": PATCH, "multiedit": Op.WRITE, "append": Op.WRITE,
    "search": Op.SEARCH, "grep": Op.SEARCH, "glob": Op.LIST, "find": Op.SEARCH, "list": Op.LIST, "ls": Op.LIST,
    "delete": Op.DELETE, "remove": Op.DELETE, "rm": Op.DELETE, "copy": Op.BACKUP, "backup": Op.BACKUP,
    "submit": Op.FINISH, "finish": Op.FINISH, "answer": Op.FINISH, "complete": Op.FINISH, "completion": Op.FINISH,
    "done": Op.FINISH, "install": Op.INSTALL,
}  # fmt: skip
_SILENT = frozenset(
    ("think", "thought", "todo", "todos", "plan", "planning", "note", "memory", "scratchpad", "reflect")
)
_BROWSER = frozenset(("browser", "browse", "page", "playwright", "puppeteer", "web", "url", "tab", "webpage", "chrome"))
_GESTURES = {
    "goto": Op.READ, "navigate": Op.READ, "visit": Op.READ, "snapshot": Op.READ, "screenshot": Op.READ,
    "scroll": Op.READ, "extract": Op.READ, "click": Op.RUN, "type": Op.RUN, "fill": Op.RUN, "press": Op.RUN,
    "hover": Op.RUN, "select": Op.RUN, "drag": Op.RUN, "upload": Op.RUN,
}  # fmt: skip
_VERBS = {
    "get": Op.READ, "fetch": Op.READ, "retrieve": Op.READ, "lookup": Op.READ, "check": Op.READ, "describe": Op.READ,
    "list": Op.LIST, "find": Op.SEARCH, "search": Op.SEARCH, "query": Op.SEARCH,
    "update": Op.WRITE, "modify": Op.WRITE, "set": Op.WRITE, "book": Op.WRITE, "add": Op.WRITE, "create": Op.WRITE,
    "send": Op.WRITE, "exchange": Op.WRITE, "return": Op.WRITE, "change": Op.WRITE, "assign": Op.WRITE,
    "post": Op.WRITE, "put": Op.WRITE, "schedule": Op.WRITE, "transfer": Op.WRITE,
    "cancel": Op.DELETE, "delete": Op.DELETE, "remove": Op.DELETE,
}  # fmt: skip
_FILE_WORDS = frozenset(("file", "files", "dir", "directory", "folder", "path", "code", "text", "content", "editor"))


@lru_cache(maxsize=2048)
def words_of(name: str) -> tuple[str, ...]:
    """Return the lower-case words of a tool's name: `str_replace_editor`, `WebFetch`, `mcp__gmail__sendMail`."""
    return tuple(word for word in re.split(r"[^a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()) if word)


@lru_cache(maxsize=2048)
def kind_of(name: str) -> Op | str | None:
    """Return the kind of tool that a name suggests; None if it suggests none."""
    words = words_of(name)
    if not words or _SILENT & set(words):
        return NOTHING if words else None
    if "run" in words and "command" in words:
        return SHELL
    if _BROWSER & set(words) or (len(words) == 1 and words[0] in _GESTURES):
        return BROWSER
    found = next((_BY_WORD[word] for word in words if word in _BY_WORD), None)
    if found in (SHELL, CODE, PATCH, NOTHING) or Op.FINISH is found:
        return found
    if words[0] in _VERBS and len(words) > 1 and not _FILE_WORDS & set(words):
        return RECORD
    return found


def gesture_of(name: str) -> Op:
    """Return what a browser tool does: view a page, or act on it."""
    words = words_of(name)
    found = next((_GESTURES[word] for word in words if word in _GESTURES), None)
    return found or (
        Op.SEARCH if "search" in words else Op.READ if {"fetch", "open", "read", "view"} & set(words) else Op.RUN
    )


def verb_of(name: str) -> Op:
    """Return the operation of a structured interface on its record."""
    return _VERBS[words_of(name)[0]]


def noun_of(name: str) -> str:
    """Return the record type of a structured interface: `order` for `update_pending_order_items`."""
    return "-".join(words_of(name)[1:3])
