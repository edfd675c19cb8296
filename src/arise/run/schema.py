"""The tables of a run: made from `schema.sql`, and compared with it."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from importlib.resources import files


def create(db: sqlite3.Connection) -> None:
    """Make the tables that are missing."""
    db.executescript(files("arise.run").joinpath("schema.sql").read_text())


def differences(db: sqlite3.Connection) -> Iterator[str]:
    """Tables and indices that are not as this version makes them."""
    with closing(sqlite3.connect(":memory:")) as fresh:
        create(fresh)
        wanted, found = _described(fresh), _described(db)
    for name in sorted(wanted.keys() | found.keys()):
        if wanted.get(name) != found.get(name):
            yield f"{name} is not described as this version describes it"


def _described(db: sqlite3.Connection) -> dict[str, str]:
    return dict(db.execute("SELECT name, COALESCE(sql, '') FROM sqlite_master WHERE name NOT LIKE 'sqlite_stat%'"))
