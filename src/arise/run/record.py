"""An iteration as database rows, and the values covered by its seal."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from arise.coevolution import Update
from arise.method.credit import Advantages
from arise.run.chunks import ChunkPlace, compress
from arise.run.digests import EMPTY, Row, changed_seal
from arise.run.numbering import iteration_of
from arise.run.summaries import printable, summary_rows
from arise.text.secrets import redact
from arise.types import Draw, EvidenceRecord, Group, Pool, Rollout
from arise.types.codec import to_json

ITERATION_OF = {
    "groups": "k",
    "verdict_counts": "k",
    "cells": "k",
    "iterations": "k",
    "draws": "k",
    "rollouts": "k",
    "verdicts": "k",
    "evidence": "k",
    "pairs": "(SELECT e.k FROM events e WHERE e.rubric_id = pairs.rubric_id AND e.kind IN ('born', 'imported'))",
    "skills": "k",
    "events": "k",
    "proposals": "k",
    "files": "k",
}
"""Tables that an iteration writes, with the SQL expression for its k."""

COSTS, SESSION, FACT = "costs k", "session ", "fact "
LIMITS = "limits."
"""Prefix, before a session's number, of the fact that lists limits the kernel did not enforce."""
"""Prefixes of seals over values that a replay does not reproduce: clock and costs, sessions, recorded facts."""
COMMITTED = "committed"
"""The table name used in the seal of an iteration's k and clock time."""


@dataclass(frozen=True)
class IterationRecord:
    """The data that one iteration records."""

    k: int
    draws: Sequence[Draw]
    groups: Sequence[Group]
    advantages: Sequence[Advantages | None]
    evidence: Sequence[EvidenceRecord]
    pool_before: Pool
    update: Update | None
    metrics: Mapping[str, float]
    state: Mapping[str, Any]
    checkpoint: str | None

    @property
    def iteration(self) -> int:
        return iteration_of(self.k)


def seal_of(rows: Iterable[Row]) -> str:
    """Return the seal of an iteration's or an evaluation's rows."""
    return changed_seal(EMPTY, map(repeatable, rows))


def repeatable(row: Row) -> Row:
    """Return a row without the clock time of an iteration, which is sealed as COMMITTED."""
    table, columns = row
    return (table, columns[:-1]) if table == "iterations" else row


def rows_of(record: IterationRecord, places: Iterable[ChunkPlace], now: float) -> Iterator[Row]:
    """Yield every row that an iteration writes, except those of its files."""
    state = compress(json.dumps(record.state))
    yield "iterations", (record.k, json.dumps(dict(record.metrics), allow_nan=False), state, record.checkpoint, now)
    for slot, draw in enumerate(record.draws):
        yield "draws", (record.k, slot, draw.task_id, draw.path.value, json.dumps(to_json(draw)))
    remaining = iter(places)
    for group, advantages in zip(record.groups, record.advantages, strict=True):
        for j, rollout in enumerate(group.rollouts):
            split = [float(part[j]) for part in advantages] if advantages else [None] * 3
            yield from _rollout_rows(record.k, group, rollout, split, next(remaining))
    for item in record.evidence:
        yield "evidence", (item.view.evidence_id, item.view.iteration, json.dumps(to_json(item)))
    yield from _pool_rows(record)
    yield from summary_rows(record.k, record.groups, record.state)


def _rollout_rows(
    k: int, group: Group, rollout: Rollout, split: Sequence[float | None], place: ChunkPlace
) -> Iterator[Row]:
    t = rollout.trajectory
    success = None if rollout.success is None else int(rollout.success)
    reward = None if rollout.reward is None else float(rollout.reward)
    head = (t.id, k, group.task.id, reward, success, t.stop.value, rollout.fault, len(t.turns))
    yield "rollouts", (*head, t.generated_tokens, *split, *place)
    if rollout.judgment is None:
        return
    shown = {skill.rubric_id for skill in t.shown_skills}
    for rubric_id, verdict in rollout.judgment.verdicts.items():
        reason = rollout.judgment.reasons.get(rubric_id, "")
        yield "verdicts", (t.id, rubric_id, k, verdict.value, reason, int(rubric_id in shown))
    for rubric_id, reason in rollout.judgment.absent.items():
        yield "verdicts", (t.id, rubric_id, k, None, reason, int(rubric_id in shown))


def _pool_rows(record: IterationRecord) -> Iterator[Row]:
    if record.update is None:
        return
    evolution = record.update.evolution
    for seq, event in enumerate(evolution.events):
        head = (record.k, seq, event.rubric_id, event.kind, event.passes, event.evaluations)
        yield "events", (*head, event.skill_revision, event.note)
    before = record.pool_before
    known = {pair.rubric.id: pair.skill.revision for pair in (*before.pairs, *before.retired)}
    for pair in evolution.pool.pairs:
        if pair.rubric.id not in known:
            yield "pairs", (pair.rubric.id, pair.rubric.born, json.dumps(to_json(pair.rubric)))
        if known.get(pair.rubric.id) != pair.skill.revision:
            yield "skills", (pair.rubric.id, pair.skill.revision, record.k, pair.skill.text)
    outcomes = [(1, json.dumps(to_json(proposal)), "") for proposal in record.update.proposals]
    outcomes += [(0, rejection.text, rejection.reason) for rejection in record.update.rejections]
    for seq, outcome in enumerate(outcomes):
        yield "proposals", (record.k, seq, *outcome)


def starting_rows(pool: Pool) -> Iterator[Row]:
    """Yield the pairs that a run started with, as rows with k = -1."""
    for seq, pair in enumerate(pool.pairs):
        rubric, skill = pair.rubric, pair.skill
        yield "pairs", (rubric.id, rubric.born, json.dumps(to_json(rubric)))
        yield "skills", (rubric.id, skill.revision, -1, skill.text)
        yield "events", (-1, seq, rubric.id, "imported", 0, 0, skill.revision, rubric.criteria_text)


def storable(rows: Iterable[Row]) -> list[Row]:
    """Make every text in the rows storable in SQLite."""
    return [
        (table, tuple(printable(value) if isinstance(value, str) else value for value in row)) for table, row in rows
    ]


def without_keys(group: Group) -> Group:
    """Redact keys in the faults and reasons of a group, which may quote a server or a verifier."""
    return replace(group, rollouts=tuple(map(_without_keys, group.rollouts)))


def _without_keys(rollout: Rollout) -> Rollout:
    judgment = rollout.judgment
    if judgment:
        judgment = replace(
            judgment,
            absent={rubric_id: redact(reason) for rubric_id, reason in judgment.absent.items()},
            reasons={rubric_id: redact(reason) for rubric_id, reason in judgment.reasons.items()},
            diagnostic_absent=redact(judgment.diagnostic_absent),
            notes=tuple(map(redact, judgment.notes)),
        )
    return replace(
        rollout,
        fault=redact(rollout.fault),
        reason=redact(rollout.reason),
        verifier_output=redact(rollout.verifier_output),
        judgment=judgment,
    )
