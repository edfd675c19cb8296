"""Beyond the paper: rank skills by need, for prompts that cannot hold all of them."""

from collections.abc import Mapping
from dataclasses import replace

from arise.method.pass_rate import pass_rate
from arise.types import Fate, Need, Pair, Pool, Tally


def with_needs(pool: Pool, decided: Mapping[str, Fate], tallies: Mapping[str, Tally], iteration: int) -> Pool:
    """Return the pool with a new need for every pair whose skill this update activated or had rewritten."""

    def noted(pair: Pair) -> Pair:
        if decided.get(pair.rubric.id) not in (Fate.ACTIVATE, Fate.REFINE):
            return pair
        return replace(pair, skill=replace(pair.skill, need=Need(iteration, *tallies[pair.rubric.id])))

    return replace(pool, pairs=tuple(map(noted, pool.pairs)))


def urgency(pair: Pair) -> tuple[int, float]:
    """Return a key that sorts the newest need first, and among needs of one update the lowest pass rate."""
    need = pair.skill.need
    if need is None:
        return 0, 1.0
    rate = pass_rate(Tally(need.passes, need.evaluations))
    return -need.iteration, 1.0 if rate is None else rate
