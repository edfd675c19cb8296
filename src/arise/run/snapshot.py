"""One read-only snapshot of a run's database: all queries see the same commit, even while the run writes."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from arise.config.file import ConfigError
from arise.errors import AriseError, Exit
from arise.run.base_queries import BaseQueries, Given
from arise.run.read_only import read_only

FORMAT = "2"
"""Version of the tables and chunks, written into every run."""
NOT_UNDERSTOOD = (ValueError, KeyError, IndexError, TypeError, AttributeError, ArithmeticError)
"""Exceptions raised by unknown text, broken JSON or values of another type."""


class Snapshot(BaseQueries):
    """An open read transaction on the run in `folder`."""

    def __init__(self, folder: Path, db: sqlite3.Connection) -> None:
        self.folder, self._db = folder, db

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Open the run in `folder` as last committed; raise `AriseError` with a remedy if it cannot be read."""
        path = folder / "run.db"
        if not path.is_file():
            raise _unreadable(folder, "holds no run", "name a folder that `arise train` made")
        db = None
        try:
            db = read_only(path)
            db.execute("BEGIN")
            found = db.execute("SELECT value FROM meta WHERE key='format'").fetchone()
        except sqlite3.Error as error:
            if db:
                db.close()
            raise _unreadable(folder, f"cannot be read: {error}", f"arise verify {folder}") from None
        if not found or found[0] != FORMAT:
            db.close()
            version = found[0] if found else "unknown"
            raise _unreadable(
                folder,
                f"is a run store of format {version}, this version reads {FORMAT}",
                "open it with the version of arise that wrote it",
            )
        return cls(folder, db)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Close; convert an exception caused by the run's content to an `AriseError`."""
        self.close()
        if isinstance(error, NOT_UNDERSTOOD) and not isinstance(error, ConfigError):
            what = f"holds something that this version does not understand: {type(error).__name__}: {error}"
            remedy = f"what is damaged: arise verify {self.folder}; else open it with the version that wrote it"
            raise _unreadable(self.folder, what, remedy) from error

    def close(self) -> None:
        """Release the snapshot."""
        self._db.close()

    def query(self, sql: str, parameters: Given = ()) -> list[tuple[Any, ...]]:
        """Execute SQL on the snapshot."""
        with self._readable():
            return self._db.execute(sql, parameters).fetchall()

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise _unreadable(self.folder, f"cannot be read: {error}", f"arise verify {self.folder}") from None


def _unreadable(folder: Path, what: str, remedy: str) -> AriseError:
    return AriseError("storage", Exit.STORAGE, f"{folder} {what}", "nothing was changed", remedy)
