"""The tables of a run in memory, with all queries: rows without a folder."""

import sqlite3
from collections.abc import Iterable
from typing import Any

from arise.run import schema
from arise.run.base_queries import Given
from arise.run.queries import RunQueries


class InMemoryRun(RunQueries):
    """`InMemoryRun(attempts=[...])` holds these rows."""

    def __init__(self, **tables: Iterable[tuple[Any, ...]]) -> None:
        self._db = sqlite3.connect(":memory:")
        schema.create(self._db)
        for table, rows in tables.items():
            for row in rows:
                self._db.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)  # noqa: S608 - own table names

    def config(self) -> dict[str, Any]:
        return {}

    def query(self, sql: str, parameters: Given = ()) -> list[tuple[Any, ...]]:
        return self._db.execute(sql, parameters).fetchall()
