"""Retired behaviours at later checkpoints: each on the tasks of the window that ended with its retirement, unguided.

The appendix "Behavioral Retention After Retirement"; rubric texts and the judge are those of the run.
"""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from arise.evaluation.score import Query
from arise.method.pass_rate import pass_rate
from arise.types import Pair, Pool, Rubric, Skill, Tally, Verdict
from arise.types.codec import from_json


@dataclass(frozen=True)
class Retired:
    """A rubric that left the pool after `iteration`, with its pass rate then and its fixed set of tasks.

    After `returned` the same behaviour was in the pool again, reopened or born anew in the same words.
    """

    rubric: Rubric
    iteration: int
    at_retirement: Tally
    task_ids: tuple[str, ...]
    returned: int | None = None

    def away_at(self, checkpoint: int) -> bool:
        """Whether a checkpoint was trained without the behaviour's reward since its retirement."""
        return self.iteration < checkpoint and (self.returned is None or checkpoint <= self.returned)


def retired(query: Query, window: int) -> list[Retired]:
    """Every retirement of a run, in order."""
    rows = query(
        "SELECT e.k, e.kind, e.passes, e.evaluations, p.rubric FROM events e JOIN pairs p USING (rubric_id)"
        " WHERE e.kind IN ('retire', 'reopen', 'born') ORDER BY e.k, e.seq"
    )
    events = [
        (k, kind, Tally(passes, tried), from_json(Rubric, json.loads(text))) for k, kind, passes, tried, text in rows
    ]
    found = []
    for place, (k, kind, tally, rubric) in enumerate(events):
        if kind == "retire":
            back = (later + 1 for later, how, _, other in events[place:] if how != "retire" and _same(rubric, other))
            drawn = query("SELECT DISTINCT task_id FROM draws WHERE k > ? AND k <= ? ORDER BY task_id", (k - window, k))
            found.append(Retired(rubric, k + 1, tally, tuple(task_id for (task_id,) in drawn), next(back, None)))
    return found


def _same(one: Rubric, other: Rubric) -> bool:
    return one.criteria_text == other.criteria_text


def away_at(found: Sequence[Retired], checkpoint: int) -> list[Retired]:
    """Those that a checkpoint can have kept or lost."""
    return [item for item in found if item.away_at(checkpoint)]


def as_pool(found: Sequence[Retired]) -> Pool:
    """The retired rubrics as something to judge by."""
    return Pool(tuple(Pair(item.rubric, Skill("")) for item in found), version=1)


def curves(found: Sequence[Retired], query: Query) -> list[dict[str, Any]]:
    """For every retired rubric its rate at retirement and at each later checkpoint, on its own tasks only."""
    tallies: dict[tuple[int, int], Tally] = defaultdict(Tally)
    checkpoints = set()
    for k, task_id, verdicts in query("SELECT k, task_id, verdicts FROM attempts WHERE label LIKE 'retention/%'"):
        checkpoints.add(k)
        for rubric_id, verdict in json.loads(verdicts).items():
            for place, item in enumerate(found):
                fits = item.rubric.id == rubric_id and task_id in item.task_ids
                if fits and verdict != Verdict.NOT_APPLICABLE:
                    passes, evaluations = tallies[place, k]
                    tallies[place, k] = Tally(passes + (verdict == Verdict.PASS), evaluations + 1)
    return [
        {
            "rubric": item.rubric.id,
            "criterion": item.rubric.criteria_text,
            "retired": item.iteration,
            "returned": item.returned,
            "tasks": len(item.task_ids),
            "at_retirement": _rate(item.at_retirement),
            "later": {k: _rate(tallies[place, k]) for k in sorted(checkpoints) if item.away_at(k)},
        }
        for place, item in enumerate(found)
    ]


def table(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Lines for a person, `91.7 (12)` being a rate in percent and the verdicts behind it."""
    lines = []
    for row in rows:
        later = "  ".join(f"k{k}: {_cell(rate)}" for k, rate in row["later"].items()) or "no later checkpoint"
        head = f"{row['rubric']} retired after {row['retired']} at {_cell(row['at_retirement'])}, {row['tasks']} tasks"
        back = f"  back in the pool after {row['returned']}" if row["returned"] else ""
        lines.append(f"{head};  {later}{back}  {row['criterion']}")
    return lines


def _rate(tally: Tally) -> list[float | int | None]:
    return [pass_rate(tally), tally.evaluations]


def _cell(rate: Sequence[float | int | None]) -> str:
    return "-- (0)" if rate[0] is None else f"{100 * rate[0]:.1f} ({rate[1]})"
