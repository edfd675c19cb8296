"""Verify a run: digests of every file and row, then the invariants of the method.

Clock times, costs and sessions have separate seals, because only these are not reproduced by a replay. Reads only, and
works while the run is being written.
"""

import json
import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from arise.errors import AriseError
from arise.run import configuration, schema
from arise.run.calls import damage
from arise.run.chunks import unpack_group
from arise.run.digests import as_seal, row_digest
from arise.run.files import MANIFEST, checkpoint_damage, sha256_of
from arise.run.folder import CONFIG_FILE
from arise.run.invariants import INVARIANTS, Audited, Look
from arise.run.numbering import iteration_of
from arise.run.read_only import read_only
from arise.run.record import COMMITTED, COSTS, FACT, ITERATION_OF, SESSION, repeatable
from arise.run.snapshot import FORMAT

UNREPEATED = (COSTS, SESSION, FACT)


@dataclass(frozen=True)
class Check:
    """One check — `Check("files", "12 files have their digests", ())`; problems name their location."""

    name: str
    said: str
    problems: tuple[str, ...]

    @property
    def passed(self) -> bool:
        return not self.problems


def verify(folder: Path) -> list[Check]:
    """Run every check; one that cannot run because of damage counts as failed."""
    try:
        db = read_only(folder / "run.db")
    except sqlite3.Error as error:
        return [Check("database", DIGESTS["database"][0], (f"cannot be read, and so nothing else: {error}",))]
    try:
        run = Audited(db, folder)
        checks = [_check(name, said, look, run) for name, (said, look) in (DIGESTS | INVARIANTS).items()]
        return [*checks, _configuration(run)]
    finally:
        db.close()


def _check(name: str, said: str, look: Look, run: Audited) -> Check:
    try:
        return Check(name, said, tuple(look(run)))
    except (sqlite3.Error, OSError, ValueError, TypeError, KeyError, AriseError) as error:
        return Check(name, said, (f"cannot be read: {error}",))


def _configuration(run: Audited) -> Check:
    """Check that `config.toml` is the last recorded configuration."""
    name, said = "configuration", f"{CONFIG_FILE} matches the record of the run"
    if not run.db.execute("SELECT 1 FROM meta WHERE key GLOB ?", (f"{configuration.KEY} *",)).fetchone():
        return Check(name, f"no record of {CONFIG_FILE} exists: the run was made before one was kept", ())
    return _check(name, said, lambda run: map(str, configuration.edits(run.folder, run)), run)


def _database(run: Audited) -> Iterator[str]:
    for (found,) in run.db.execute("PRAGMA integrity_check"):
        if found != "ok":
            yield f"run.db: {found}"
    row = run.db.execute("SELECT value FROM meta WHERE key='format'").fetchone()
    if row is None or row[0] != FORMAT:
        yield f"run.db has format {row[0] if row else 'none'}, this version reads {FORMAT}"
    yield from schema.differences(run.db)


def _sealed(run: Audited) -> Iterator[str]:
    found: dict[str, int] = defaultdict(int)
    for table, iteration in ITERATION_OF.items():
        for k, *row in run.db.execute(f"SELECT {iteration}, * FROM {table}"):  # noqa: S608 - own table names
            found[f"k{k}"] += row_digest(repeatable((table, tuple(row))))
    for k, *row in run.db.execute("SELECT g.k, t.* FROM groups g JOIN tasks t ON t.id = g.task_id"):
        found[f"k{k}"] += row_digest(("tasks", tuple(row)))
    for row in run.db.execute("SELECT * FROM attempts"):
        found[f"evaluation {row[0]}"] += row_digest(("attempts", row))
    yield from _broken({name: seal for name, seal in _seals(run) if not name.startswith(UNREPEATED)}, found)


