"""Beyond the paper: a retired pair comes back, under its own id, on evidence that its behaviour fell."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from arise.config.pool import WatchConfig
from arise.method.lifecycle import Evolution
from arise.method.pass_rate import pass_rate
from arise.types import Pair, Pool, PoolEvent, Rejection, Return, Tally

NAMED = 4
"""Maximum number of evidence records that a note names."""


_NONE = Tally()


@dataclass(frozen=True)
class Relapse:
    """A retired pair whose behaviour fell, with the evidence: watched verdicts, or the records that a note names."""

    pair: Pair
    watched: Tally = _NONE
    unguided: Tally = _NONE
    note: str = ""


def unlearned(
    pool: Pool, tallies: Mapping[str, Tally], watch: WatchConfig, unguided: Mapping[str, Tally] | None = None
) -> tuple[Relapse, ...]:
    """Retired pairs whose pass rate among enough watched verdicts has fallen below the threshold, worst first."""
    rates: dict[str, float] = {}
    for rubric_id, tally in tallies.items():
        rate = pass_rate(tally)
        if rate is not None and tally.evaluations >= watch.min_evaluations and rate < watch.reopen_below:
            rates[rubric_id] = rate
    fallen = [pair for pair in pool.retired if pair.rubric.id in rates]
    ordered = sorted(fallen, key=lambda pair: rates[pair.rubric.id])
    beside = unguided or {}
    return tuple(Relapse(p, tallies[p.rubric.id], beside.get(p.rubric.id, _NONE)) for p in ordered)


def missing_again(
    pool: Pool, returns: Sequence[Return], iteration_of: Mapping[str, int], min_issues: int
) -> tuple[list[Relapse], list[Rejection]]:
    """Retired pairs that proposals repeat: those with enough issue evidence since their retirement, and the others.

    `iteration_of` says by evidence id in which iteration a record was made.
    """
    found: list[Relapse] = []
    rejected: list[Rejection] = []
    retired = {pair.rubric.id: pair for pair in pool.retired}
    for back in returns:
        pair = retired[back.rubric_id]
        left = pair.retired or 0
        refs = dict.fromkeys(back.proposal.issue_refs)
        since = [ref for ref in refs if iteration_of.get(ref, -1) >= left]
        if len(since) >= min_issues:
            more = f" and {len(since) - NAMED} more" if len(since) > NAMED else ""
            records = f"{', '.join(since[:NAMED])}{more}"
            found.append(Relapse(pair, note=f"missing in {len(since)} records since its retirement: {records}"))
        else:
            reason = (
                f"repeats {pair.rubric.id}, retired after iteration {left}: {len(since)} of the records it cites are "
                f"from after that, {min_issues} are needed"
            )
            rejected.append(Rejection(back.proposal.criteria_text, reason))
    return found, rejected


def reopened(evolution: Evolution, relapses: Sequence[Relapse], iteration: int, max_pairs: int) -> Evolution:
    """Put fallen pairs back into the evolved pool, skills hidden, as many as it can take."""
    pool = evolution.pool
    distinct: dict[str, Relapse] = {}
    for relapse in relapses:
        distinct.setdefault(relapse.pair.rubric.id, relapse)
    back = list(distinct.values())[: max(0, max_pairs - len(pool))]
    if not back:
        return evolution
    events = [
        PoolEvent(iteration, r.pair.rubric.id, "reopen", *r.watched, r.pair.skill.revision, r.note, *r.unguided)
        for r in back
    ]
    left = tuple(pair for pair in pool.retired if pair.rubric.id not in {event.rubric_id for event in events})
    returned = (replace(relapse.pair, retired=None) for relapse in back)
    grown = replace(pool, pairs=(*pool.pairs, *returned), retired=left, version=pool.version + 1)
    return Evolution(grown, (*evolution.events, *events))
