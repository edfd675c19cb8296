"""Attempts of an analysis as cases to check a judge on, read again from their original paths."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from arise.compose.analyze import Inputs
from arise.errors import AriseError
from arise.llm.check.cases import Cases, CasesError
from arise.report.analysis.folder import fields_of, found_at, is_analysis, paths_of, read_facts
from arise.report.analysis.outputs import POOL
from arise.rollouts.discretion import redacted_turn
from arise.run.lifecycle_file import starting_pool
from arise.types import Rollout, Task, Trajectory

__all__ = ["cases_of_analysis", "inputs_of", "is_analysis"]


def inputs_of(
    folder: Path, facts: Mapping[str, Any], fields: Mapping[str, str] | None = None, tasks: Path | None = None
) -> tuple[list[Path], Inputs]:
    """Return what an analysis was made from, to read it again; `fields` and `tasks` replace those it was made with."""
    told, outcomes = facts.get("tasks", ""), facts.get("outcomes", "")
    if outcomes and (place := found_at(folder, outcomes)).is_file():
        outcomes = str(place)
    named = tasks or (found_at(folder, told) if told else None)
    inputs = Inputs(fields or fields_of(facts), named, outcomes, facts["seed"])
    return paths_of(folder, facts), inputs


def cases_of_analysis(folder: Path, limit: int) -> Cases:
    """Return the first `limit` attempts that have turns, redacted, with the pool of the analysis as rubrics."""
    try:
        pool = starting_pool(folder / POOL)
    except AriseError as error:
        raise CasesError(f"{folder}: the analysis found no rubric to judge by ({error.what})") from None
    paths, inputs = inputs_of(folder, read_facts(folder))
    if lost := [path for path in paths if not path.exists()]:
        raise CasesError(f"{lost[0]}: the trajectories of the analysis are not there; start where it was made")
    rollouts: list[tuple[Task, Rollout]] = []
    for found in inputs.scan(paths):
        if len(rollouts) >= limit:
            break
        if turns := tuple(map(redacted_turn, found.trajectory.turns)):
            trajectory = Trajectory(found.source, found.task.id, turns, found.trajectory.stop)
            rollouts.append((found.task, Rollout(trajectory, None)))
    if not rollouts:
        raise CasesError(f"{folder}: no attempt of the analysis has a turn to judge")
    return Cases(pool, tuple(rollouts), {})
