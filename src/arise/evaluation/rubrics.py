"""The rubrics of a run as a pool for the judge; their skills are never shown."""

from arise.run.queries import RunQueries
from arise.types import Pair, Pool, Skill


def every_pair(run: RunQueries) -> Pool:
    """Return all rubrics that a run ever had, by id, each with an empty skill."""
    return Pool(tuple(Pair(rubric, Skill("")) for rubric in run.rubrics()), version=1)
