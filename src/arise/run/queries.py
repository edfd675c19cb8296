"""All named queries on a run. `RunReader` answers them from a snapshot, `RunStore` from the writer's connection."""

from arise.run.evaluation_queries import EvaluationQueries
from arise.run.pool_queries import PoolQueries
from arise.run.process_queries import ProcessQueries
from arise.run.rollout_queries import RolloutQueries


class RunQueries(PoolQueries, RolloutQueries, EvaluationQueries, ProcessQueries):
    """All queries that screens, pages, reports and exports use."""
