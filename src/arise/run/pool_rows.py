"""Rows on the pool: pairs with their events and skills, verdicts and their counts, proposals."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from arise.method.lifecycle import UNCHANGED
from arise.method.standing import Standing, standing
from arise.run.numbering import iteration_of
from arise.types import PairStatus, Rubric, Tally

EVENTS = {
    "born": "born",
    "activate": "skill shown",
    "refine": "skill rewritten",
    "hide": "skill hidden",
    "retire": "retired",
    "reopen": "came back",
    "imported": "given at the start",
}
"""Kinds of events, in words."""


def event_words(kind: str, note: str) -> str:
    """Return an event in words; a refinement may have left the skill unchanged."""
    return "skill not rewritten" if note.startswith(UNCHANGED) else EVENTS.get(kind, kind)


class Event(NamedTuple):
    """One event of a pair, at the end of iteration k (-1 for imported pairs), with the verdicts of its window.

    Unguided verdicts are those of rollouts whose prompt did not contain the pair's skill.
    """

    k: int
    rubric_id: str
    kind: str
    passes: int
    evaluations: int
    revision: int
    note: str
    unguided_passes: int = 0
    unguided_evaluations: int = 0

    @property
    def iteration(self) -> int:
        return iteration_of(self.k)

    @property
    def words(self) -> str:
        return event_words(self.kind, self.note)

    @property
    def unchanged(self) -> bool:
        return self.note.startswith(UNCHANGED)

    @property
    def guided(self) -> Tally:
        return Tally(self.passes - self.unguided_passes, self.evaluations - self.unguided_evaluations)


class SkillRevision(NamedTuple):
    """A skill's text from the end of iteration k on."""

    rubric_id: str
    revision: int
    k: int
    text: str

    @property
    def iteration(self) -> int:
        return iteration_of(self.k)


@dataclass(frozen=True)
class PairLife:
    """The lifecycle of a pair."""

    rubric: Rubric
    events: tuple[Event, ...] = ()
    skills: tuple[SkillRevision, ...] = ()

    @property
    def born_at(self) -> int:
        """Return k of the iteration that ended with its birth."""
        return next((event.k for event in self.events if event.kind in ("born", "imported")), self.rubric.born - 1)

    @property
    def retired_at(self) -> int | None:
        """Return k of the iteration that ended with its retirement; None if it is not retired."""
        return self.events[-1].k if self.status is PairStatus.RETIRED else None

    @property
    def born(self) -> int:
        """Return the iteration that ended with its birth; 0 for an initial pair."""
        return iteration_of(self.born_at)

    @property
    def retired(self) -> int | None:
        """Return the iteration that ended with its retirement; None if it is not retired."""
        return None if self.retired_at is None else iteration_of(self.retired_at)

    @property
    def standing(self) -> Standing:
        return standing(self.events)

    @property
    def status(self) -> PairStatus:
        return self.standing.status

    @property
    def rewritten(self) -> int:
        """Return how often its skill got a new text; a refinement may find none."""
        return sum(event.kind == "refine" and not event.unchanged for event in self.events)

    def after(self, k: int) -> "PairLife":
        """Return the pair as it was at the end of iteration k."""
        kept = [event for event in self.events if event.k <= k], [skill for skill in self.skills if skill.k <= k]
        return PairLife(self.rubric, tuple(kept[0]), tuple(kept[1]))


class VerdictCount(NamedTuple):
    """Verdict counts of a rubric in one iteration, for rollouts that saw its skill or for the others."""

    rubric_id: str
    k: int
    shown: bool
    passes: int
    fails: int
    not_applicable: int
    absent: int

    @property
    def iteration(self) -> int:
        return iteration_of(self.k)

    @property
    def evaluations(self) -> int:
        return self.passes + self.fails


class VerdictRow(NamedTuple):
    """One verdict with its rollout; a missing verdict (None) has its reason, another one may have."""

    rollout_id: str
    rubric_id: str
    k: int
    verdict: str | None
    reason: str
    shown: bool
    task_id: str
    success: bool | None

    @property
    def iteration(self) -> int:
        return iteration_of(self.k)


class RubricAgreement(NamedTuple):
    """How often two rubrics agreed on rollouts to which both apply, and how often the first passed."""

    one: str
    other: str
    same: int
    shared: int
    passes: int


class VerdictSums(NamedTuple):
    """Sums of all verdicts of an iteration."""

    k: int
    passes: int
    fails: int
    not_applicable: int
    absent: int

    @property
    def iteration(self) -> int:
        return iteration_of(self.k)

    @property
    def evaluations(self) -> int:
        return self.passes + self.fails

    @property
    def asked(self) -> int:
        return self.evaluations + self.not_applicable + self.absent


@dataclass(frozen=True)
class ProposalRow:
    """A proposal of the reflector, accepted or with the reason for its rejection."""

    k: int
    seq: int
    accepted: bool
    text: str
    reason: str
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def iteration(self) -> int:
        return iteration_of(self.k)
