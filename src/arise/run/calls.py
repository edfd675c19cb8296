"""Recorded replies, spend and judge identities in one SQLite file (WAL), so that no reply is paid for twice.

A reply is committed with its cost; costs have digests and sums. A request is reserved before it is sent: a reservation
found when the file is opened belongs to a killed process and is charged in full. A value that does not match its hash
is not used. Must never contain a key or a header.
"""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from arise.llm.client.stops import StoreUnusable
from arise.run.digests import EMPTY, changed_seal
from arise.run.read_only import read_only

_SCHEMA = """
CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, value TEXT NOT NULL, hash TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS spend (
    id INTEGER PRIMARY KEY, at REAL NOT NULL, key TEXT NOT NULL, purpose TEXT NOT NULL, model TEXT NOT NULL,
    prompt_tokens INTEGER NOT NULL, cached_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL,
    nano_usd INTEGER
);
CREATE TABLE IF NOT EXISTS totals (
    purpose TEXT, model TEXT, calls INTEGER NOT NULL, prompt_tokens INTEGER NOT NULL, cached_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL, nano_usd INTEGER NOT NULL, unpriced INTEGER NOT NULL,
    PRIMARY KEY (purpose, model)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS in_flight (
    id INTEGER PRIMARY KEY, at REAL NOT NULL, key TEXT NOT NULL, purpose TEXT NOT NULL, model TEXT NOT NULL,
    prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, nano_usd INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS estimates (spend_id INTEGER PRIMARY KEY, reason TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS seals (name TEXT PRIMARY KEY, seal TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS judges (window INTEGER, purpose TEXT, model TEXT NOT NULL, PRIMARY KEY (window, purpose));
"""
_VERSION = 2
_UNSEALED = 1
"""The format without digests and sums of spend; such a file is upgraded on its next write."""
_SUMS = (
    "SELECT purpose, model, COUNT(*), SUM(prompt_tokens), SUM(cached_tokens), SUM(completion_tokens), "
    "COALESCE(SUM(nano_usd), 0), SUM(nano_usd IS NULL) FROM spend GROUP BY purpose, model ORDER BY purpose, model"
)
_ADD = (
    "INSERT INTO totals VALUES (?, ?, 1, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET calls = calls + 1, "
    "prompt_tokens = prompt_tokens + excluded.prompt_tokens, cached_tokens = cached_tokens + excluded.cached_tokens, "
    "completion_tokens = completion_tokens + excluded.completion_tokens, nano_usd = nano_usd + excluded.nano_usd, "
    "unpriced = unpriced + excluded.unpriced"
)


class Usage(BaseModel):
    """The billed tokens of a request."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0


class Recorded(BaseModel):
    """A reply as the provider sent it, with the hash of the prompt template."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    text: str
    finish: str
    model: str
    fingerprint: str
    template_hash: str
    usage: Usage | None
    estimated: str = ""
    """Why `usage` is an estimate; empty if the provider reported it."""


@dataclass(frozen=True)
class Charge:
    """The cost of one request; `estimated` says why the provider's own count was not used."""

    key: str
    purpose: str
    model: str
    usage: Usage
    nano_usd: int | None
    estimated: str = ""


@dataclass(frozen=True)
class Total:
    """The sums of all calls of one purpose to one model; `unpriced` counts calls without a known price."""

    purpose: str
    model: str
    calls: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    nano_usd: int
    unpriced: int


