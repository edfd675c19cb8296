"""The tables of a run and its trajectories as JSON Lines or Parquet: one file per table."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from arise.errors import AriseError, Exit
from arise.rollouts.discretion import redacted_turn
from arise.run.numbering import iteration_of
from arise.run.reader import RunReader
from arise.text.progress import Progress
from arise.text.secrets import redact
from arise.types.codec import to_json

log = logging.getLogger(__name__)

Record = dict[str, Any]
TABLES = (
    "draws",
    "rollouts",
    "verdicts",
    "events",
    "skills",
    "proposals",
    "attempts",
    "groups",
    "cells",
    "vitals",
    "tasks",
)


def _table(run: RunReader, name: str) -> Iterator[Record]:
    for row in run.table(name):
        plain: Record = {column: redact(value) if isinstance(value, str) else value for column, value in row.items()}
        if "k" in plain:  # attempts store the iteration itself, 0 before training
            plain["iteration"] = plain["k"] if name == "attempts" else iteration_of(plain["k"])
        yield plain


def _iterations(run: RunReader) -> Iterator[Record]:
    for iteration in run.iterations():
        yield {
            "k": iteration.k,
            "iteration": iteration.number,
            "at": iteration.at,
            "checkpoint": iteration.checkpoint,
            **iteration.metrics,
        }


def _pairs(run: RunReader) -> Iterator[Record]:
    for pair in run.pairs():
        rubric = to_json(pair.rubric)
        plain = {name: redact(value) if isinstance(value, str) else value for name, value in rubric.items()}
        yield plain | {
            "status": pair.status,
            "stuck": pair.standing.stuck,
            "born_at": pair.born_at,
            "retired_at": pair.retired_at,
            "retired": pair.retired,
        }


def _trajectories(run: RunReader) -> Iterator[Record]:
    iterations = run.iterations()
    with Progress(log, "exporting iterations", len(iterations)) as wait:
        for iteration in iterations:
            for row in run.rollouts(k=iteration.k, limit=-1):
                yield from _turns(run, row.id)
            wait.add()


def _turns(run: RunReader, rollout_id: str) -> Iterator[Record]:
    stored = run.trajectory(rollout_id)
    assert stored is not None
    for number, turn in enumerate(map(redacted_turn, stored.turns())):
        texts = {"rollout_id": rollout_id, "turn": number, "text": turn.text, "reasoning": turn.reasoning}
        acts = {"calls": json.dumps(to_json(turn.calls)), "observations": json.dumps(to_json(turn.observations))}
        yield texts | acts


def _sources(run: RunReader) -> dict[str, Iterator[Record]]:
    """Return every table by the name of its file, as lazy iterators."""
    tables = {name: _table(run, name) for name in TABLES}
    return tables | {"iterations": _iterations(run), "pairs": _pairs(run), "turns": _trajectories(run)}


def write_jsonl(run: RunReader, out: Path) -> list[Path]:
    """Write one JSON Lines file per table."""
    written = []
    for name, records in _sources(run).items():
        path = out / f"{name}.jsonl"
        with path.open("w") as file:
            for record in records:
                file.write(json.dumps(record) + "\n")
        written.append(path)
    return written


def write_parquet(run: RunReader, out: Path) -> list[Path]:
    """Write one Parquet file per table; an empty table has no columns and so no file."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise AriseError(
            "export",
            Exit.CONFIG,
            "Parquet needs the package pyarrow",
            "nothing was written",
            "pip install 'arise-rl[export]', or take --format jsonl",
        ) from None
    written = []
    for name, records in _sources(run).items():
        found = [_storable(record) for record in records]
        if found:
            path = out / f"{name}.parquet"
            columns = dict.fromkeys(column for record in found for column in record)
            table = pyarrow.table({column: [record.get(column) for record in found] for column in columns})
            pyarrow.parquet.write_table(table, path, compression="zstd")
            written.append(path)
    return written


def _storable(record: Record) -> Record:
    """Escape lone surrogates, which Arrow's UTF-8 text refuses."""
    return {
        name: value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value
        for name, value in record.items()
    }
