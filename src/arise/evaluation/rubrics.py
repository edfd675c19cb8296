"""The pairs of a run: every rubric that it ever had, to judge by and never shown, and the pool as it stands."""

import json

from arise.evaluation.score import Query
from arise.run.chunks import decompress
from arise.types import Pair, Pool, Rubric, Skill
from arise.types.codec import from_json


def every_pair(query: Query) -> Pool:
    """All pairs of a run's life, oldest first."""
    rows = query("SELECT rubric FROM pairs ORDER BY rubric_id")
    return Pool(tuple(Pair(from_json(Rubric, json.loads(rubric)), Skill("")) for (rubric,) in rows), version=1)


def last_pool(query: Query) -> Pool:
    """The pool of the last commit with its skills, retired pairs included; empty before the first."""
    rows = query("SELECT state FROM iterations ORDER BY k DESC LIMIT 1")
    return from_json(Pool, decompress(rows[0][0])["pool"]) if rows else Pool()
