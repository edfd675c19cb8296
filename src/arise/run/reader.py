"""A run, read-only: everything a page, figure or export shows is a query here."""

import json

from arise.method.set_aside import Faulty, SetAside
from arise.run import rows
from arise.run.chunks import decompress
from arise.run.pool_queries import PoolQueries
from arise.run.record import LIMITS
from arise.run.rollout_queries import RolloutQueries


class RunReader(PoolQueries, RolloutQueries):
    """`with RunReader.open(folder) as run: run.iterations()` — one snapshot of a run."""

    def sessions(self) -> list[rows.Session]:
        """Every process that held the run, oldest first."""
        return self._rows(rows.Session, "SELECT at, owner, version, committed FROM sessions ORDER BY id")

    def missing_limits(self) -> list[tuple[int, str]]:
        """(session, limits that the kernel did not enforce), of every process that trained and wrote it down."""
        found = self.query("SELECT key, value FROM meta WHERE key LIKE ?", (f"{LIMITS}%",))
        return sorted((int(key.removeprefix(LIMITS)), missing) for key, missing in found)

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

    def set_aside(self) -> dict[str, Faulty]:
        """The tasks that the next iteration does without, by the last committed state."""
        found = self.query("SELECT k, state FROM iterations WHERE state IS NOT NULL ORDER BY k DESC LIMIT 1")
        if not found:
            return {}
        k, state = found[0]
        aside = SetAside()
        aside.restore(decompress(state).get("set_aside", {}))
        return {task: aside.faulty[task] for task in aside.away(k + 1)}

    def committed(self) -> int:
        """How many iterations are committed."""
        return int(self.query("SELECT COALESCE(MAX(k) + 1, 0) FROM iterations")[0][0])