def _clock_and_costs(run: Audited) -> Iterator[str]:
    found: dict[str, int] = defaultdict(int)
    for row in run.db.execute("SELECT k, at FROM iterations"):
        found[f"{COSTS}{row[0]}"] += row_digest((COMMITTED, row))
    for table, prefix in (("vitals", COSTS), ("sessions", SESSION), ("meta", FACT)):
        for row in run.db.execute(f"SELECT * FROM {table}"):  # noqa: S608 - own table names
            found[f"{prefix}{row[0]}"] += row_digest((table, row))
    yield from _broken({name: seal for name, seal in _seals(run) if name.startswith(UNREPEATED)}, found)
    for calls in sorted(run.folder.glob("*calls.db")):
        yield from damage(calls)


def _seals(run: Audited) -> Iterator[tuple[str, str]]:
    yield from run.db.execute("SELECT name, seal FROM seals")


def _broken(seals: Mapping[str, str], found: Mapping[str, int]) -> Iterator[str]:
    for name in sorted(found.keys() | seals.keys()):
        if name not in seals:
            yield f"{_place(name)}: rows without a seal"
        elif seals[name] != as_seal(found.get(name, 0)):
            yield f"{_place(name)}: rows were changed, added or lost since they were committed"


def _place(name: str) -> str:
    """Write a seal's name with the displayed iteration number: `k11` is iteration 12."""
    return re.sub(r"\bk(-?\d+)$", lambda found: f"iteration {iteration_of(int(found[1]))}", name)


def _files(run: Audited) -> Iterator[str]:
    sizes = {}
    chunks = "SELECT name, bytes, sha256 FROM files WHERE name NOT LIKE 'checkpoints/%'"
    for name, size, digest in run.db.execute(chunks):
        path = run.folder / name
        sizes[Path(name).name] = size
        if not path.is_file():
            yield f"{name} is missing"
        elif sha256_of(path) != digest:
            yield f"{name} was changed or is torn"
    for rollout, chunk, end in run.db.execute("SELECT id, chunk, start + length FROM rollouts"):
        if end > sizes.get(chunk, -1):
            yield f"rollout {rollout} is outside of {chunk}"


def _checkpoints(run: Audited) -> Iterator[str]:
    rows = run.db.execute("SELECT checkpoint FROM iterations WHERE checkpoint IS NOT NULL ORDER BY k DESC").fetchall()
    for n, (checkpoint,) in enumerate(rows):
        if n >= 2 and not (run.folder / checkpoint).exists():
            continue
        row = run.db.execute("SELECT sha256 FROM files WHERE name=?", (f"{checkpoint}/{MANIFEST}",)).fetchone()
        wrong = checkpoint_damage(run.folder / checkpoint, row[0] if row else "")
        if wrong:
            yield wrong


def _iterations(run: Audited) -> Iterator[str]:
    numbers = [row[0] for row in run.db.execute("SELECT k FROM iterations ORDER BY k")]
    for wanted, k in enumerate(numbers):
        if wanted != k:
            yield f"iteration {iteration_of(wanted)} is missing"
            break
    for k, metrics in run.db.execute("SELECT k, metrics FROM iterations"):
        if not isinstance(json.loads(metrics), dict):
            yield f"iteration {iteration_of(k)}: metrics are not an object"
    counts = Counter(row[0] for row in run.db.execute("SELECT k FROM rollouts"))
    for k in numbers:
        if not counts[k]:
            yield f"iteration {iteration_of(k)} has no rollout"


def _journal(run: Audited) -> Iterator[str]:
    for k, task_id, content in run.db.execute("SELECT k, task_id, content FROM inflight"):
        try:
            unpack_group(content)
        except (ValueError, TypeError) as error:
            place = f"{task_id} in iteration {iteration_of(k)}"
            yield f"the kept group of {place} is damaged ({error}); a resume rolls it out again"


DIGESTS: dict[str, tuple[str, Look]] = {
    "database": ("run.db is intact and of this format", _database),
    "iterations": ("iterations are consecutive, each with its rollouts", _iterations),
    "rows": ("the rows of every iteration and evaluation are unchanged since their commit", _sealed),
    "costs": ("clock times, costs, sessions and paid calls are unchanged", _clock_and_costs),
    "trajectories": ("every chunk matches its digest and holds its rollouts", _files),
    "journal": ("finished groups that a resume may need are readable", _journal),
    "checkpoints": ("the kept checkpoints are complete", _checkpoints),
}
