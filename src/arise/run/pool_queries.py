"""Queries on the pool: pairs, events, skills, proposals with their evidence, and verdicts."""

import json
from collections.abc import Sequence

from arise.run import pool_rows as rows
from arise.run.base_queries import BaseQueries
from arise.types import EvidenceRecord, Rubric
from arise.types.codec import from_json

_UNGUIDED = (
    "CASE kind WHEN 'reopen' THEN {0} ELSE (SELECT COALESCE(SUM({1}), 0) FROM verdict_counts v"
    " WHERE v.rubric_id = e.rubric_id AND v.k > e.k - :window AND v.k <= e.k AND NOT v.shown) END"
)
"""Unguided verdicts of an event's window; before a reopening, all verdicts are unguided."""
_COUNTS = f"{_UNGUIDED.format('passes', 'v.passes')}, {_UNGUIDED.format('evaluations', 'v.passes + v.fails')}"
_EVENTS = f"SELECT k, rubric_id, kind, passes, evaluations, revision, note, {_COUNTS} FROM events e"  # noqa: S608
_SKILLS = "SELECT rubric_id, revision, k, text FROM skills"
_PROPOSALS = "SELECT k, seq, accepted, content, reason FROM proposals WHERE k BETWEEN ? AND ? ORDER BY k, seq"
_VERDICTS = (
    "SELECT v.rollout_id, v.rubric_id, v.k, v.verdict, v.reason, v.shown, r.task_id, r.success FROM verdicts v "
    "JOIN rollouts r ON r.id = v.rollout_id"
)
_EVER = 1 << 40


