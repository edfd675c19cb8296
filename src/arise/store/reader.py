"""A run, read-only: everything a page, figure or export shows is a query here."""

import json
import tomllib
from functools import cached_property
from typing import Any

from arise.store import rows
from arise.store.pool_queries import PoolQueries
from arise.store.rollout_queries import RolloutQueries


class RunReader(PoolQueries, RolloutQueries):
    """`with RunReader.open(folder) as run: run.iterations()` — one snapshot of a run."""

    def config(self) -> dict[str, Any]:
        """The configuration as the run folder keeps it; empty where it has none."""
        return self._config

    @cached_property
    def _config(self) -> dict[str, Any]:
        path = self.folder / "config.toml"
        return tomllib.loads(path.read_text()) if path.is_file() else {}

    def sessions(self) -> list[rows.Session]:
        """Every process that held the run, oldest first."""
        return self._rows(rows.Session, "SELECT at, owner, version, committed FROM sessions ORDER BY id")

    def iterations(self) -> list[rows.Iteration]:
        """Every committed iteration with its metrics."""
        found = self.query("SELECT k, at, metrics, checkpoint FROM iterations ORDER BY k")
        return [rows.Iteration(k, at, json.loads(metrics), checkpoint) for k, at, metrics, checkpoint in found]

    def last_iteration(self) -> rows.Iteration | None:
        """The newest committed iteration, or None."""
        found = self.query("SELECT k, at, metrics, checkpoint FROM iterations ORDER BY k DESC LIMIT 1")
        return next((rows.Iteration(k, at, json.loads(metrics), name) for k, at, metrics, name in found), None)

    def vitals(self, prefix: str) -> list[tuple[int, str, float]]:
        """(k, name after the prefix, value): `seconds.` by part, `judge.`, `spent.`; empty where nobody measured."""
        return self.query(
            "SELECT k, substr(name, ?), value FROM vitals WHERE name >= ? AND name < ? ORDER BY k, name",
            (len(prefix) + 1, prefix, f"{prefix}\U0010ffff"),
        )

    def committed(self) -> int:
        """How many iterations are committed."""
        return int(self.query("SELECT COALESCE(MAX(k) + 1, 0) FROM iterations")[0][0])
