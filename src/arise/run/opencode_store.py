"""Read the sessions of an opencode store, another tool's SQLite file, without changing it."""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

Parts = list[Mapping[str, Any]]


class StoreUnreadable(ValueError):  # noqa: N818 - a reason to skip a file
    """The file is not an opencode store, or its tables differ."""


@dataclass(frozen=True)
class StoredSession:
    """One session: its messages in order, each with its parts; `parent` is the id of its parent session."""

    id: str
    parent: str
    messages: tuple[tuple[Mapping[str, Any], Parts], ...]


def is_store(path: Path) -> bool:
    """Return whether an SQLite file has opencode's tables; its first pages need not name them."""
    try:
        with closing(_opened(path)) as db:
            rows = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    except (sqlite3.Error, ValueError):
        return False
    return {"session", "message", "part"} <= {str(name) for (name,) in rows}


def sessions(path: Path) -> Iterator[StoredSession]:
    """Yield the sessions of a store one at a time."""
    try:
        with closing(_opened(path)) as db:
            parents = _parents(db)
            for (name,) in db.execute("SELECT DISTINCT session_id FROM message ORDER BY session_id").fetchall():
                yield StoredSession(name, str(parents.get(name) or ""), _messages(db, name))
    except (sqlite3.Error, ValueError) as error:
        raise StoreUnreadable(f"opencode store cannot be read: {error}") from None


def _opened(path: Path) -> sqlite3.Connection:
    """Open a store read-only; if it has no journal, open it as immutable, because SQLite would create one."""
    journal = path.with_name(f"{path.name}-wal")
    how = "mode=ro" if journal.is_file() else "mode=ro&immutable=1"
    return sqlite3.connect(f"file:{quote(str(path))}?{how}", uri=True)


def _parents(db: sqlite3.Connection) -> dict[str, str | None]:
    known = db.execute("SELECT name FROM pragma_table_info('session')").fetchall()
    return dict(db.execute("SELECT id, parent_id FROM session").fetchall()) if ("parent_id",) in known else {}


def _messages(db: sqlite3.Connection, session: str) -> tuple[tuple[Mapping[str, Any], Parts], ...]:
    parts: dict[str, Parts] = {}
    for owner, data in db.execute("SELECT message_id, data FROM part WHERE session_id = ? ORDER BY id", (session,)):
        parts.setdefault(owner, []).append(json.loads(data))
    rows = db.execute("SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id", (session,))
    return tuple((json.loads(data), parts.get(key, [])) for key, data in rows.fetchall())
