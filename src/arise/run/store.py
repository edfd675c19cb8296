"""The writer of a run folder: journal of finished groups, commit of iterations, and state for a resume."""

import logging
import shutil
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from arise import __version__
from arise.errors import AriseError, Exit
from arise.run import schema
from arise.run.base_queries import Given
from arise.run.chunks import decompress, pack, unpack_group, write_chunk
from arise.run.digests import EMPTY, Row, changed_seal
from arise.run.files import MANIFEST, checkpoint_damage, remove_drafts, sha256_of
from arise.run.folder import OWNER_FILE, RunLock, claim, unwritable
from arise.run.numbering import iteration_of
from arise.run.queries import RunQueries
from arise.run.record import (
    COMMITTED,
    COSTS,
    FACT,
    ITERATION_OF,
    LIMITS,
    SESSION,
    IterationRecord,
    rows_of,
    seal_of,
    starting_rows,
    storable,
    without_keys,
)
from arise.run.snapshot import FORMAT
from arise.run.summaries import printable
from arise.types import Group, Pool

log = logging.getLogger(__name__)

TRAJECTORIES = "trajectories"


def damaged(folder: Path, what: str) -> AriseError:
    """Return the error for damage that prevents a run from continuing."""
    return AriseError(
        "storage",
        Exit.STORAGE,
        f"{folder / 'run.db'}: {what}",
        "the run was not continued, nothing was changed",
        f"bring the folder back from a copy; what is damaged: arise verify {folder}",
    )


