"""Queries on the process: iterations, sessions, costs, recorded facts, the last committed state."""

import json
from typing import Any

from arise.method.set_aside import Faulty, SetAside
from arise.run import rows
from arise.run.base_queries import BaseQueries
from arise.run.chunks import decompress
from arise.run.record import LIMITS
from arise.types import Pool
from arise.types.codec import from_json


class ProcessQueries(BaseQueries):
    """The progress and cost of a run, and the state for a resume."""

    def sessions(self) -> list[rows.Session]:
        """Return every process that locked the run, oldest first."""
        return self._rows(rows.Session, "SELECT at, owner, version, committed FROM sessions ORDER BY id")

    def missing_limits(self) -> list[tuple[int, str]]:
        """Return (session, limits that the kernel did not enforce) of every process that recorded them."""
        found = self.query("SELECT key, value FROM meta WHERE key LIKE ?", (f"{LIMITS}%",))
        return sorted((int(key.removeprefix(LIMITS)), missing) for key, missing in found)

    def iterations(self) -> list[rows.Iteration]:
        """Return every committed iteration with its metrics."""
        found = self.query("SELECT k, at, metrics, checkpoint FROM iterations ORDER BY k")
        return [rows.Iteration(k, at, json.loads(metrics), checkpoint) for k, at, metrics, checkpoint in found]

    def last_iteration(self) -> rows.Iteration | None:
        """Return the newest committed iteration, or None."""
        found = self.query("SELECT k, at, metrics, checkpoint FROM iterations ORDER BY k DESC LIMIT 1")
        return next((rows.Iteration(k, at, json.loads(metrics), name) for k, at, metrics, name in found), None)

    def vitals(self, prefix: str) -> list[tuple[int, str, float]]:
        """Return (k, name after the prefix, value) of vitals: `seconds.`, `judge.` or `spent.`."""
        return self.query(
            "SELECT k, substr(name, ?), value FROM vitals WHERE name >= ? AND name < ? ORDER BY k, name",
            (len(prefix) + 1, prefix, f"{prefix}\U0010ffff"),
        )

    def set_aside(self) -> dict[str, Faulty]:
        """Return the tasks set aside for the next iteration, from the last committed state."""
        aside = SetAside()
        aside.restore(self.last_state().get("set_aside", {}))
        return {task: aside.faulty[task] for task in aside.away(self.committed())}

    def last_state(self) -> dict[str, Any]:
        """Return the last committed state, or an empty one before the first commit."""
        found = self.query("SELECT state FROM iterations WHERE state IS NOT NULL ORDER BY k DESC LIMIT 1")
        return dict(decompress(found[0][0])) if found else {}

    def last_pool(self) -> Pool:
        """Return the pool of the last commit, retired pairs included; empty before the first commit."""
        state = self.last_state()
        return from_json(Pool, state["pool"]) if state else Pool()

    def recorded_facts(self) -> dict[str, str]:
        """Return the recorded facts about the run: format, versions, weights, configurations."""
        return dict(self.query("SELECT key, value FROM meta"))

    def iteration_seconds(self) -> list[float]:
        """Return the seconds of every timed iteration, without evaluation."""
        found = self.query("SELECT SUM(value) FROM vitals WHERE name LIKE 'seconds.%' GROUP BY k ORDER BY k")
        return [float(seconds) for (seconds,) in found]

    def table(self, name: str) -> list[dict[str, Any]]:
        """Return a whole table of `schema.sql` for an export, one dict per row."""
        columns = [row[1] for row in self.query(f"PRAGMA table_info({name})")]
        return [dict(zip(columns, row, strict=True)) for row in self.query(f"SELECT * FROM {name}")]  # noqa: S608

    def committed(self) -> int:
        """Return the number of committed iterations."""
        return int(self.query("SELECT COALESCE(MAX(k) + 1, 0) FROM iterations")[0][0])
