"""Beyond the paper: retired pairs that were unlearned come back."""

from collections.abc import Mapping
from dataclasses import replace

from arise.config import Watch
from arise.method.lifecycle import Evolution
from arise.method.pass_rate import pass_rate
from arise.types import Pair, Pool, PoolEvent, Tally


def unlearned(pool: Pool, tallies: Mapping[str, Tally], watch: Watch) -> tuple[Pair, ...]:
    """Retired pairs whose pass rate among enough watched verdicts has fallen below the threshold, worst first."""
    rates: dict[str, float] = {}
    for rubric_id, tally in tallies.items():
        rate = pass_rate(tally)
        if rate is not None and tally.evaluations >= watch.min_evaluations and rate < watch.reopen_below:
            rates[rubric_id] = rate
    fallen = [pair for pair in pool.retired if pair.rubric.id in rates]
    return tuple(sorted(fallen, key=lambda pair: rates[pair.rubric.id]))


def reopened(
    evolution: Evolution, fallen: tuple[Pair, ...], tallies: Mapping[str, Tally], iteration: int, max_pairs: int
) -> Evolution:
    """The evolution with fallen pairs back in the pool, skills hidden, as many as it can take."""
    pool = evolution.pool
    back = fallen[: max(0, max_pairs - len(pool))]
    if not back:
        return evolution
    ids = {pair.rubric.id for pair in back}
    events = [PoolEvent(iteration, p.rubric.id, "reopen", *tallies[p.rubric.id], p.skill.revision) for p in back]
    left = tuple(pair for pair in pool.retired if pair.rubric.id not in ids)
    grown = replace(pool, pairs=(*pool.pairs, *back), retired=left, version=pool.version + 1)
    return Evolution(grown, (*evolution.events, *events))
