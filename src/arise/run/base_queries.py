"""The base of all queries, for both the snapshot reader and the writer."""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from arise.config.pool import PoolConfig
from arise.run.folder import CONFIG_FILE

T = TypeVar("T")
Given = Sequence[Any] | Mapping[str, Any]


class BaseQueries:
    """Query methods over a run folder; a subclass implements the execution of SQL."""

    folder: Path

    def query(self, sql: str, parameters: Given = ()) -> list[tuple[Any, ...]]:
        """Execute SQL and return all rows. Only modules of `arise.run` call it; others use the named queries."""
        raise NotImplementedError

    def _rows(self, kind: Callable[..., T], sql: str, parameters: Given = ()) -> list[T]:
        return [kind(*row) for row in self.query(sql, parameters)]

    def config(self) -> dict[str, Any]:
        """Return the configuration in the run folder, or an empty one."""
        return self._config

    @cached_property
    def _config(self) -> dict[str, Any]:
        path = self.folder / CONFIG_FILE
        return tomllib.loads(path.read_text()) if path.is_file() else {}

    @property
    def update_every(self) -> int:
        """Return the iterations per window; the pool is updated at the end of each window."""
        return int(self.config().get("pool", {}).get("update_every", PoolConfig().update_every))
