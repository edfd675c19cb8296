"""B_k: evidence recorded of a rollout, and the views of it for generation and refinement."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from arise.types.rollout import DiagnosticItem, ShownSkill, StopReason, Verdict


class VerifierOutcome(NamedTuple):
    """Verifier context of a rollout; refinement may see it, generation never does."""

    success: bool
    reward: float


class SkillUse(StrEnum):
    """Whether a rollout showed the behaviour that a skill in its prompt asks for."""

    FOLLOWED = "followed"
    NOT_FOLLOWED = "not_followed"
    NO_OCCASION = "no_occasion"
    NOT_JUDGED = "not_judged"


@dataclass(frozen=True)
class Feedback:
    """How the environment answered a rollout — `Feedback(StopReason.TURN_LIMIT, 12, 3, ("no such file",))`."""

    stop: StopReason | None = None
    turns: int = 0
    failed_calls: int = 0
    errors: tuple[str, ...] = ()
    """The last line of the first few different error messages, cut short."""


@dataclass(frozen=True)
class ExcerptTurn:
    """One turn of a failed rollout, cut short — `ExcerptTurn(7, "bash: make", "no rule", error=True)`."""

    turn: int
    action: str
    observation: str
    error: bool


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
    skill_use: tuple[SkillUse, ...] = ()
    """One for each of `shown_skills`."""
    opened_skills: tuple[str, ...] = ()
    """The members of `provided_skills` that a call of the agent names."""
    feedback: Feedback = Feedback()


@dataclass(frozen=True)
class Selection:
    """What one generation call sees of B_k, with the counts its prompt states — `Selection(chosen, 40, 30)`.

    `verdicts` by evidence id validate the reply; they never enter a prompt.
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
    """A member of B_k with its audit part: verdicts and outcome, in addition to what generation may see."""

    view: GenerationRecord
    task_id: str
    trajectory_id: str
    verdicts: tuple[tuple[str, Verdict], ...]
    outcome: VerifierOutcome | None
    excerpt: tuple[ExcerptTurn, ...] = ()
    """The turns that show how it failed, if a skill was shown and its rubric still failed."""

    @property
    def has_diagnostics(self) -> bool:
        return bool(self.view.uncovered_issues or self.view.positive_uncovered_strategies)


@dataclass(frozen=True)
class RefinementRecord:
    """One failed rollout for a skill's rewrite: its diagnostics, the verifier's outcome context, its failing turns."""

    view: GenerationRecord
    outcome: VerifierOutcome | None
    excerpt: tuple[ExcerptTurn, ...] = ()