class RunStore(RunQueries):
    """`RunStore.open(folder)` locks the run for this process; a second process is refused."""

    def __init__(self, folder: Path, lock: RunLock) -> None:
        self.folder, self._lock = folder, lock
        new = not (folder / "run.db").exists()
        self._db = sqlite3.connect(folder / "run.db", isolation_level=None)
        with self.writing():
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=FULL")
            if not new:
                self._refuse_damage()
            schema.create(self._db)
            self._db.execute("BEGIN IMMEDIATE")
            self._note({"format": FORMAT})
            self._begin_session()
            self._db.execute("COMMIT")
            remove_drafts(folder)

    @classmethod
    def open(cls, folder: Path, lock: RunLock | None = None) -> "RunStore":
        """Create or continue the run in `folder`, with an exclusive lock."""
        lock = lock or claim(folder)
        try:
            return cls(folder, lock)
        except BaseException:
            lock.release()
            raise

    def _refuse_damage(self) -> None:
        (found,) = self._db.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise damaged(self.folder, found)
        tables = {row[0] for row in self._db.execute("SELECT name FROM sqlite_master")}
        if "meta" not in tables:
            return  # the process that created the file died before it created a table
        row = self._db.execute("SELECT value FROM meta WHERE key='format'").fetchone()
        if row and row[0] != FORMAT:
            raise AriseError(
                "storage",
                Exit.STORAGE,
                f"{self.folder}: run store of format {row[0]}, this version reads {FORMAT}",
                "nothing was changed",
                "open it with the version of arise that wrote it",
            )
        if row:
            for problem in schema.differences(self._db):
                raise damaged(self.folder, problem)

    def _begin_session(self) -> None:
        owner = (self.folder / OWNER_FILE).read_text() if (self.folder / OWNER_FILE).exists() else ""
        ((number, committed),) = self.query(
            "SELECT (SELECT COALESCE(MAX(id), 0) + 1 FROM sessions), (SELECT COUNT(*) FROM iterations)"
        )
        session = (number, time.time(), owner, __version__, committed)
        self._insert_sealed(f"{SESSION}{number}", [("sessions", session)])

    def close(self) -> None:
        """Close the database and release the lock."""
        self._db.close()
        self._lock.release()

    def finished_group(self, iteration: int, task_id: str) -> Group | None:
        """Return a group that was finished before a crash; drop a damaged one, which is rolled out again."""
        where = "WHERE k=? AND task_id=?", (iteration, printable(task_id))
        found = self.query(f"SELECT content FROM inflight {where[0]}", where[1])  # noqa: S608 - own text
        if not found:
            return None
        try:
            return unpack_group(found[0][0])
        except (ValueError, TypeError):
            with self.writing():
                self._db.execute(f"DELETE FROM inflight {where[0]}", where[1])  # noqa: S608 - own text
            return None

    def save_group(self, iteration: int, group: Group) -> None:
        """Save a finished group durably; raise an error if it was already saved."""
        with self.writing():
            self._insert([("inflight", (iteration, printable(group.task.id), pack(without_keys(group))))])

    def last_checkpoint(self) -> tuple[dict[str, Any], str] | None:
        """Return the newest undamaged state and its checkpoint; log each skipped one."""
        rows = self.query("SELECT k, checkpoint FROM iterations WHERE checkpoint IS NOT NULL ORDER BY k DESC")
        kept = [row for n, row in enumerate(rows) if n == 0 or (self.folder / row[1]).exists()]
        damage = []
        for k, checkpoint in kept:
            wrong = self._checkpoint_damage(checkpoint)
            if not wrong:
                ((state,),) = self.query("SELECT state FROM iterations WHERE k=?", (k,))
                try:
                    return decompress(state), checkpoint
                except (ValueError, TypeError) as error:
                    wrong = f"run.db, state of iteration {iteration_of(k)}: {error}"
            damage.append(wrong)
            skipped = iteration_of(k)
            log.warning("the checkpoint of iteration %d cannot be used, falling back one: %s", skipped, wrong)
        if damage:
            raise damaged(self.folder, f"no checkpoint is whole: {'; '.join(damage)}")
        return None

    def _checkpoint_damage(self, checkpoint: str) -> str:
        digest = self.query("SELECT sha256 FROM files WHERE name=?", (f"{checkpoint}/{MANIFEST}",))
        return checkpoint_damage(self.folder / checkpoint, digest[0][0] if digest else "")

    def commit(self, record: IterationRecord, keep_checkpoints: int = 2, keep_every: int = 0) -> None:
        """Atomically commit one iteration.

        An iteration replayed after a fallback with the same outcome is not written again.
        """
        chunk = f"k{record.k:05d}.zst"
        record = replace(record, groups=[without_keys(group) for group in record.groups])
        rollouts = [rollout for group in record.groups for rollout in group.rollouts]
        with self.writing():
            places, now = write_chunk(self.folder / TRAJECTORIES, chunk, rollouts), time.time()
            rows = storable(rows_of(record, places, now))
            rows.append(self._file(record.k, f"{TRAJECTORIES}/{chunk}"))
            if record.checkpoint:
                rows.append(self._file(record.k, f"{record.checkpoint}/{MANIFEST}"))
            name, before = f"k{record.k}", self.query("SELECT seal FROM seals WHERE name=?", (f"k{record.k}",))
            self._db.execute("BEGIN IMMEDIATE")
            if before != [(seal_of(rows),)]:
                if before:
                    self._forget(record.k)
                self._insert_sealed(name, rows)
                self._reseal(record.k, added=[(COMMITTED, (record.k, now))])
            if record.checkpoint:
                self._db.execute("DELETE FROM inflight WHERE k <= ?", (self._oldest_kept(keep_checkpoints),))
            self._db.execute("COMMIT")
        self._prune(keep_checkpoints, keep_every)

    def _file(self, k: int, name: str) -> Row:
        path = self.folder / name
        return "files", (name, k, path.stat().st_size, sha256_of(path))

    def _forget(self, k: int) -> None:
        """Delete an iteration that was replayed with a different outcome."""
        before = [(COMMITTED, row) for row in self.query("SELECT k, at FROM iterations WHERE k = ?", (k,))]
        self._reseal(k, removed=before)
        for table, iteration in ITERATION_OF.items():
            self._db.execute(f"DELETE FROM {table} WHERE {iteration} = ?", (k,))  # noqa: S608 - own table names
        self._db.execute("DELETE FROM seals WHERE name = ?", (f"k{k}",))
        self._replace_vitals(k, {"rewritten": 1.0})

    def save_starting_pool(self, pool: Pool) -> None:
        """Save the initial pairs of a run; later calls change nothing."""
        if self.query("SELECT 1 FROM seals WHERE name='k-1'"):
            return
        with self.writing():
            self._db.execute("BEGIN IMMEDIATE")
            self._insert_sealed("k-1", storable(starting_rows(pool)))
            self._db.execute("COMMIT")

    def save_attempts(self, rows: Iterable[Sequence[Any]]) -> None:
        """Save attempts of evaluations, replacing earlier ones with the same label."""
        by_label: dict[str, list[Row]] = {}
        for row in rows:
            by_label.setdefault(row[0], []).append(("attempts", tuple(row)))
        with self.writing():
            self._db.execute("BEGIN IMMEDIATE")
            for label, attempts in by_label.items():
                name = f"evaluation {label}"
                self._db.execute("DELETE FROM attempts WHERE label = ?", (label,))
                self._db.execute("DELETE FROM seals WHERE name = ?", (name,))
                self._insert_sealed(name, storable(attempts))
            self._db.execute("COMMIT")

    def save_vitals(self, k: int, values: Mapping[str, float]) -> None:
        """Save the costs of an iteration, such as seconds and memory, which a replay need not reproduce."""
        with self.writing():
            self._db.execute("BEGIN IMMEDIATE")
            self._replace_vitals(k, values)
            self._db.execute("COMMIT")

    def _replace_vitals(self, k: int, values: Mapping[str, float]) -> None:
        new = {name: (k, name, float(value)) for name, value in values.items()}
        old = [row for row in self.query("SELECT * FROM vitals WHERE k = ?", (k,)) if row[1] in new]
        self._db.executemany("INSERT OR REPLACE INTO vitals VALUES (?, ?, ?)", new.values())
        self._reseal(k, [("vitals", row) for row in new.values()], [("vitals", row) for row in old])

    def _reseal(self, k: int, added: Iterable[Row] = (), removed: Iterable[Row] = ()) -> None:
        """Add rows to an iteration's cost seal and remove others; a changed row leaves it invalid."""
        name = f"{COSTS}{k}"
        before = self.query("SELECT seal FROM seals WHERE name = ?", (name,))
        seal = changed_seal(before[0][0] if before else EMPTY, added, removed)
        self._db.execute("INSERT OR REPLACE INTO seals VALUES (?, ?)", (name, seal))

    def note(self, facts: Mapping[str, str]) -> None:
        """Record facts about the run; keep those of earlier processes."""
        with self.writing():
            self._db.execute("BEGIN IMMEDIATE")
            self._note(facts)
            self._db.execute("COMMIT")

    def note_limits(self, missing: Sequence[str]) -> None:
        """Record which limits the kernel did not enforce in this session."""
        ((session,),) = self.query("SELECT MAX(id) FROM sessions")
        self.note({f"{LIMITS}{session}": "; ".join(missing)})

    def _note(self, facts: Mapping[str, str]) -> None:
        known = {key for (key,) in self.query("SELECT key FROM meta")}
        for key in facts.keys() - known:
            self._insert_sealed(f"{FACT}{key}", [("meta", (key, facts[key]))])

    def query(self, sql: str, parameters: Given = ()) -> list[tuple[Any, ...]]:
        """Execute SQL on the writer's connection."""
        with self.writing():
            return self._db.execute(sql, parameters).fetchall()

    def _insert_sealed(self, name: str, rows: Sequence[Row]) -> None:
        self._insert([*rows, ("seals", (name, seal_of(rows)))])

    def _insert(self, rows: Iterable[Row]) -> None:
        for table, row in rows:
            marks = ", ".join("?" * len(row))
            verb = "INSERT OR IGNORE" if table == "tasks" else "INSERT"  # a task may be drawn more than once
            self._db.execute(f"{verb} INTO {table} VALUES ({marks})", row)

    def _oldest_kept(self, keep: int) -> int:
        rows = self.query("SELECT k FROM iterations WHERE checkpoint IS NOT NULL ORDER BY k DESC LIMIT ?", (keep,))
        return int(rows[-1][0])

    def _prune(self, keep: int, keep_every: int) -> None:
        rows = self.query("SELECT k, checkpoint FROM iterations WHERE checkpoint IS NOT NULL ORDER BY k DESC")
        for k, checkpoint in rows[keep:]:
            if not keep_every or iteration_of(k) % keep_every:
                shutil.rmtree(self.folder / checkpoint, ignore_errors=True)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Wrap a write: on failure, roll back to the last commit and raise an error with a remedy."""
        try:
            yield
        except sqlite3.IntegrityError:
            self._roll_back()
            raise
        except (OSError, sqlite3.OperationalError) as error:
            self._roll_back()
            raise unwritable(self.folder, error) from error
        except sqlite3.DatabaseError as error:
            raise damaged(self.folder, str(error)) from error

    def _roll_back(self) -> None:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")
