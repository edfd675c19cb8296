"""What a reader of a run gets: one frozen row for each thing a page, a figure or an export shows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from arise.method.lifecycle import UNCHANGED
from arise.method.standing import Standing, standing
from arise.run.why import Mass
from arise.types import Draw, Rubric, Status, Tally


@dataclass(frozen=True)
class Iteration:
    """A committed iteration; `number` is what people see, from 1, and `k` its place in the tables, from 0."""

    k: int
    at: float
    metrics: Mapping[str, float]
    checkpoint: str | None

    @property
    def number(self) -> int:
        return self.k + 1


EVENTS = {
    "born": "born",
    "activate": "skill shown",
    "refine": "skill rewritten",
    "hide": "skill hidden",
    "retire": "retired",
    "reopen": "came back",
    "imported": "given at the start",
}
"""What can happen to a pair, in words."""


class Event(NamedTuple):
    """One line of a pair's life, at the end of iteration k (imported at -1), with the verdicts of its window.

    Unguided are those of rollouts in whose prompt the pair's skill did not stand.
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
    def words(self) -> str:
        """What happened, in words; a refinement may have found nothing new to write."""
        return "skill not rewritten" if self.note.startswith(UNCHANGED) else EVENTS.get(self.kind, self.kind)

    @property
    def guided(self) -> Tally:
        return Tally(self.passes - self.unguided_passes, self.evaluations - self.unguided_evaluations)


class SkillRevision(NamedTuple):
    """A skill's text as it stood from the end of iteration k on."""

    rubric_id: str
    revision: int
    k: int
    text: str


@dataclass(frozen=True)
class PairLife:
    """A pair from birth to now."""

    rubric: Rubric
    events: tuple[Event, ...] = ()
    skills: tuple[SkillRevision, ...] = ()

    @property
    def born_at(self) -> int:
        """k of the iteration that ended with its birth."""
        return next((event.k for event in self.events if event.kind in ("born", "imported")), self.rubric.born - 1)

    @property
    def retired_at(self) -> int | None:
        """k of the iteration that ended with its retirement, if it is retired now."""
        return self.events[-1].k if self.status is Status.RETIRED else None

    @property
    def standing(self) -> Standing:
        return standing(self.events)

    @property
    def status(self) -> Status:
        return self.standing.status

    def after(self, k: int) -> "PairLife":
        """The pair as it was once iteration k was over."""
        kept = [event for event in self.events if event.k <= k], [skill for skill in self.skills if skill.k <= k]
        return PairLife(self.rubric, tuple(kept[0]), tuple(kept[1]))


class VerdictCount(NamedTuple):
    """Verdicts of a rubric in one iteration, apart for rollouts that saw its skill and those that did not."""

    rubric_id: str
    k: int
    shown: bool
    passes: int
    fails: int
    not_applicable: int
    absent: int

    @property
    def evaluations(self) -> int:
        return self.passes + self.fails


class VerdictRow(NamedTuple):
    """One verdict with the rollout it belongs to; `verdict` None has its reason."""

    rollout_id: str
    rubric_id: str
    k: int
    verdict: str | None
    reason: str
    shown: bool
    task_id: str
    success: bool | None


class SlotRow(NamedTuple):
    """A batch slot and why it holds this task; `mass` is the ledger's of the draw's cell."""

    k: int
    slot: int
    draw: Draw
    mass: Mass | None = None


class CellRow(NamedTuple):
    """S and F of a (task type, capability) at the end of iteration k."""

    k: int
    task_type: str
    capability: str
    passes: float
    fails: float


class CellDraws(NamedTuple):
    """How often the adaptive path drew a cell in a range of iterations."""

    task_type: str
    capability: str
    draws: int


class GroupRow(NamedTuple):
    """The G rollouts of one slot; incomplete while fewer than `size` have a reward."""

    k: int
    slot: int
    task_id: str
    size: int
    rewarded: int
    successes: int
    reward: float | None

    @property
    def outcome(self) -> str:
        if self.rewarded < self.size:
            return "incomplete"
        return {0: "all-fail", self.size: "all-pass"}.get(self.successes, "mixed")


class GroupSums(NamedTuple):
    """All groups of an iteration in sums; the four kinds of outcome add up to `groups`."""

    k: int
    groups: int
    rollouts: int
    rewarded: int
    successes: int
    all_fail: int
    mixed: int
    all_pass: int
    incomplete: int


class VerdictSums(NamedTuple):
    """All verdicts of an iteration, over rubrics and with or without skills."""

    k: int
    passes: int
    fails: int
    not_applicable: int
    absent: int

    @property
    def evaluations(self) -> int:
        return self.passes + self.fails

    @property
    def asked(self) -> int:
        return self.evaluations + self.not_applicable + self.absent


@dataclass(frozen=True)
class TaskRow:
    """A training task with what became of it so far."""

    id: str
    domain: str
    task_types: tuple[str, ...]
    instruction: str
    groups: int = 0
    rewarded: int = 0
    successes: int = 0
    last_k: int | None = None


class RolloutRow(NamedTuple):
    """A rollout as lists show it; advantages are None where its group taught nothing."""

    id: str
    k: int
    task_id: str
    reward: float | None
    success: bool | None
    stop: str
    fault: str
    turns: int
    generated_tokens: int
    advantage: float | None
    task_advantage: float | None
    rubric_advantage: float | None


class AttemptRow(NamedTuple):
    """One held-out attempt."""

    label: str
    task_id: str
    attempt: int
    k: int
    domain: str
    task_type: str
    success: bool | None
    reward: float | None
    stop: str
    fault: str
    skill_bytes: int
    verdicts: Mapping[str, str]


@dataclass(frozen=True)
class ProposalRow:
    """A proposal of the reflector: what was taken, or the reason why it was not."""

    k: int
    seq: int
    accepted: bool
    text: str
    reason: str
    details: Mapping[str, Any] = field(default_factory=dict)


class Session(NamedTuple):
    """A process that held the run, and how many iterations it found committed."""

    at: float
    owner: str
    version: str
    committed: int
