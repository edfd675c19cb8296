"""Retention: retired behaviours at later checkpoints, unguided, on the tasks of the window before retirement.

The appendix "Behavioral Retention After Retirement"; rubric texts and the judge are those of the run.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from arise.method.pass_rate import pass_rate
from arise.run.facts.verdicts import judged
from arise.run.queries import RunQueries
from arise.text import numbers
from arise.types import Pair, Pool, Rubric, Skill, Tally


@dataclass(frozen=True)
class Retired:
    """A rubric retired after `iteration`, with its pass rate then and its fixed set of tasks.

    After `returned` the same behaviour was in the pool again, reopened or added again with the same text.
    """

    rubric: Rubric
    iteration: int
    at_retirement: Tally
    task_ids: tuple[str, ...]
    returned: int | None = None

    def away_at(self, checkpoint: int) -> bool:
        """Return whether the behaviour stayed retired up to this checkpoint."""
        return self.iteration < checkpoint and (self.returned is None or checkpoint <= self.returned)


def retired(run: RunQueries) -> list[Retired]:
    """Return every retirement of a run, in order."""
    rubrics = {rubric.id: rubric for rubric in run.rubrics()}
    events = [event for event in run.events() if event.kind in ("retire", "reopen", "born")]
    found = []
    for place, event in enumerate(events):
        if event.kind == "retire":
            rubric, later = rubrics[event.rubric_id], [e for e in events[place:] if e.kind != "retire"]
            back = next((e.iteration for e in later if _same(rubric, rubrics[e.rubric_id])), None)
            tasks = run.drawn_tasks(event.k - run.update_every + 1, event.k)
            found.append(Retired(rubric, event.iteration, Tally(event.passes, event.evaluations), tasks, back))
    return found


def _same(one: Rubric, other: Rubric) -> bool:
    return one.criteria_text == other.criteria_text


def away_at(found: Sequence[Retired], checkpoint: int) -> list[Retired]:
    """Return the rubrics that were retired at a checkpoint."""
    return [item for item in found if item.away_at(checkpoint)]


def as_pool(found: Sequence[Retired]) -> Pool:
    """Return the retired rubrics as a pool for the judge."""
    return Pool(tuple(Pair(item.rubric, Skill("")) for item in found), version=1)


def curves(found: Sequence[Retired], run: RunQueries) -> list[dict[str, Any]]:
    """Return each retired rubric's rate at retirement and at later checkpoints, on its own tasks only."""
    tallies: dict[tuple[int, int], Tally] = defaultdict(Tally)
    attempts = run.retention_attempts()
    checkpoints = {attempt.k for attempt in attempts}
    for attempt in attempts:
        verdicts = judged([attempt.verdicts])
        for place, item in enumerate(found):
            if attempt.task_id in item.task_ids:
                tally = verdicts.get(item.rubric.id, Tally())
                tallies[place, attempt.k] = tallies[place, attempt.k].plus(tally)
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
    """Return one line per retirement; `91.7 % (12)` is a rate and its number of verdicts."""
    lines = []
    for row in rows:
        later = "  ".join(f"iteration {k}: {_cell(rate)}" for k, rate in row["later"].items()) or "no later checkpoint"
        head = f"{row['rubric']} retired after {row['retired']} at {_cell(row['at_retirement'])}, {row['tasks']} tasks"
        back = f"  back in the pool after {row['returned']}" if row["returned"] else ""
        lines.append(f"{head};  {later}{back}  {row['criterion']}")
    return lines


def _rate(tally: Tally) -> list[float | int | None]:
    return [pass_rate(tally), tally.evaluations]


def _cell(rate: Sequence[float | int | None]) -> str:
    return f"{numbers.percent(rate[0])} ({rate[1]})"
