"""One run folder, one writer: journal of finished groups, the commit of an iteration, and what a resume reads."""

import json
import os
import platform
import shutil
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import zstandard
from filelock import FileLock, Timeout

from arise import __version__
from arise.codec import to_json
from arise.coevolution import Update
from arise.errors import AriseError, Exit
from arise.method.credit import Advantages
from arise.store.chunks import Place, pack, unpack_group, write_chunk
from arise.store.snapshot import FORMAT
from arise.store.summaries import summary_rows
from arise.types import Draw, EvidenceRecord, Group, Pool


@dataclass(frozen=True)
class IterationRecord:
    """All that one iteration leaves behind."""

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


class RunStore:
    """`RunStore.open(folder)` takes the run for this process; a second process is turned away by name."""

    def __init__(self, folder: Path, lock: FileLock) -> None:
        self.folder, self._lock = folder, lock
        self._db = sqlite3.connect(folder / "run.db", isolation_level=None)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=FULL")
        self._db.executescript(files("arise.store").joinpath("schema.sql").read_text())
        found = self._db.execute("SELECT value FROM meta WHERE key='format'").fetchone()
        if found and found[0] != FORMAT:
            raise AriseError(
                "storage",
                Exit.STORAGE,
                f"{folder}: run store of format {found[0]}, this version reads {FORMAT}",
                "nothing was changed",
                "open it with the version of arise that wrote it",
            )
        self._db.execute("INSERT OR IGNORE INTO meta VALUES ('format', ?)", (FORMAT,))

    @classmethod
    def open(cls, folder: Path) -> "RunStore":
        """Create or continue the run in `folder`, with an exclusive lock."""
        folder.mkdir(parents=True, exist_ok=True)
        lock, owner = FileLock(folder / "run.lock"), folder / "owner.json"
        try:
            lock.acquire(timeout=0)
        except Timeout:
            who = owner.read_text() if owner.exists() else "an unknown process"
            raise AriseError(
                "locked",
                Exit.LOCKED,
                f"{folder} is in use by {who}",
                "this process did not touch the run",
                "wait for it, stop it, or give another --run-dir",
            ) from None
        started = time.strftime("%Y-%m-%d %H:%M:%S")
        owner.write_text(f"host {platform.node()}, process {os.getpid()}, started {started}")
        store = cls(folder, lock)
        (committed,) = store.query("SELECT COUNT(*) FROM iterations")[0]
        store._insert("sessions", (None, time.time(), owner.read_text(), __version__, committed))
        return store

    def close(self) -> None:
        """Let go of the run."""
        self._db.close()
        self._lock.release()

    def finished_group(self, iteration: int, task_id: str) -> Group | None:
        """A group that was rolled out before a crash."""
        row = self._db.execute("SELECT content FROM inflight WHERE k=? AND task_id=?", (iteration, task_id)).fetchone()
        return unpack_group(row[0]) if row else None

    def save_group(self, iteration: int, group: Group) -> None:
        """Keep a finished group, durable before the loop goes on; the key refuses a group that was already kept."""
        with self._guarded():
            self._db.execute("INSERT INTO inflight VALUES (?, ?, ?)", (iteration, group.task.id, pack(group)))

    def last_checkpoint(self) -> tuple[dict[str, Any], str] | None:
        """The newest state that a resume can start from, with its policy checkpoint."""
        rows = self._db.execute("SELECT state, checkpoint FROM iterations WHERE checkpoint IS NOT NULL ORDER BY k DESC")
        for state, checkpoint in rows:
            if (self.folder / checkpoint / "manifest.json").exists():
                return json.loads(zstandard.decompress(state)), checkpoint
        return None

    def commit(self, record: IterationRecord, keep_checkpoints: int = 2) -> None:
        """The last act of an iteration: after it everything is there, before it nothing is."""
        rollouts = [rollout for group in record.groups for rollout in group.rollouts]
        with self._guarded():
            places = write_chunk(self.folder / "trajectories", f"k{record.k:05d}.zst", rollouts)
            self._db.execute("BEGIN IMMEDIATE")
            self._insert_rollouts(record, places)
            self._insert_pool(record)
            for table, row in summary_rows(record.k, record.groups, record.state):
                self._insert(table, row)
            state = zstandard.compress(json.dumps(record.state).encode(), 3)
            self._db.execute(
                "INSERT OR REPLACE INTO iterations VALUES (?, ?, ?, ?, ?)",
                (record.k, json.dumps(dict(record.metrics)), state, record.checkpoint, time.time()),
            )
            if record.checkpoint:
                self._db.execute("DELETE FROM inflight WHERE k <= ?", (record.k,))
            self._db.execute("COMMIT")
        self._prune(keep_checkpoints)

    def _insert_rollouts(self, record: IterationRecord, places: Iterable[Place]) -> None:
        for slot, draw in enumerate(record.draws):
            details = json.dumps(to_json(draw))
            self._insert("draws", (record.k, slot, draw.task_id, draw.path.value, details))
        remaining = iter(places)
        for group, advantages in zip(record.groups, record.advantages, strict=True):
            for j, rollout in enumerate(group.rollouts):
                t = rollout.trajectory
                split = [float(part[j]) for part in advantages] if advantages else [None] * 3
                success = None if rollout.success is None else int(rollout.success)
                row = (
                    t.id,
                    record.k,
                    group.task.id,
                    rollout.reward,
                    success,
                    t.stop.value,
                    rollout.fault,
                    len(t.turns),
                )
                self._insert("rollouts", (*row, t.generated_tokens, *split, *next(remaining)))
                judgment = rollout.judgment
                if judgment is None:
                    continue
                shown = {skill.rubric_id for skill in t.shown_skills}
                for rubric_id, verdict in judgment.verdicts.items():
                    self._insert("verdicts", (t.id, rubric_id, record.k, verdict.value, "", int(rubric_id in shown)))
                for rubric_id, reason in judgment.absent.items():
                    self._insert("verdicts", (t.id, rubric_id, record.k, None, reason, int(rubric_id in shown)))
        for item in record.evidence:
            self._insert("evidence", (item.view.evidence_id, item.view.iteration, json.dumps(to_json(item))))

    def _insert_pool(self, record: IterationRecord) -> None:
        if record.update is None:
            return
        evolution = record.update.evolution
        for seq, event in enumerate(evolution.events):
            row = (record.k, seq, event.rubric_id, event.kind, event.passes, event.evaluations)
            self._insert("events", (*row, event.skill_revision, event.note))
        known = {(pair.rubric.id, pair.skill.revision) for pair in record.pool_before.pairs}
        for pair in evolution.pool.pairs:
            if (pair.rubric.id, pair.skill.revision) not in known:
                self._insert("pairs", (pair.rubric.id, pair.rubric.born, json.dumps(to_json(pair.rubric))))
                self._insert("skills", (pair.rubric.id, pair.skill.revision, record.k, pair.skill.text))
        outcomes = [(1, json.dumps(to_json(proposal)), "") for proposal in record.update.proposals]
        outcomes += [(0, rejection.text, rejection.reason) for rejection in record.update.rejections]
        for seq, outcome in enumerate(outcomes):
            self._insert("proposals", (record.k, seq, *outcome))

    def save_attempts(self, rows: Iterable[Sequence[Any]]) -> None:
        """Evaluation attempts, one row each."""
        with self._guarded():
            self._db.execute("BEGIN IMMEDIATE")
            for row in rows:
                self._insert("attempts", row)
            self._db.execute("COMMIT")

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Read anything."""
        return self._db.execute(sql, parameters).fetchall()

    def _insert(self, table: str, row: Sequence[Any]) -> None:
        marks = ", ".join("?" * len(row))
        sql = f"INSERT OR REPLACE INTO {table} VALUES ({marks})"  # noqa: S608 - own table names
        try:
            self._db.execute(sql, row)
        except UnicodeEncodeError:
            # A column holds valid UTF-8 only: lone surrogates are written as their codes, chunks keep them as they are.
            self._db.execute(sql, [_encodable(value) if isinstance(value, str) else value for value in row])

    def _prune(self, keep: int) -> None:
        rows = self.query("SELECT checkpoint FROM iterations WHERE checkpoint IS NOT NULL ORDER BY k DESC")
        for (checkpoint,) in rows[keep:]:
            shutil.rmtree(self.folder / checkpoint, ignore_errors=True)

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """A failed write leaves the last commit as it was and says what to do."""
        try:
            yield
        except (OSError, sqlite3.OperationalError) as error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise AriseError(
                "storage",
                Exit.STORAGE,
                f"cannot write to {self.folder}: {error}",
                "the last committed iteration is intact",
                f"free disk space or mend the folder, then: arise resume {self.folder}",
            ) from error


def _encodable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