class PoolQueries(BaseQueries):
    """Every rubric with its skill and its events."""

    def events(self, rubric_id: str | None = None) -> list[rows.Event]:
        """Return all events of the pool, or those of one pair."""
        where = "" if rubric_id is None else "WHERE rubric_id = :rubric"
        given = {"window": self.update_every, "rubric": rubric_id}
        return self._rows(rows.Event, f"{_EVENTS} {where} ORDER BY k, seq", given)

    def pairs(self) -> list[rows.PairLife]:
        """Return every pair of the run, in the order of birth."""
        events: dict[str, list[rows.Event]] = {}
        for event in self.events():
            events.setdefault(event.rubric_id, []).append(event)
        skills: dict[str, list[rows.SkillRevision]] = {}
        for skill in self._rows(rows.SkillRevision, f"{_SKILLS} ORDER BY rubric_id, revision"):
            skills.setdefault(skill.rubric_id, []).append(skill)
        found = self.query("SELECT rubric_id, rubric FROM pairs ORDER BY born, rubric_id")
        return [
            rows.PairLife(from_json(Rubric, json.loads(rubric)), tuple(events.get(i, ())), tuple(skills.get(i, ())))
            for i, rubric in found
        ]

    def pair(self, rubric_id: str) -> rows.PairLife | None:
        """Return one pair, or None."""
        found = self.query("SELECT rubric FROM pairs WHERE rubric_id=?", (rubric_id,))
        if not found:
            return None
        skills = self._rows(rows.SkillRevision, f"{_SKILLS} WHERE rubric_id=? ORDER BY revision", (rubric_id,))
        return rows.PairLife(from_json(Rubric, json.loads(found[0][0])), tuple(self.events(rubric_id)), tuple(skills))

    def rubrics(self) -> list[Rubric]:
        """Return every rubric the run ever had, by id."""
        found = self.query("SELECT rubric FROM pairs ORDER BY rubric_id")
        return [from_json(Rubric, json.loads(rubric)) for (rubric,) in found]

    def skill_texts(self) -> list[str]:
        """Return the text of every revision of every skill."""
        return [text for (text,) in self.query("SELECT text FROM skills") if text]

    def event_counts(self) -> dict[str, int]:
        """Return how often each kind of event happened."""
        return dict(self.query("SELECT kind, COUNT(*) FROM events GROUP BY kind"))

    def proposals(self, k: int | None = None) -> list[rows.ProposalRow]:
        """Return the reflector's proposals, accepted or not, of one update or of all."""
        found = []
        given = 0 if k is None else k, _EVER if k is None else k
        for n, seq, accepted, content, reason in self.query(_PROPOSALS, given):
            details = json.loads(content) if accepted else {}
            text = details.get("criteria_text", content)
            found.append(rows.ProposalRow(n, seq, bool(accepted), text, reason, details))
        return found

    def evidence(self, evidence_ids: Sequence[str]) -> list[EvidenceRecord]:
        """Return the records that a rubric references, in order; skip ids that are not stored."""
        found = []
        for evidence_id in evidence_ids:
            for (record,) in self.query("SELECT record FROM evidence WHERE evidence_id=?", (evidence_id,)):
                found.append(from_json(EvidenceRecord, json.loads(record)))
        return found

    def verdict_counts(self, rubric_id: str | None = None) -> list[rows.VerdictCount]:
        """Return verdict counts by rubric and iteration, with and without the rubric's skill shown."""
        where, given = ("", ()) if rubric_id is None else (" WHERE rubric_id=?", (rubric_id,))
        return self._rows(
            rows.VerdictCount,
            "SELECT rubric_id, k, shown, passes, fails, not_applicable, absent FROM verdict_counts"  # noqa: S608 - own words only
            f"{where} ORDER BY rubric_id, k, shown",
            given,
        )

    def verdict_sums(self) -> list[rows.VerdictSums]:
        """Return the sums of all verdicts, by iteration."""
        return self._rows(
            rows.VerdictSums,
            "SELECT k, SUM(passes), SUM(fails), SUM(not_applicable), SUM(absent) FROM verdict_counts "
            "GROUP BY k ORDER BY k",
        )

    def verdicts(
        self, rubric_id: str, verdict: str = "", before_k: int | None = None, limit: int = 50
    ) -> list[rows.VerdictRow]:
        """Return verdicts of a rubric, newest first, all or of one kind: pass, fail, not_applicable or absent."""
        condition = {"": "1", "absent": "v.verdict IS NULL"}.get(verdict, "v.verdict = :verdict")
        return self._rows(
            rows.VerdictRow,
            f"{_VERDICTS} WHERE v.rubric_id = :rubric AND v.k < :before AND {condition} ORDER BY v.k DESC LIMIT :limit",
            {
                "rubric": rubric_id,
                "verdict": verdict,
                "before": _EVER if before_k is None else before_k,
                "limit": limit,
            },
        )

    def verdicts_of(self, rollout_id: str) -> list[rows.VerdictRow]:
        """Return every verdict of a rollout."""
        return self._rows(
            rows.VerdictRow,
            f"{_VERDICTS} WHERE v.rollout_id = ? ORDER BY v.rubric_id",
            (rollout_id,),
        )

    def absent_reasons(self) -> list[tuple[int, str, int]]:
        """Return (k, reason, count) of missing verdicts."""
        return self.query(
            "SELECT k, reason, COUNT(*) FROM verdicts WHERE verdict IS NULL GROUP BY k, reason ORDER BY k, reason"
        )

    def agreements(self, first_k: int) -> list[rows.RubricAgreement]:
        """Return, for every two rubrics, how often they agreed on a rollout from iteration first_k on."""
        return self._rows(
            rows.RubricAgreement,
            "SELECT a.rubric_id, b.rubric_id, SUM(a.verdict = b.verdict), COUNT(*), SUM(a.verdict = 'pass') "
            "FROM verdicts a JOIN verdicts b ON a.rollout_id = b.rollout_id AND a.rubric_id < b.rubric_id "
            "WHERE a.k >= ? AND a.verdict IN ('pass', 'fail') AND b.verdict IN ('pass', 'fail') "
            "GROUP BY a.rubric_id, b.rubric_id",
            (first_k,),
        )
