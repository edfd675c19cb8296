"""Outcomes from a table of the user, for trajectories that record none: CSV, JSON or JSON Lines, a row per attempt."""

import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from arise.analyze.files import Unreadable, lines, load
from arise.analyze.found import Found, Options, Outcome, Triage
from arise.analyze.readers.rows import outcome_of, pick
from arise.errors import AriseError, Exit

_PLACE = re.compile(r"(?::\d+)?(?:#[^/]*)?$")
_NUMBER = re.compile(r"(?:^|[_-])(\d+)$")
_NAMES = ("source", "file", "path")


@dataclass
class OutcomeTables:
    """`OutcomeTables("eval_results.json", options)` looks for a table of this name in the folder of each attempt.

    A path that exists is one table for all attempts. A row names an attempt by its file, its task, or the number at
    the end of its file's name.
    """

    name: str
    options: Options
    rows: int = 0
    used: int = 0
    _tables: dict[Path, dict[str, list[Outcome]]] = field(default_factory=dict)

    def filled(self, found: Found) -> Found:
        """Return an attempt with the outcome of its row, if it has none of its own."""
        if found.outcome.triage is not Triage.MISSING or found.outcome.reward is not None:
            return found
        file = Path(_PLACE.sub("", found.source))
        whole = Path(self.name)
        table = whole if whole.is_file() else file.parent / self.name
        outcomes = self._outcomes(table, file, found)
        if not outcomes:
            return found
        self.used += 1
        if len({(outcome.triage, outcome.passed) for outcome in outcomes}) > 1:
            said = f"{len(outcomes)} rows of {table.name} disagree"
            return replace(found, outcome=Outcome(Triage.MISSING, reason=said))
        return replace(found, outcome=replace(outcomes[0], reason=outcomes[0].reason or table.name))

    def _outcomes(self, table: Path, file: Path, found: Found) -> list[Outcome]:
        rows, names = self._read(table), [found.source, found.task.id]
        if found.source == str(file):  # one attempt in the file, so its name is that of the attempt
            stem = file.name.partition(".")[0]
            names += [str(file), file.name, stem, file.parent.name, *_NUMBER.findall(stem)]
        for name in names:
            if name in rows:
                return rows[name]
        return next((rows[name] for name in rows if "/" in name and found.source.endswith(f"/{name}")), [])

    def _read(self, table: Path) -> dict[str, list[Outcome]]:
        if table not in self._tables:
            found: dict[str, list[Outcome]] = {}
            for row in _rows(table) if table.is_file() else ():
                outcome = outcome_of(row, self.options)
                named = next((row[name] for name in _NAMES if row.get(name)), pick(row, "task", self.options))
                if named not in (None, "") and outcome.triage is not Triage.MISSING:
                    found.setdefault(str(named), []).append(outcome)
                    self.rows += 1
            self._tables[table] = found
        return self._tables[table]


def _rows(table: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of a table; raise if it cannot be read."""
    try:
        if table.suffix == ".csv":
            with table.open(newline="", encoding="utf-8-sig") as stream:
                yield from csv.DictReader(stream)
        elif table.suffix == ".jsonl":
            yield from (row for _, row in lines(table) if isinstance(row, Mapping))
        else:
            yield from _listed(load(table))
    except (OSError, ValueError, Unreadable) as error:
        raise AriseError(
            "outcomes", Exit.CONFIG, f"{table}: {error}", "nothing was analysed",
            "give a CSV, JSON or JSON Lines file with one row per attempt: a task and an outcome",
        ) from None  # fmt: skip


def _listed(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of a document: a list, the first list of rows in an object, or an object by task."""
    if isinstance(value, Mapping):
        inner = next((item for item in value.values() if isinstance(item, list) and item), None)
        if inner is None:
            value = [
                {"task": name, **(item if isinstance(item, Mapping) else {"outcome": item})}
                for name, item in value.items()
            ]
        else:
            value = inner
    yield from (row for row in value if isinstance(row, Mapping))