class Store:
    """Open the file; `:memory:` keeps everything in this process."""

    def __init__(self, path: Path | str = ":memory:") -> None:
        self.rejected = 0
        try:
            self._db = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            version = self._db.execute("PRAGMA user_version").fetchone()[0]
            if version not in (0, _UNSEALED, _VERSION):
                raise StoreUnusable(f"{path} was written by another version of arise (format {version})")
            self._db.executescript(_SCHEMA)
            if version != _VERSION:
                with self._transaction():
                    self._db.execute(f"INSERT OR IGNORE INTO totals {_SUMS}")
                    self._db.execute("INSERT OR IGNORE INTO seals VALUES ('spend', ?)", (_spend_seal(self._db),))
                    self._db.execute(f"PRAGMA user_version={_VERSION}")
            self._charge_abandoned()
        except sqlite3.Error as error:
            raise StoreUnusable(f"cannot use {path}: {error}") from None

    def get(self, key: str) -> Recorded | None:
        """Return the reply recorded under a key; a reply that fails its checksum is dropped and counted."""
        row = self._db.execute("SELECT value, hash FROM replies WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        value, found = row
        try:
            if not isinstance(value, str) or found != _hash(key, value):
                raise ValueError("hash")
            return Recorded.model_validate_json(value)
        except (ValueError, ValidationError):
            self.rejected += 1
            self._db.execute("DELETE FROM replies WHERE key = ?", (key,))
            return None

    def note(self, charge: Charge) -> int:
        """Reserve the maximum cost of a request before it is sent; return the reservation's number."""
        usage = charge.usage
        row = (charge.key, charge.purpose, charge.model, usage.prompt_tokens, usage.completion_tokens, charge.nano_usd)
        cursor = self._db.execute("INSERT INTO in_flight VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)", (time.time(), *row))
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def forget(self, noted: int) -> None:
        """Drop the reservation of a request that was certainly not billed."""
        self._db.execute("DELETE FROM in_flight WHERE id = ?", (noted,))

    def put(
        self, key: str, reply: Recorded, purpose: str, nano_usd: int | None, keep: bool = True, noted: int | None = None
    ) -> None:
        """Record a reply and its cost in one transaction; with `keep=False` the reply is never reused."""
        value = reply.model_dump_json()
        with self._transaction():
            if keep:
                self._db.execute("INSERT OR REPLACE INTO replies VALUES (?, ?, ?)", (key, value, _hash(key, value)))
            self._add(Charge(key, purpose, reply.model, reply.usage or Usage(), nano_usd, reply.estimated), noted)

    def keep(self, key: str, reply: Recorded) -> None:
        """Record something under a key that cost nothing."""
        value = reply.model_dump_json()
        self._db.execute("INSERT OR REPLACE INTO replies VALUES (?, ?, ?)", (key, value, _hash(key, value)))

    def charge(self, charge: Charge, noted: int | None = None) -> None:
        """Record the cost of a request without a reply that may have been billed."""
        with self._transaction():
            self._add(charge, noted)

    def _add(self, charge: Charge, noted: int | None) -> None:
        """Write one cost row with its digest and sums, and settle the reservation."""
        counts = _counts(charge.usage)
        spent = (time.time(), charge.key, charge.purpose, charge.model, *counts, charge.nano_usd)
        number = self._db.execute("INSERT INTO spend VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?)", spent).lastrowid
        (seal,) = self._db.execute("SELECT seal FROM seals WHERE name='spend'").fetchone()
        seal = changed_seal(seal, [("spend", (number, *spent))])
        self._db.execute("UPDATE seals SET seal=? WHERE name='spend'", (seal,))
        unpriced = charge.nano_usd is None
        self._db.execute(_ADD, (charge.purpose, charge.model, *counts, charge.nano_usd or 0, unpriced))
        if charge.estimated:
            self._db.execute("INSERT INTO estimates VALUES (?, ?)", (number, charge.estimated[:300]))
        if noted is not None:
            self.forget(noted)

    def _charge_abandoned(self) -> None:
        """Charge the reservations of a killed process, because its requests may have been billed."""
        found = self._db.execute("SELECT * FROM in_flight ORDER BY id").fetchall()
        for noted, _, key, purpose, model, prompt, completion, nano_usd in found:
            usage = Usage(prompt_tokens=prompt, completion_tokens=completion)
            self.charge(Charge(key, purpose, model, usage, nano_usd, "in flight when the process died"), noted)

    def estimated(self) -> int:
        """Return how many costs are estimates, over all sessions of the run."""
        (count,) = self._db.execute("SELECT COUNT(*) FROM estimates").fetchone()
        return int(count)

    def totals(self) -> list[Total]:
        """Return spend by purpose and model, over all sessions of the run."""
        return _totals(self._db)

    def judge_of(self, window: int, purpose: str) -> str:
        """Return the model that answered first in a window, or an empty string."""
        row = self._db.execute(
            "SELECT model FROM judges WHERE window = ? AND purpose = ?", (window, purpose)
        ).fetchone()
        return str(row[0]) if row else ""

    def set_judge(self, window: int, purpose: str, model: str) -> None:
        self._db.execute("INSERT OR REPLACE INTO judges VALUES (?, ?, ?)", (window, purpose, model))

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")


def recorded_totals(path: Path) -> list[Total]:
    """Return the sums in a file that may be open for writing; empty if it cannot be read."""
    if not path.is_file():
        return []
    try:
        with closing(read_only(path)) as db:
            return _totals(db)
    except sqlite3.Error:
        return []


def damage(path: Path) -> Iterator[str]:
    """Yield damage in the recorded costs; replies are checked when they are read."""
    with closing(read_only(path)) as db:
        db.execute("BEGIN")
        seals = dict(db.execute("SELECT name, seal FROM seals"))
        if seals.get("spend") != _spend_seal(db):
            yield f"{path.name}: costs of calls were changed, added or lost since they were recorded"
        elif _totals(db) != [Total(*row) for row in db.execute(_SUMS)]:
            yield f"{path.name}: the sums are not those of the calls"


def _totals(db: sqlite3.Connection) -> list[Total]:
    return [Total(*row) for row in db.execute("SELECT * FROM totals ORDER BY purpose, model")]


def _spend_seal(db: sqlite3.Connection) -> str:
    return changed_seal(EMPTY, (("spend", row) for row in db.execute("SELECT * FROM spend")))


def _counts(usage: Usage) -> tuple[int, int, int]:
    return usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens


def _hash(key: str, value: str) -> str:
    return sha256(f"{key}\0{value}".encode()).hexdigest()
