"""What an agent is measured and guided by: rubrics, skills, their pool, its evidence, and why a task was drawn."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from arise.types.rollout import Capability, DiagnosticItem, ShownSkill, Verdict


@dataclass(frozen=True)
class Rubric:
    """r_i — `Rubric("r003", "Read back what was written", "result_verification", Capability.VERIFICATION, ...)`."""

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


@dataclass(frozen=True)
class Skill:
    """s_i — guidance text; `active` says whether rollouts see it, `revision` counts its refinements."""

    text: str
    active: bool = False
    revision: int = 0


@dataclass(frozen=True)
class Pair:
    """(r_i, s_i) — one behavioural criterion with its guidance."""

    rubric: Rubric
    skill: Skill


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
        """The pair it would become, for whoever must not repeat it."""
        texts = (self.criteria_text, self.issue_tag, self.capability, self.applicability_condition, self.rule_text)
        return Pair(Rubric(rubric_id, *texts), Skill(self.skill_text))


@dataclass(frozen=True)
class Pool:
    """Eq. 3 — P_k, the active pairs; `born` counts every pair ever made, so that an id is never given twice.

    `retired` are the pairs that left it; nothing but the watch looks at them.
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
        """The pair of a rubric id; an id that is not in the pool is an error that lists the ones that are."""
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


class Tally(NamedTuple):
    """Passes among N_i applicable verdicts in a window — `Tally(3, 10)`."""

    passes: int = 0
    evaluations: int = 0


@dataclass(frozen=True)
class PoolEvent:
    """One line of a pair's life: born, or a fate other than keep, with the counts that decided it."""

    iteration: int
    rubric_id: str
    kind: str
    passes: int = 0
    evaluations: int = 0
    skill_revision: int = 0
    note: str = ""


class Cell(NamedTuple):
    """(d, c) — a task type and a capability: `Cell("unit-harmonization", Capability.VERIFICATION)`."""

    task_type: str
    capability: Capability


class Path(StrEnum):
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
    path: Path
    probability: float
    rho: float | None = None
    cell: Cell | None = None
    estimate: float | None = None
    weight: float | None = None
    quota_left: int | None = None
    attempts: int | None = None


@dataclass(frozen=True)
class Batch:
    """The tasks of an iteration — `Batch(4, draws, pool)`: its rollouts see the skills of this very pool."""

    iteration: int
    draws: tuple[Draw, ...]
    pool: Pool


class Outcome(NamedTuple):
    """Verifier context of a rollout; refinement may see it, generation never does."""

    success: bool
    reward: float


@dataclass(frozen=True)
class GenerationRecord:
    """A member of B_k as generation sees it: diagnostics and context, no outcome, no task id."""

    evidence_id: str
    iteration: int
    pool_version: int
    task_types: tuple[str, ...]
    domain: str
    uncovered_issues: tuple[DiagnosticItem, ...]
    positive_uncovered_strategies: tuple[DiagnosticItem, ...]
    shown_skills: tuple[ShownSkill, ...]
    provided_skills: tuple[str, ...]
    group_size: int
    attempts_with_diagnostics: int


@dataclass(frozen=True)
class Selection:
    """What one generation call sees of B_k, with the counts its prompt states — `Selection(chosen, 40, 30)`.

    `verdicts` by evidence id are for checking what comes back, never for a prompt.
    """

    chosen: tuple[GenerationRecord, ...]
    total: int
    with_diagnostics: int
    verdicts: Mapping[str, Mapping[str, Verdict]] = field(default_factory=dict)

    @property
    def omitted(self) -> int:
        return self.with_diagnostics - len(self.chosen)


@dataclass(frozen=True)
class EvidenceRecord:
    """A member of B_k with its audit part: verdicts and outcome beside what generation may see."""

    view: GenerationRecord
    task_id: str
    trajectory_id: str
    verdicts: tuple[tuple[str, Verdict], ...]
    outcome: Outcome | None

    @property
    def has_diagnostics(self) -> bool:
        return bool(self.view.uncovered_issues or self.view.positive_uncovered_strategies)


@dataclass(frozen=True)
class RefinementRecord:
    """One failed rollout for a skill's rewrite: its diagnostics plus the verifier's outcome context."""

    view: GenerationRecord
    outcome: Outcome | None


@dataclass(frozen=True)
class Rejection:
    """A proposal or rewrite that was not taken, with the reason — kept, so that nothing disappears unexplained."""

    text: str
    reason: str


@dataclass(frozen=True)
class Reflection:
    """G_ref(B_k, P_k) for one round: accepted proposals and what was dropped."""

    proposals: tuple[Proposal, ...] = ()
    rejections: tuple[Rejection, ...] = ()


@dataclass(frozen=True)
class Rewrite:
    """G_ref(B_k, r_i, s_i): the refined skill text, or None with the reason why the old one stays."""

    text: str | None
    reason: str = ""
