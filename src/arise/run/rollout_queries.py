"""Queries on draws and rollouts: slots with their reason, cells, groups, tasks, rollouts."""

import json

from arise.run import rows
from arise.run.base_queries import BaseQueries
from arise.run.chunks import ChunkPlace, StoredRollout
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
_JUDGED_BY = (
    "k BETWEEN (SELECT MIN(k) FROM verdicts WHERE rubric_id = :rubric_id) "
    "AND (SELECT MAX(k) FROM verdicts WHERE rubric_id = :rubric_id)"
)
"""Only the iterations that a rubric lived in: the filter by rubric does not look at the rest of a long run."""

ORDERS = {
    "newest": "k DESC, task_id, rowid",
    "reward": "reward IS NULL, reward, k DESC, rowid",
    "turns": "turns DESC, k DESC, rowid",
    "tokens": "generated_tokens DESC, k DESC, rowid",
    "advantage": "advantage IS NULL, advantage, k DESC, rowid",
}
"""Orders of rollouts by name: the newest, the worst or the longest first."""


class RolloutQueries(BaseQueries):
    """Draws with their reasons, and their rollouts."""

    def slots(self, k: int, slot: int | None = None) -> list[rows.SlotRow]:
        """Return the batch of an iteration, or one slot of it, with the mass behind each draw."""
        masses = {(c.task_type, c.capability): Mass(c.passes, c.fails) for c in self.cells(k - 1)}
        found = []
        wanted = "SELECT slot, details FROM draws WHERE k = ? AND slot = COALESCE(?, slot) ORDER BY slot"
        for number, details in self.query(wanted, (k, slot)):
            draw = from_json(Draw, json.loads(details))
            mass = masses.get((draw.cell.task_type, draw.cell.capability.value)) if draw.cell else None
            found.append(rows.SlotRow(k, number, draw, mass))
        return found

    def paths(self) -> list[tuple[int, str, int]]:
        """Return (k, path, slots) of every iteration."""
        return self.query("SELECT k, path, COUNT(*) FROM draws GROUP BY k, path ORDER BY k, path")

    def discovery(self) -> list[tuple[int, float | None]]:
        """Return (k, rho) of every iteration; None for samplers without a discovery probability."""
        return self.query("SELECT k, json_extract(details, '$.rho') FROM draws WHERE slot=0 ORDER BY k")

    def cell_draws(self, first_k: int, last_k: int) -> list[rows.CellDraws]:
        """Return adaptive draws by cell in iterations first_k to last_k, both included."""
        return self._rows(
            rows.CellDraws,
            "SELECT json_extract(details, '$.cell[0]'), json_extract(details, '$.cell[1]'), COUNT(*) FROM draws "
            "WHERE k BETWEEN ? AND ? AND path='adaptive' GROUP BY 1, 2 ORDER BY 1, 2",
            (first_k, last_k),
        )

    def cells(self, k: int) -> list[rows.CellRow]:
        """Return the ledger at the end of an iteration, by task type and capability."""
        return self._rows(rows.CellRow, "SELECT k, task_type, capability, passes, fails FROM cells WHERE k=?", (k,))

    def groups(self, k: int | None = None, task_id: str | None = None, last: int = -1) -> list[rows.GroupRow]:
        """Return groups of an iteration, of a task, or all; `last` limits them to the newest."""
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
        """Return the sums of all groups, by iteration."""
        return self._rows(
            rows.GroupSums,
            "SELECT k, COUNT(*), SUM(size), SUM(rewarded), SUM(successes), "
            "SUM(rewarded = size AND successes = 0), SUM(rewarded = size AND successes > 0 AND successes < size), "
            "SUM(rewarded = size AND successes = size), SUM(rewarded < size) FROM groups GROUP BY k ORDER BY k",
        )

    def tasks(self) -> list[rows.TaskRow]:
        """Return every training task that was drawn so far."""
        return [_task(*row) for row in self.query(f"{_TASKS} GROUP BY t.id ORDER BY t.id")]

    def task(self, task_id: str) -> rows.TaskRow | None:
        """Return one task, or None."""
        found = self.query(f"{_TASKS} WHERE t.id=? GROUP BY t.id", (task_id,))
        return _task(*found[0]) if found else None

    def rollouts(
        self,
        *,
        outcome: str = "",
        k: int | None = None,
        task_id: str = "",
        stop: str = "",
        rubric_id: str = "",
        verdict: str = "",
        order: str = "newest",
        limit: int = 50,
        offset: int = 0,
    ) -> list[rows.RolloutRow]:
        """Return rollouts in one of `ORDERS`; `outcome` is pass, fail, fault or empty for all.

        With a rubric, only rollouts that it applied to, or those with a given verdict.
        """
        given = {"k": k, "task_id": task_id, "stop": stop, "rubric_id": rubric_id, "verdict": verdict}
        conditions = [_OUTCOMES[outcome]]
        conditions += ["k = :k"] if k is not None else []
        conditions += ["task_id = :task_id"] if task_id else []
        conditions += ["stop = :stop"] if stop else []
        if rubric_id:
            kind = "verdict = :verdict" if verdict else "verdict IN ('pass', 'fail')"
            found = "SELECT 1 FROM verdicts WHERE rollout_id = rollouts.id AND rubric_id = :rubric_id"
            conditions += [_JUDGED_BY, f"EXISTS ({found} AND {kind})"]
        return self._rows(
            rows.RolloutRow,
            # The inner query uses only an index, so that late pages are as fast as the first.
            f"{_ROLLOUT} WHERE rowid IN (SELECT rowid FROM rollouts WHERE {' AND '.join(conditions)} "  # noqa: S608 - own words only
            f"ORDER BY {ORDERS[order]} LIMIT :limit OFFSET :offset) ORDER BY {ORDERS[order]}",
            {**given, "limit": limit, "offset": offset},
        )

    def rollout(self, rollout_id: str) -> rows.RolloutRow | None:
        """Return one rollout's row, or None."""
        found = self._rows(rows.RolloutRow, f"{_ROLLOUT} WHERE id=?", (rollout_id,))
        return found[0] if found else None

    def siblings(self, rollout: rows.RolloutRow) -> list[rows.RolloutRow]:
        """Return all rollouts of the group, this one included."""
        given = (rollout.k, rollout.task_id)
        return self._rows(rows.RolloutRow, f"{_ROLLOUT} WHERE k=? AND task_id=? ORDER BY id", given)

    def trajectory(self, rollout_id: str) -> StoredRollout | None:
        """Open a rollout in its chunk, to read turns page by page; None for an unknown id."""
        found = self._rows(ChunkPlace, "SELECT chunk, start, length FROM rollouts WHERE id=?", (rollout_id,))
        if not found:
            return None
        return self._stored(found[0])

    def _stored(self, place: ChunkPlace) -> StoredRollout:
        return StoredRollout(self.folder / "trajectories", place)

    def stops(self) -> list[tuple[str, int]]:
        """Return (stop reason, rollouts), the most frequent first."""
        return self.query("SELECT stop, COUNT(*) FROM rollouts GROUP BY stop ORDER BY 2 DESC")

    def faults_by_k(self) -> dict[int, int]:
        """Return how many rollouts of each iteration k ended with an infrastructure fault."""
        return dict(self.query("SELECT k, COUNT(*) FROM rollouts WHERE fault != '' GROUP BY k"))

    def newest_rollouts(self, limit: int) -> list[tuple[str, ChunkPlace]]:
        """Return (task, place in its chunk) of the newest rollouts without a fault."""
        found = self.query(
            "SELECT task_id, chunk, start, length FROM rollouts WHERE fault = '' ORDER BY k DESC, id LIMIT ?", (limit,)
        )
        return [(task_id, ChunkPlace(*place)) for task_id, *place in found]

    def drawn_tasks(self, first_k: int, last_k: int) -> tuple[str, ...]:
        """Return the tasks drawn in iterations first_k to last_k, both included, each once."""
        wanted = "SELECT DISTINCT task_id FROM draws WHERE k BETWEEN ? AND ? ORDER BY task_id"
        return tuple(task_id for (task_id,) in self.query(wanted, (first_k, last_k)))


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
