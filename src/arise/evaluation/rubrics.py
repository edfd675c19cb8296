"""Every rubric that a run ever had, as one pool to judge by; nothing of it is ever shown."""

import json

from arise.codec import from_json
from arise.evaluation.score import Query
from arise.types import Pair, Pool, Rubric, Skill


def every_pair(query: Query) -> Pool:
    """All pairs of a run's life, oldest first."""
    rows = query("SELECT rubric FROM pairs ORDER BY rubric_id")
    return Pool(tuple(Pair(from_json(Rubric, json.loads(rubric)), Skill("")) for (rubric,) in rows), version=1)
