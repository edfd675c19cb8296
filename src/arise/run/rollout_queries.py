"""Queries on what was drawn, attempted and evaluated: slots with their reason, cells, groups, tasks, rollouts."""

import json
from pathlib import Path

from arise.run import rows
from arise.run.chunks import Place, StoredRollout
from arise.run.snapshot import Snapshot
from arise.run.why import Mass
from arise.types import Draw
from arise.types.codec import from_json

_ROLLOUT = (
    "SELECT id, k, task_id, reward, success, stop, fault, turns, generated_tokens, advantage, task_advantage, "
    "rubric_advantage FROM rollouts"
)
_TASKS = (
    "SELECT t.id, t.domain, t.task_types, t.instruction, COUNT(g.k), COALESCE(SUM(g.rewarded), 0), "
    "COALESCE(SUM(g.successes), 0), MAX(g.k) FROM tasks t LEFT JOIN groups g ON g.task_id = t.id"
)
_OUTCOMES = {
    "": "1",
    "pass": "success = 1",
    "fail": "success = 0",
    "fault": "fault != ''",
}


class RolloutQueries(Snapshot):
    """Why a task was drawn and what its attempts came to."""

    def slots(self, k: int, slot: int | None = None) -> list[rows.SlotRow]:
        """The batch of an iteration, or one slot of it, each with its reason."""
        masses = {(c.task_type, c.capability): Mass(c.passes, c.fails) for c in self.cells(k - 1)}
        found = []
        wanted = "SELECT slot, details FROM draws WHERE k = ? AND slot = COALESCE(?, slot) ORDER BY slot"
        for number, details in self.query(wanted, (k, slot)):
            draw = from_json(Draw, json.loads(details))
            mass = masses.get((draw.cell.task_type, draw.cell.capability.value)) if draw.cell else None
            found.append(rows.SlotRow(k, number, draw, mass))
        return found

    def paths(self) -> list[tuple[int, str, int]]:
        """(k, path, slots) of every iteration."""
        return self.query("SELECT k, path, COUNT(*) FROM draws GROUP BY k, path ORDER BY k, path")

    def discovery(self) -> list[tuple[int, float | None]]:
        """(k, rho) of every iteration; None where the sampler has no such probability."""
        return self.query("SELECT k, json_extract(details, '$.rho') FROM draws WHERE slot=0 ORDER BY k")

    def cell_draws(self, first_k: int, last_k: int) -> list[rows.CellDraws]:
        """Adaptive draws by cell in iterations first_k to last_k, both included."""
        return self._rows(
            rows.CellDraws,
            "SELECT json_extract(details, '$.cell[0]'), json_extract(details, '$.cell[1]'), COUNT(*) FROM draws "
            "WHERE k BETWEEN ? AND ? AND path='adaptive' GROUP BY 1, 2 ORDER BY 1, 2",
            (first_k, last_k),
        )

    def cells(self, k: int) -> list[rows.CellRow]:
        """The ledger at the end of an iteration, by task type and capability."""
        return self._rows(rows.CellRow, "SELECT k, task_type, capability, passes, fails FROM cells WHERE k=?", (k,))

    def groups(self, k: int | None = None, task_id: str | None = None, last: int = -1) -> list[rows.GroupRow]:
        """Groups of an iteration, of a task, or all of them; of these perhaps the last only."""
        given = {name: value for name, value in (("k", k), ("task_id", task_id)) if value is not None}
        where = " AND ".join(f"{name}=:{name}" for name in given) or "1"
        found = self._rows(
            rows.GroupRow,
            "SELECT k, slot, task_id, size, rewarded, successes, reward FROM groups "  # noqa: S608 - own words only
            f"WHERE {where} ORDER BY k DESC, slot DESC LIMIT :last",
            {**given, "last": last},
        )
        return found[::-1]

    def group_sums(self) -> list[rows.GroupSums]:
        """The groups of every iteration, in sums."""
        return self._rows(
            rows.GroupSums,
            "SELECT k, COUNT(*), SUM(size), SUM(rewarded), SUM(successes), "
            "SUM(rewarded = size AND successes = 0), SUM(rewarded = size AND successes > 0 AND successes < size), "
            "SUM(rewarded = size AND successes = size), SUM(rewarded < size) FROM groups GROUP BY k ORDER BY k",
        )

    def tasks(self) -> list[rows.TaskRow]:
        """Every training task that was drawn so far."""
        return [_task(*row) for row in self.query(f"{_TASKS} GROUP BY t.id ORDER BY t.id")]

    def task(self, task_id: str) -> rows.TaskRow | None:
        """One task, or None."""
        found = self.query(f"{_TASKS} WHERE t.id=? GROUP BY t.id", (task_id,))
        return _task(*found[0]) if found else None

    def rollouts(
        self, *, outcome: str = "", k: int | None = None, task_id: str = "", limit: int = 50, offset: int = 0
    ) -> list[rows.RolloutRow]:
        """Rollouts, newest iteration first; `outcome` is pass, fail, fault or empty for all."""
        conditions = [_OUTCOMES[outcome]]
        conditions += ["k = :k"] if k is not None else []
        conditions += ["task_id = :task_id"] if task_id else []
        return self._rows(
            rows.RolloutRow,
            # The inner query is answered from an index alone, so that a late page is as quick as the first.
            f"{_ROLLOUT} WHERE rowid IN (SELECT rowid FROM rollouts WHERE {' AND '.join(conditions)} "  # noqa: S608 - own words only
            "ORDER BY k DESC, task_id, rowid LIMIT :limit OFFSET :offset) ORDER BY k DESC, task_id, rowid",
            {"k": k, "task_id": task_id, "limit": limit, "offset": offset},
        )

    def rollout(self, rollout_id: str) -> rows.RolloutRow | None:
        """One rollout's row, or None."""
        found = self._rows(rows.RolloutRow, f"{_ROLLOUT} WHERE id=?", (rollout_id,))
        return found[0] if found else None

    def siblings(self, rollout: rows.RolloutRow) -> list[rows.RolloutRow]:
        """All rollouts of the group, this one among them."""
        given = (rollout.k, rollout.task_id)
        return self._rows(rows.RolloutRow, f"{_ROLLOUT} WHERE k=? AND task_id=? ORDER BY id", given)

    def trajectory(self, rollout_id: str) -> StoredRollout | None:
        """A rollout out of its chunk, its turns a page at a time; None when there is none of this id."""
        found = self._rows(Place, "SELECT chunk, start, length FROM rollouts WHERE id=?", (rollout_id,))
        if not found:
            return None
        with self._readable():
            return StoredRollout(Path(self.folder) / "trajectories", found[0])

    def evaluations(self) -> list[str]:
        """Labels of all evaluations, in the order of the iterations they were made at."""
        return [label for label, _ in self.query("SELECT label, MIN(k) AS at FROM attempts GROUP BY label ORDER BY at")]

    def attempt_sums(self) -> tuple[int, int]:
        """How many attempts all evaluations made, and how many of them infrastructure ended."""
        ((tried, lost),) = self.query("SELECT COUNT(*), COALESCE(SUM(success IS NULL), 0) FROM attempts")
        return tried, lost

    def lost_attempts(self, limit: int) -> list[tuple[str, str, int, str]]:
        """(evaluation, task, attempt from 1, fault) of attempts that infrastructure ended, newest evaluation first."""
        return self.query(
            "SELECT label, task_id, attempt + 1, fault FROM attempts WHERE success IS NULL "
            "ORDER BY k DESC, label, task_id, attempt LIMIT ?",
            (limit,),
        )

    def attempts(self, label: str | None = None) -> list[rows.AttemptRow]:
        """Held-out attempts of one evaluation or of all."""
        where, given = ("", ()) if label is None else (" WHERE label=?", (label,))
        found = self.query(
            "SELECT label, task_id, attempt, k, domain, task_type, success, reward, stop, fault, skill_bytes, verdicts "  # noqa: S608 - own words only
            f"FROM attempts{where} ORDER BY label, task_id, attempt",
            given,
        )
        return [rows.AttemptRow(*row)._replace(verdicts=json.loads(row[-1])) for row in found]


def _task(
    task_id: str,
    domain: str,
    types: str,
    instruction: str,
    groups: int,
    rewarded: int,
    successes: int,
    last: int | None,
) -> rows.TaskRow:
    return rows.TaskRow(task_id, domain, tuple(json.loads(types)), instruction, groups, rewarded, successes, last)
