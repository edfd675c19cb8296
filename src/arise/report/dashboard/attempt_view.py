"""What the page of an attempt shows, the same for a rollout of training and a held-out attempt."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from arise.evaluation.attempts import read_attempt
from arise.report.dashboard.charts import Link
from arise.report.dashboard.pages.page import Asked, NotFound
from arise.run.chunks import Mask, StoredRollout
from arise.run.numbering import k_of
from arise.run.pool_rows import VerdictRow
from arise.run.rows import AttemptRow, RolloutRow
from arise.types import Attempt, Rollout, Turn

EVALUATION = "eval/"
"""Names of held-out attempts begin with it: `eval/after/csv-007/0`."""


class StoredAttempt:
    """A held-out attempt with the interface of `StoredRollout`; evaluations keep no tokens."""

    masks: Sequence[Mask] = ()

    def __init__(self, attempt: Attempt) -> None:
        self._turns = attempt.rollout.trajectory.turns
        self.turn_count = len(self._turns)
        self.rollout: Rollout = replace(attempt.rollout, trajectory=replace(attempt.rollout.trajectory, turns=()))

    def turns(self, first: int = 0, count: int | None = None) -> list[Turn]:
        """Return `count` turns from turn `first` on, or all of them."""
        return list(self._turns[first : None if count is None else first + count])


@dataclass(frozen=True)
class AttemptView:
    """What the page of one attempt needs; `evaluation` is empty for a rollout of training."""

    row: RolloutRow
    stored: StoredRollout | StoredAttempt
    instruction: str
    verdicts: Sequence[VerdictRow]
    siblings: Sequence[RolloutRow]
    evaluation: str = ""


def open_rollout(asked: Asked, rollout_id: str) -> AttemptView:
    """Open a rollout by its name."""
    if rollout_id.startswith(EVALUATION):
        return _attempt(asked, rollout_id)
    row, stored = asked.run.rollout(rollout_id), asked.run.trajectory(rollout_id)
    if row is None or stored is None:
        raise NotFound(f"no rollout {rollout_id!r} in this run")
    task = asked.run.task(row.task_id)
    verdicts = asked.run.verdicts_of(rollout_id)
    return AttemptView(row, stored, task.instruction if task else "", verdicts, asked.run.siblings(row))


def attempt_link(asked: Asked, attempt: AttemptRow) -> Link:
    """Return a link to the page of a held-out attempt."""
    return Link(str(attempt.attempt + 1), asked.links.trajectory(_name(attempt)))


def _name(attempt: AttemptRow) -> str:
    return f"{EVALUATION}{attempt.label}/{attempt.task_id}/{attempt.attempt}"


def _attempt(asked: Asked, name: str) -> AttemptView:
    labels = [label for label in asked.run.evaluations() if name.startswith(f"{EVALUATION}{label}/")]
    rows = {_name(row): row for label in labels for row in asked.run.attempts(label)}
    row = rows.get(name)
    attempt = read_attempt(asked.run.folder, row.label, row.task_id, row.attempt) if row else None
    if row is None or attempt is None:
        raise NotFound(f"no held-out attempt {name!r} is on file in this run")
    siblings = [
        _as_rollout(other) for other in rows.values() if (other.label, other.task_id) == (row.label, row.task_id)
    ]
    reasons = attempt.rollout.judgment.reasons if attempt.rollout.judgment else {}
    verdicts = [
        VerdictRow(name, rubric, k_of(row.k), verdict, reasons.get(rubric, ""), False, row.task_id, row.success)
        for rubric, verdict in row.verdicts.items()
    ]
    turns = len(attempt.rollout.trajectory.turns)
    own = _as_rollout(row)._replace(turns=turns)
    return AttemptView(own, StoredAttempt(attempt), attempt.instruction, verdicts, siblings, row.label)


def _as_rollout(row: AttemptRow) -> RolloutRow:
    """Return an attempt as a row of rollouts; it has no advantage, because nothing is learned from it."""
    head = _name(row), k_of(row.k), row.task_id, row.reward, row.success, row.stop, row.fault
    return RolloutRow(*head, 0, 0, None, None, None)
