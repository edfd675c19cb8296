"""Small values of the domain for tests: tasks, pools, judged groups and evidence records."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from arise.types import (
    Attempt,
    Capability,
    Diagnostic,
    DiagnosticItem,
    DiagnosticKind,
    EvidenceRecord,
    Group,
    Judgment,
    Pair,
    Pool,
    Proposal,
    Rollout,
    Rubric,
    ShownSkill,
    Skill,
    StopReason,
    Task,
    Trajectory,
    Verdict,
)

Floats = NDArray[np.float64]
NAN = float("nan")
PASS, FAIL, NA = Verdict.PASS, Verdict.FAIL, Verdict.NOT_APPLICABLE
BY_LETTER: Mapping[str, Verdict | None] = {"1": PASS, "0": FAIL, "n": NA, "-": None}


def close(actual: ArrayLike, expected: ArrayLike, tolerance: float = 1e-12) -> None:
    """Every number agrees to `tolerance`, absolute or relative."""
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol=tolerance, atol=tolerance)


def a_task(task_id: str = "x1", *task_types: str) -> Task:
    """A task with the given tags."""
    return Task(task_id, "do it", task_types, "data", provided_skills=("csv",))


def a_pair(
    rubric_id: str, capability: Capability = Capability.VERIFICATION, *, active: bool = False, revision: int = 0
) -> Pair:
    """A pair whose texts name its rubric."""
    rubric = Rubric(rubric_id, f"criterion {rubric_id}", "result_verification", capability, "always", "fail if not")
    return Pair(rubric, Skill(f"skill {rubric_id}", active, revision))


def a_pool(capability_of: Mapping[str, Capability], version: int = 1) -> Pool:
    """A pool of hidden pairs, one for each id."""
    return Pool(tuple(a_pair(i, capability) for i, capability in capability_of.items()), version, len(capability_of))


def a_proposal(name: str = "new", capability: Capability = Capability.DEBUGGING) -> Proposal:
    """A candidate pair."""
    return Proposal(
        f"criterion {name}", "error_diagnosis", capability, "always", "fail", f"skill {name}", ("e1",), ("e2",)
    )


def a_rollout(
    number: int,
    verdicts: Mapping[str, Verdict] | None = None,
    *,
    reward: float | None = 0.0,
    success: bool | None = None,
    diagnostic: Diagnostic | None = None,
    shown: Sequence[ShownSkill] = (),
) -> Rollout:
    """One attempt; `verdicts=None` leaves it without a judgment."""
    trajectory = Trajectory(f"tau{number}", "x1", (), StopReason.FINISHED, shown_skills=tuple(shown))
    judgment = None if verdicts is None else Judgment(1, "test", verdicts, diagnostic=diagnostic)
    return Rollout(trajectory, reward, success if success is not None or reward is None else reward > 0, judgment)


def an_attempt(
    task_id: str = "x1",
    number: int = 0,
    *,
    success: bool | None = True,
    verdicts: Mapping[str, Verdict] | None = None,
    left_out: Sequence[ShownSkill] = (),
    fault: str = "",
) -> Attempt:
    """One attempt of an evaluation called `m`."""
    reward = None if success is None else float(success)
    trajectory = Trajectory(f"eval/m/{task_id}/{number}", task_id, (), StopReason.FINISHED, left_out=tuple(left_out))
    rollout = Rollout(trajectory, reward, success, fault=fault)
    where = "m", task_id, number, 0, "data", "csv"
    return Attempt(*where, success, reward, StopReason.FINISHED, fault, 0, verdicts or {}, rollout=rollout)


def a_group(task: Task, letters_of: Mapping[str, str], rewards: Sequence[float | None] | None = None) -> Group:
    """A judged group from one string a rubric, a letter a rollout: 1 pass, 0 fail, n not applicable, - no verdict."""
    size = len(next(iter(letters_of.values()))) if letters_of else len(rewards or ())
    rollouts = []
    for j in range(size):
        given = {i: BY_LETTER[letters[j]] for i, letters in letters_of.items()}
        verdicts = {i: verdict for i, verdict in given.items() if verdict is not None}
        rollouts.append(a_rollout(j, verdicts, reward=rewards[j] if rewards else 0.0))
    return Group(task, tuple(rollouts), size)


def a_diagnostic(issues: int = 1, strategies: int = 0) -> Diagnostic:
    """A diagnostic with so many items in its two lists."""
    gap = DiagnosticItem(DiagnosticKind.FAILURE_GAP, "error_diagnosis", "When ..., the agent failed to ...", ("log",))
    good = DiagnosticItem(DiagnosticKind.POSITIVE_STRATEGY, "error_diagnosis", "When ..., it did ...", ("log",))
    return Diagnostic(not (issues or strategies), "gap", (gap,) * issues, (good,) * strategies)


def the_record(records: Sequence[EvidenceRecord], evidence_id: str) -> EvidenceRecord:
    """The record with this id."""
    return next(record for record in records if record.view.evidence_id == evidence_id)
