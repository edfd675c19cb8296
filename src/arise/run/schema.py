"""Create the tables of a run from `schema.sql`, and compare them with it."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from importlib.resources import files


def create(db: sqlite3.Connection) -> None:
    """Create missing tables."""
    db.executescript(files("arise.run").joinpath("schema.sql").read_text())


def differences(db: sqlite3.Connection) -> Iterator[str]:
    """Yield tables and indices that differ from this version's."""
    with closing(sqlite3.connect(":memory:")) as fresh:
        create(fresh)
        wanted, found = _described(fresh), _described(db)
    for name in sorted(wanted.keys() | found.keys()):
        if wanted.get(name) != found.get(name):
            yield f"{name} is not described as this version describes it"


def _described(db: sqlite3.Connection) -> dict[str, str]:
    return dict(db.execute("SELECT name, COALESCE(sql, '') FROM sqlite_master WHERE name NOT LIKE 'sqlite_stat%'"))
