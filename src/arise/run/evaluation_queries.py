"""Queries on evaluations: their labels, their attempts, and attempts that infrastructure ended."""

import json

from arise.run import rows
from arise.run.base_queries import BaseQueries

_ATTEMPTS = (
    "SELECT label, task_id, attempt, k, domain, task_type, success, reward, stop, fault, skill_bytes, verdicts "
    "FROM attempts"
)


class EvaluationQueries(BaseQueries):
    """Attempts outside training: held-out evaluations and re-judged retired behaviours."""

    def evaluations(self) -> list[str]:
        """Return the labels of all evaluations, ordered by iteration."""
        return [label for label, _ in self.query("SELECT label, MIN(k) AS at FROM attempts GROUP BY label ORDER BY at")]

    def attempt_sums(self) -> tuple[int, int]:
        """Return the number of attempts of all evaluations, and how many of them infrastructure ended."""
        ((tried, lost),) = self.query("SELECT COUNT(*), COALESCE(SUM(success IS NULL), 0) FROM attempts")
        return tried, lost

    def lost_attempts(self, limit: int) -> list[tuple[str, str, int, str]]:
        """Return (evaluation, task, attempt from 1, fault) of attempts that infrastructure ended, newest first."""
        return self.query(
            "SELECT label, task_id, attempt + 1, fault FROM attempts WHERE success IS NULL "
            "ORDER BY k DESC, label, task_id, attempt LIMIT ?",
            (limit,),
        )

    def attempts(self, label: str | None = None) -> list[rows.AttemptRow]:
        """Return the attempts of one evaluation or of all."""
        where, given = ("", ()) if label is None else (" WHERE label=?", (label,))
        return self._attempts(f"{where} ORDER BY label, task_id, attempt", given)

    def retention_attempts(self) -> list[rows.AttemptRow]:
        """Return the attempts on the tasks of retired rubrics."""
        return self._attempts(" WHERE label LIKE 'retention/%'")

    def attempt_count(self, label: str) -> int:
        """Return how many attempts an evaluation has."""
        return int(self.query("SELECT COUNT(*) FROM attempts WHERE label=?", (label,))[0][0])

    def _attempts(self, condition: str, given: tuple[str, ...] = ()) -> list[rows.AttemptRow]:
        found = self.query(f"{_ATTEMPTS}{condition}", given)
        return [rows.AttemptRow(*row)._replace(verdicts=json.loads(row[-1])) for row in found]
