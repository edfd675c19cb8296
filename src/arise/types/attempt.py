"""One held-out attempt of an evaluation."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from arise.types.rollout import Rollout, StopReason, Verdict


@dataclass(frozen=True)
class Attempt:
    """Attempt m at a held-out task — `Attempt("before", "csv-007", 0, 0, "data", "csv", True, 1.0, ..., rollout=r)`.

    `success` and `reward` are None where infrastructure ended it, with the reason in `fault`. The rollout is whole but
    for its token rows. The order of the fields is that of the keys in evaluation files.
    """

    label: str
    task_id: str
    attempt: int
    iteration: int
    domain: str
    task_type: str
    success: bool | None
    reward: float | None
    stop: StopReason
    fault: str
    skill_bytes: int
    """Bytes of evolved skills in its prompt, which must be 0 in an evaluation."""
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    rollout: Rollout = field(kw_only=True)
    instruction: str = field(default="", kw_only=True)
    """What the task asked for: tasks that training never draws are not in the store."""
