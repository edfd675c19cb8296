"""y_ij without a language model: detectors over the recorded trace, applicability first (App. "Rollout Evidence").

Reward, success and the system prompt are never read. A rubric that no detector can execute is absent, never FAIL.
"""

from collections.abc import Mapping, Sequence
from hashlib import blake2b

from arise.analyst.catalogue import pattern_of_rubric, wordings
from arise.analyst.detectors import Finding, find_all
from arise.analyst.trace import read_trace
from arise.types import (
    Diagnostic,
    DiagnosticItem,
    DiagnosticKind,
    Judgment,
    Pool,
    Rollout,
    Rubric,
    Task,
    Verdict,
)

VERSION = 1
ITEMS_AT_MOST = 5
_OPPOSITE = {Verdict.PASS: Verdict.FAIL, Verdict.FAIL: Verdict.PASS}


class OfflineJudge:
    """Judge any trace with tool calls; `flip_rate` and `miss_rate` inject reproducible errors."""

    def __init__(self, *, seed: int = 0, flip_rate: float = 0.0, miss_rate: float = 0.0) -> None:
        for name, rate in (("flip_rate", flip_rate), ("miss_rate", miss_rate)):
            if not 0.0 <= rate <= 1.0:
                raise ValueError(f"{name} = {rate} must lie between 0 and 1")
        self._seed, self._flip_rate, self._miss_rate = seed, flip_rate, miss_rate

    @property
    def identity(self) -> str:
        return (
            f"offline-analyst/{VERSION} flip_rate={self._flip_rate:g} miss_rate={self._miss_rate:g} seed={self._seed}"
        )

    async def judge(self, task: Task, rollout: Rollout, pool: Pool) -> Judgment:
        """Return verdicts for every rubric of the pool and uncovered findings; an internal error is an absence."""
        try:
            found = find_all(read_trace(task, rollout.trajectory))
        except Exception as fault:  # error boundary of the judge: an unreadable trace costs verdicts, not the run
            reason = f"analyst fault: {type(fault).__name__}: {fault}"
            absent = {rubric.id: reason for rubric in pool.rubrics}
            return Judgment(pool.version, self.identity, absent=absent, diagnostic_absent=reason)
        verdicts: dict[str, Verdict] = {}
        absent, reasons = dict[str, str](), dict[str, str]()
        for rubric in pool.rubrics:
            verdict, reason = self._verdict(rubric, found, rollout.trajectory.id)
            if verdict is None:
                absent[rubric.id] = reason
            else:
                verdicts[rubric.id] = verdict
                reasons |= {rubric.id: reason} if reason else {}
        diagnostic = diagnose(found, pool.rubrics)
        return Judgment(pool.version, self.identity, verdicts, absent, diagnostic, reasons=reasons)

    def _verdict(self, rubric: Rubric, found: Mapping[str, Finding], trajectory_id: str) -> tuple[Verdict | None, str]:
        """Return a verdict with what shows it, or None with the reason why there is no verdict."""
        pattern_id = pattern_of_rubric(rubric)
        if pattern_id is None:
            return None, "no detector for this rubric"
        if self._chance("miss", trajectory_id, rubric.id) < self._miss_rate:
            return None, f"missed on purpose (miss_rate={self._miss_rate:g})"
        finding = found.get(pattern_id)
        if finding is None:
            return Verdict.NOT_APPLICABLE, ""
        verdict = Verdict.PASS if finding.passed else Verdict.FAIL
        if self._chance("flip", trajectory_id, rubric.id) < self._flip_rate:
            return _OPPOSITE[verdict], f"reversed on purpose (flip_rate={self._flip_rate:g}): {finding.detail}"
        return verdict, finding.detail

    def _chance(self, kind: str, trajectory_id: str, rubric_id: str) -> float:
        """Return a number in [0, 1) that depends only on these names, so that repeated judging errs identically."""
        key = f"{self._seed}\0{kind}\0{trajectory_id}\0{rubric_id}".encode("utf-8", "surrogatepass")
        return int.from_bytes(blake2b(key, digest_size=8).digest(), "big") / 2**64


def diagnose(found: Mapping[str, Finding], rubrics: Sequence[Rubric]) -> Diagnostic:
    """Return the findings beyond the rubrics; without rubrics this is the paper's initial analysis."""
    covered = {pattern_of_rubric(rubric) for rubric in rubrics}
    items: dict[bool, list[DiagnosticItem]] = {True: [], False: []}
    for pattern_id, finding in found.items():
        if pattern_id not in covered and len(items[finding.passed]) < ITEMS_AT_MOST:
            items[finding.passed].append(_item(pattern_id, finding, rubrics))
    issues, strategies = tuple(items[False]), tuple(items[True])
    nothing = not issues and not strategies
    return Diagnostic(nothing and bool(rubrics), _summary(issues, strategies), issues, strategies)


def _item(pattern_id: str, finding: Finding, rubrics: Sequence[Rubric]) -> DiagnosticItem:
    w = wordings()[pattern_id]
    signal = w.seen if finding.passed else w.misses[finding.miss].signal
    modal = "should" if finding.passed else "failed to"
    return DiagnosticItem(
        DiagnosticKind.POSITIVE_STRATEGY if finding.passed else DiagnosticKind.FAILURE_GAP,
        w.pattern.issue_tag,
        f"When {w.condition}, the agent {modal} {w.behaviour}, observable via {signal}: {finding.detail}.",
        (signal, finding.detail),
        tuple(rubric.id for rubric in rubrics if rubric.issue_tag == w.pattern.issue_tag),
    )


def _summary(issues: Sequence[DiagnosticItem], strategies: Sequence[DiagnosticItem]) -> str:
    if not issues and not strategies:
        return ""
    return f"no rubric evaluates {len(issues)} observed gaps and {len(strategies)} observed strategies"
