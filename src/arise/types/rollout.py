"""Tasks, turns, tokens, verdicts and groups (paper Sec. 3.1 and App. "Rollout Evidence")."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray


class Capability(StrEnum):
    """c — one of the five behavioural capabilities of Table 3, e.g. `Capability.VERIFICATION`."""

    UNDERSTANDING = "Understanding"
    EXECUTION = "Execution"
    VERIFICATION = "Verification"
    DEBUGGING = "Debugging"
    EFFICIENCY = "Efficiency"


class StopReason(StrEnum):
    """Why a trajectory ended, e.g. `StopReason.FINISHED`; all but FAULT are caused by the agent."""

    FINISHED = "finished"
    TURN_LIMIT = "turn_limit"
    TOKEN_LIMIT = "token_limit"
    CONTEXT_LIMIT = "context_limit"
    TIME_LIMIT = "time_limit"
    FAULT = "fault"


class Verdict(StrEnum):
    """y_ij, or NOT_APPLICABLE; a missing verdict is absent, never FAIL."""

    PASS = "pass"
    FAIL = "fail"
    NOT_APPLICABLE = "not_applicable"


@dataclass(frozen=True)
class Task:
    """x — a task, for the method: `Task("csv-007", "Clean data.csv ...", ("data-cleaning-and-normalization",))`."""

    id: str
    instruction: str
    task_types: tuple[str, ...] = ()
    domain: str = ""
    directory: str = ""
    provided_skills: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Tokens:
    """(z_u, m_u, log pi_beh_u) — the token record of one row, as four arrays of equal length.

    For example ids [5, 9], generated [False, True], logprob [0, -0.1], version [-1, 4]: the policy of version 4 sampled
    the second token.
    """

    ids_U: NDArray[np.int64]
    generated_U: NDArray[np.bool_]
    logprob_U: NDArray[np.float64]
    version_U: NDArray[np.int64]

    def __post_init__(self) -> None:
        shapes = {a.shape for a in (self.ids_U, self.generated_U, self.logprob_U, self.version_U)}
        if len(shapes) != 1 or self.ids_U.ndim != 1:
            raise ValueError(
                f"Tokens: ids_U, generated_U, logprob_U and version_U must be 1-d of one length, got {shapes}"
            )

    def __len__(self) -> int:
        return len(self.ids_U)


@dataclass(frozen=True)
class ToolCall:
    """One tool invocation inside an action — `ToolCall("read", {"path": "spec.md"})`."""

    name: str
    arguments: Mapping[str, object]
    id: str = ""


@dataclass(frozen=True)
class Observation:
    """o_t — what one call returned: `Observation("3 lines", error=False)`."""

    text: str
    error: bool = False
    truncated: bool = False
    call_id: str = ""


@dataclass(frozen=True)
class CommandResult:
    """Result of a sandboxed command — `CommandResult("ok", exit_code=0)`; `ended` says why it ended."""

    output: str
    exit_code: int
    ended: str = "exit"
    """`exit` (by itself), or the cap that was reached: `timeout`, `memory`, `processes`, `output`, or `time`, which
    is that of all commands of an attempt together."""
    truncated: bool = False


@dataclass(frozen=True)
class Turn:
    """(a_t, o_t) — the agent's text and calls, then one observation per call."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    observations: tuple[Observation, ...] = ()
    reasoning: str = ""


@dataclass(frozen=True)
class ShownSkill:
    """An evolved skill in the system prompt of a rollout — `ShownSkill("r003", revision=1)`."""

    rubric_id: str
    revision: int


@dataclass(frozen=True, eq=False)
class Trajectory:
    """tau_j — all turns of one attempt; `rows` are its token records (several when a harness rewrites its history)."""

    id: str
    task_id: str
    turns: tuple[Turn, ...]
    stop: StopReason
    system_prompt: str = ""
    rows: tuple[Tokens, ...] = ()
    shown_skills: tuple[ShownSkill, ...] = ()
    left_out: tuple[ShownSkill, ...] = ()
    """Skills that it should have seen and that did not fit into the prompt."""

    @property
    def generated_tokens(self) -> int:
        """l_j — model-generated tokens over all rows, prompts and observations excluded."""
        return sum(int(row.generated_U.sum()) for row in self.rows)


class DiagnosticKind(StrEnum):
    """Which list a diagnostic item belongs to."""

    FAILURE_GAP = "failure_gap"
    POSITIVE_STRATEGY = "positive_strategy"


@dataclass(frozen=True)
class DiagnosticItem:
    """One observed behaviour that no rubric covers yet: 'When <condition>, the agent failed to <behaviour>, ...'."""

    kind: DiagnosticKind
    issue_tag: str
    text: str
    observable_signals: tuple[str, ...]
    related_rubric_ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class Diagnostic:
    """Behaviour in one trajectory that no rubric covers; both lists empty means full coverage."""

    covered_by_active_rubrics: bool
    rubric_gap_summary: str = ""
    uncovered_issues: tuple[DiagnosticItem, ...] = ()
    positive_uncovered_strategies: tuple[DiagnosticItem, ...] = ()

    @property
    def has_items(self) -> bool:
        return bool(self.uncovered_issues or self.positive_uncovered_strategies)


@dataclass(frozen=True)
class Judgment:
    """y_.j — verdicts by rubric id, `absent` gives the reason for each missing verdict."""

    pool_version: int
    judge: str
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    absent: Mapping[str, str] = field(default_factory=dict)
    diagnostic: Diagnostic | None = None
    diagnostic_absent: str = ""
    watched: Mapping[str, Verdict] = field(default_factory=dict)
    """Verdicts of retired rubrics, for the watch: no advantage, no evidence mass and no coverage comes from them."""
    notes: tuple[str, ...] = ()
    """Remarks for the reader: what was cut from the judged trace, which lines or items of a reply were dropped."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Why a rubric passed or failed, with the turn that shows it; empty if the judge gives no reasons."""


@dataclass(frozen=True, eq=False)
class Rollout:
    """One attempt with its reward R_task and judgment; `fault` names an infrastructure failure: no reward then.

    If the reward is 0 for another reason than the verifier's own, `reason` and `verifier_output` say why.
    """

    trajectory: Trajectory
    reward: float | None
    success: bool | None = None
    judgment: Judgment | None = None
    fault: str = ""
    reason: str = ""
    verifier_output: str = ""


@dataclass(frozen=True, eq=False)
class Group:
    """The `size` = G rollouts of one task in one batch; `.complete` only when every one of them has a reward."""

    task: Task
    rollouts: tuple[Rollout, ...]
    size: int

    @property
    def complete(self) -> bool:
        return len(self.rollouts) == self.size and all(r.reward is not None for r in self.rollouts)
