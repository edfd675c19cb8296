"""Open SQLite files read-only, including on a read-only disk."""

import os
import sqlite3
from pathlib import Path


def read_only(path: Path, timeout: float = 10.0) -> sqlite3.Connection:
    """Open a database that another process may be writing; raise sqlite3.Error if it cannot be read.

    A database in write-ahead mode needs an index file next to it. If the disk is read-only and the log is empty, no
    process can be writing, so the file is opened as immutable.
    """
    address, log = f"{path.absolute().as_uri()}?mode=ro", path.with_name(f"{path.name}-wal")
    closed = not os.access(path.parent, os.W_OK)
    unread = closed and log.exists() and log.stat().st_size > 0
    if closed and not unread:
        address += "&immutable=1"
    db = sqlite3.connect(address, uri=True, timeout=timeout, isolation_level=None)
    try:
        db.execute("SELECT 1 FROM sqlite_master").fetchone()
    except sqlite3.Error as error:
        db.close()
        if unread:
            raise sqlite3.OperationalError(
                f"{log.name} holds commits that are not in {path.name} yet, and {path.parent} cannot be written: "
                "make it writable once, or copy the folder to a place that is"
            ) from None
        raise error
    return db
