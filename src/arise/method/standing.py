"""Derive a pair's status from its events; the only place that does."""

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from arise.types import PairStatus, Tally

STUCK_AFTER = 3
"""Number of refinements in a row without effect that make a skill stuck."""
_STATUS = {
    "born": PairStatus.HIDDEN,
    "imported": PairStatus.HIDDEN,
    "activate": PairStatus.SHOWN,
    "refine": PairStatus.SHOWN,
    "hide": PairStatus.HIDDEN,
    "retire": PairStatus.RETIRED,
    "reopen": PairStatus.HIDDEN,
}


class LifeEvent(Protocol):
    """One event of a pair, with the verdict counts of its window's guided rollouts."""

    @property
    def kind(self) -> str: ...
    @property
    def guided(self) -> Tally: ...


class Standing(NamedTuple):
    """`Standing(PairStatus.SHOWN, stuck=True)` reads `shown, stuck`."""

    status: PairStatus
    stuck: bool = False

    def __str__(self) -> str:
        return f"{self.status}, stuck" if self.stuck else str(self.status)


def standing(life: Iterable[LifeEvent]) -> Standing:
    """Return the status after the last event; a pair without events is hidden, as at birth.

    Events of unknown kinds, written by a newer version, do not change the status.
    Stuck is a shown skill whose refinements had no effect: see `without_effect`.
    """
    status, refinements = PairStatus.HIDDEN, list[Tally]()
    for event in life:
        status = _STATUS.get(event.kind, status)
        refinements = [*refinements, event.guided] if event.kind == "refine" else []
    return Standing(status, without_effect(refinements))


def without_effect(guided: Iterable[Tally], after: int = STUCK_AFTER) -> bool:
    """Whether the last `after` refinements of a shown skill had no effect.

    `guided` holds, for each update that found the skill failing, the verdicts of the rollouts that saw it since the
    update before. So each entry but the first shows what the refinement before it did. There was no effect where the
    last `after` entries together pass at no higher a rate than the entry before them.
    """
    judged = [tally for tally in guided if tally.evaluations]
    if len(judged) <= after:
        return False
    before, later = judged[-after - 1], judged[-after:]
    passes, evaluations = sum(tally.passes for tally in later), sum(tally.evaluations for tally in later)
    return passes * before.evaluations <= before.passes * evaluations
