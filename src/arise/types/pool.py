"""Rubrics, skills, their pool and its events, and why a task was drawn."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from arise.types.rollout import Capability


@dataclass(frozen=True)
class Rubric:
    """r_i — one observable behaviour: when it applies, and what passes.

    ```python
    Rubric("r003", "The agent reads back ...", "result_verification", Capability.VERIFICATION, "This applies when ...",
           "Pass if ...; fail if ...")
    ```
    """

    id: str
    criteria_text: str
    issue_tag: str
    capability: Capability
    applicability_condition: str
    rule_text: str
    born: int = 0
    issue_refs: tuple[str, ...] = ()
    contrast_refs: tuple[str, ...] = ()
    version: int = 1


class Need(NamedTuple):
    """When an update last found a skill's rubric failing, with the counts at that time — `Need(20, 3, 40)`."""

    iteration: int
    passes: int
    evaluations: int


@dataclass(frozen=True)
class Skill:
    """s_i — guidance text; `active` says whether rollouts see it, `revision` counts its refinements.

    `earlier` holds the texts of earlier revisions, oldest first.
    """

    text: str
    active: bool = False
    revision: int = 0
    need: Need | None = None
    earlier: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pair:
    """(r_i, s_i) — one behavioural criterion with its guidance.

    `retired` is the iteration after which it left the pool, None while it is in it.
    """

    rubric: Rubric
    skill: Skill
    retired: int | None = None


@dataclass(frozen=True)
class Proposal:
    """A candidate pair as the reflector wrote it, before it has an id."""

    criteria_text: str
    issue_tag: str
    capability: Capability
    applicability_condition: str
    rule_text: str
    skill_text: str
    issue_refs: tuple[str, ...]
    contrast_refs: tuple[str, ...]

    def as_pair(self, rubric_id: str = "proposed") -> Pair:
        """Return the pair it would become, for the list of pairs not to repeat."""
        texts = (self.criteria_text, self.issue_tag, self.capability, self.applicability_condition, self.rule_text)
        return Pair(Rubric(rubric_id, *texts), Skill(self.skill_text))


@dataclass(frozen=True)
class Pool:
    """Eq. 3 — P_k, the active pairs; `born` counts every pair ever created, so ids are never reused.

    `retired` holds the pairs that left the pool, in order. Generation may not recreate them: a pair returns under its
    own id, on evidence that its behaviour fell.
    """

    pairs: tuple[Pair, ...] = ()
    version: int = 0
    born: int = 0
    retired: tuple[Pair, ...] = ()

    def __len__(self) -> int:
        return len(self.pairs)

    @property
    def rubrics(self) -> tuple[Rubric, ...]:
        return tuple(pair.rubric for pair in self.pairs)

    def find(self, rubric_id: str) -> Pair:
        """Return the pair of a rubric id; an id that is not in the pool is an error that lists the ones that are."""
        for pair in self.pairs:
            if pair.rubric.id == rubric_id:
                return pair
        known = ", ".join(rubric.id for rubric in self.rubrics) or "none, the pool is empty"
        raise ValueError(f"rubric {rubric_id!r} is not in pool version {self.version} (active: {known})")


class Fate(StrEnum):
    """What a scheduled update does with a pair."""

    RETIRE = "retire"
    ACTIVATE = "activate"
    REFINE = "refine"
    HIDE = "hide"
    KEEP = "keep"


class PairStatus(StrEnum):
    """Status of a pair: in the pool with its skill hidden or shown, or retired."""

    HIDDEN = "hidden"
    SHOWN = "shown"
    RETIRED = "retired"


class Tally(NamedTuple):
    """Passes among N_i applicable verdicts in a window — `Tally(3, 10)`."""

    passes: int = 0
    evaluations: int = 0

    def plus(self, other: "Tally") -> "Tally":
        """Return the sum of both counts."""
        return Tally(self.passes + other.passes, self.evaluations + other.evaluations)


@dataclass(frozen=True)
class PoolEvent:
    """One event of a pair: born, reopened, or a fate other than keep, with the counts of its window.

    Counts cover all verdicts, and separately the unguided ones (the pair's skill was not in the prompt).
    """

    iteration: int
    rubric_id: str
    kind: str
    passes: int = 0
    evaluations: int = 0
    skill_revision: int = 0
    note: str = ""
    unguided_passes: int = 0
    unguided_evaluations: int = 0


class Cell(NamedTuple):
    """(d, c) — a task type and a capability: `Cell("unit-harmonization", Capability.VERIFICATION)`."""

    task_type: str
    capability: Capability


class DrawPath(StrEnum):
    """How a batch slot was filled."""

    DISCOVERY = "discovery"
    ADAPTIVE = "adaptive"
    FALLBACK = "fallback"
    UNIFORM = "uniform"
    VADE = "vade"


@dataclass(frozen=True)
class Draw:
    """One batch slot and why: path, selection probability, and for adaptive slots the cell, p~, w and quota left."""

    task_id: str
    path: DrawPath
    probability: float
    rho: float | None = None
    cell: Cell | None = None
    estimate: float | None = None
    weight: float | None = None
    quota_left: int | None = None
    attempts: int | None = None


@dataclass(frozen=True)
class Batch:
    """The tasks of an iteration — `Batch(4, draws, pool)`: its rollouts see the skills of this pool."""

    iteration: int
    draws: tuple[Draw, ...]
    pool: Pool
    unguided: tuple[Tally, ...] = ()
    """For each draw, the recent successes without skills at tasks of its types."""


@dataclass(frozen=True)
class Rejection:
    """A rejected proposal or rewrite with its reason; kept for the record."""

    text: str
    reason: str


@dataclass(frozen=True)
class Return:
    """A proposal that repeats a retired pair: the pair may be reopened, but no new pair is created."""

    rubric_id: str
    proposal: Proposal


@dataclass(frozen=True)
class Reflection:
    """G_ref(B_k, P_k) for one round: accepted proposals, what was dropped, and which repeat a retired pair.

    `refused` counts rejected proposals; without refusals, proposals or returns, generation has nothing left to propose.
    """

    proposals: tuple[Proposal, ...] = ()
    rejections: tuple[Rejection, ...] = ()
    refused: int = 0
    returns: tuple[Return, ...] = ()


@dataclass(frozen=True)
class Rewrite:
    """G_ref(B_k, r_i, s_i): the refined skill text, or None with the reason why the old one stays.

    `rejections` holds the texts that were refused before.
    """

    text: str | None
    reason: str = ""
    rejections: tuple[Rejection, ...] = ()
