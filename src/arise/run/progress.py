"""The progress of a run, read while another process may be creating or writing it."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from arise.run.read_only import read_only


class RunProgress(NamedTuple):
    """Committed iterations, attempts of the last evaluation, and the digest of the initial weights."""

    committed: int = 0
    after: int = 0
    weights: str = ""


_PROGRESS = (
    "SELECT (SELECT COUNT(*) FROM iterations), (SELECT COUNT(*) FROM attempts WHERE label='after'), "
    "COALESCE((SELECT value FROM meta WHERE key='weights'), '')"
)


def progress_of(folder: Path) -> RunProgress:
    """Return the progress of a run; all zero before its tables exist."""
    if not (folder / "run.db").is_file():
        return RunProgress()
    try:
        with closing(read_only(folder / "run.db", timeout=5)) as db:
            return RunProgress(*db.execute(_PROGRESS).fetchone())
    except sqlite3.OperationalError:
        return RunProgress()
