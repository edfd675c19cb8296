"""Labelled trajectories for checking a judge: a user's file or the shipped examples.

JSON Lines: first `{"pool": ...}`, then `{"task": ..., "rollout": ..., "labels": {rubric id: verdict}}` per line.
"""

import json
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from arise.types import Pool, Rollout, Task, Verdict
from arise.types.codec import from_json


class CasesError(ValueError):
    """An invalid file of cases, with the line number."""


@dataclass(frozen=True)
class Cases:
    """A pool and the rollouts to judge with it; labels by (trajectory id, rubric id)."""

    pool: Pool
    rollouts: tuple[tuple[Task, Rollout], ...]
    labels: dict[tuple[str, str], Verdict]


def read_cases(path: Path | None = None) -> Cases:
    """Read the cases of a file, or the shipped ones."""
    shipped = files(__package__).joinpath("check_cases.jsonl")
    try:
        text = path.read_text("utf-8") if path else shipped.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CasesError(f"{path}: cannot be read: {error}") from None
    pool: Pool | None = None
    rollouts: list[tuple[Task, Rollout]] = []
    labels: dict[tuple[str, str], Verdict] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            if pool is None:
                pool = from_json(Pool, entry["pool"])
                continue
            task, rollout = from_json(Task, entry["task"]), from_json(Rollout, entry["rollout"])
            for rubric_id, verdict in entry.get("labels", {}).items():
                labels[rollout.trajectory.id, pool.find(rubric_id).rubric.id] = Verdict(verdict)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CasesError(f"{path or 'the shipped cases'}: line {number}: {error}") from None
        rollouts.append((task, rollout))
    if pool is None or not rollouts:
        raise CasesError(f"{path}: expected a pool and at least one rollout")
    return Cases(pool, tuple(rollouts), labels)
