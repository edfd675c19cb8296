"""Attempts of an analysis as cases to check a judge on, read again from their original paths."""

from pathlib import Path

from arise.analyze.found import Options
from arise.analyze.scan import Scan
from arise.errors import AriseError
from arise.llm.check.cases import Cases, CasesError
from arise.report.analysis.outputs import POOL
from arise.report.analysis.serving import is_analysis, read_facts
from arise.rollouts.discretion import redacted_turn
from arise.run.lifecycle_file import starting_pool
from arise.types import Rollout, Task, Trajectory

__all__ = ["cases_of_analysis", "is_analysis"]


def cases_of_analysis(folder: Path, limit: int) -> Cases:
    """Return the first `limit` attempts that have turns, redacted, with the pool of the analysis as rubrics."""
    try:
        pool = starting_pool(folder / POOL)
    except AriseError as error:
        raise CasesError(f"{folder}: the analysis found no rubric to judge by ({error.what})") from None
    paths = [Path(path) for path in read_facts(folder)["paths"]]
    if lost := [path for path in paths if not path.exists()]:
        raise CasesError(f"{lost[0]}: the trajectories of the analysis are no longer there")
    rollouts: list[tuple[Task, Rollout]] = []
    for found in Scan(paths, Options()):
        if len(rollouts) >= limit:
            break
        if turns := tuple(map(redacted_turn, found.trajectory.turns)):
            trajectory = Trajectory(found.source, found.task.id, turns, found.trajectory.stop)
            rollouts.append((found.task, Rollout(trajectory, None)))
    if not rollouts:
        raise CasesError(f"{folder}: no attempt of the analysis has a turn to judge")
    return Cases(pool, tuple(rollouts), {})
