"""B_k: the window of rollout evidence, and which of it generation and refinement see (App. "Rollout Evidence").

What generation sees never includes a reward, a success or a task id: its type has no fields for them.
"""

from collections.abc import Iterable, Sequence
from hashlib import blake2b

from arise.method.feedback import excerpt, feedback, opened, skill_use
from arise.types import (
    EvidenceRecord,
    GenerationRecord,
    Group,
    RefinementRecord,
    Rollout,
    Selection,
    ShownSkill,
    SkillUse,
    Verdict,
    VerifierOutcome,
)


def records_of(iteration: int, groups: Sequence[Group]) -> list[EvidenceRecord]:
    """One record for every judged rollout of an iteration."""
    return [
        record
        for g, group in enumerate(groups)
        for j, rollout in enumerate(group.rollouts)
        if (record := _record(iteration, f"e{iteration:04d}-{g:02d}-{j:02d}", group, rollout)) is not None
    ]


def _record(iteration: int, evidence_id: str, group: Group, rollout: Rollout) -> EvidenceRecord | None:
    judgment, trajectory = rollout.judgment, rollout.trajectory
    if judgment is None:
        return None
    diagnostic = judgment.diagnostic
    use = skill_use(trajectory.shown_skills, judgment.verdicts)
    view = GenerationRecord(
        evidence_id=evidence_id,
        iteration=iteration,
        pool_version=judgment.pool_version,
        task_types=group.task.task_types,
        domain=group.task.domain,
        uncovered_issues=diagnostic.uncovered_issues if diagnostic else (),
        positive_uncovered_strategies=diagnostic.positive_uncovered_strategies if diagnostic else (),
        shown_skills=trajectory.shown_skills,
        provided_skills=group.task.provided_skills,
        group_size=group.size,
        attempts_with_diagnostics=sum(_diagnosed(other) for other in group.rollouts),
        skill_use=use,
        opened_skills=opened(trajectory, group.task.provided_skills),
        feedback=feedback(trajectory),
    )
    known = rollout.reward is not None and rollout.success is not None
    outcome = VerifierOutcome(bool(rollout.success), float(rollout.reward or 0.0)) if known else None
    verdicts = tuple(sorted({**judgment.verdicts, **judgment.watched}.items()))
    failing = excerpt(trajectory) if SkillUse.NOT_FOLLOWED in use else ()
    return EvidenceRecord(view, group.task.id, trajectory.id, verdicts, outcome, failing)


def _diagnosed(rollout: Rollout) -> bool:
    return bool(rollout.judgment and rollout.judgment.diagnostic and rollout.judgment.diagnostic.has_items)


def within_window(records: Iterable[EvidenceRecord], iteration: int, window: int = 10) -> list[EvidenceRecord]:
    """Return the records of the `window` iterations that end with `iteration`."""
    if window < 1:
        raise ValueError(f"window = {window} must be at least 1 iteration")
    return [record for record in records if iteration - window < record.view.iteration <= iteration]


def for_generation(
    records: Sequence[EvidenceRecord], *, seed: int, update: int, round_number: int, limit: int = 256
) -> Selection:
    """Eq. 4 — the B_k that G_ref sees: at most `limit` records with diagnostics, stable random, not stratified."""
    _require_limit(limit)
    eligible = [record for record in records if record.has_diagnostics]
    ordered = sorted(eligible, key=lambda record: _lot(seed, update, round_number, record.view.evidence_id))
    chosen = ordered[:limit]
    verdicts = {record.view.evidence_id: dict(record.verdicts) for record in chosen}
    return Selection(tuple(record.view for record in chosen), len(records), len(eligible), verdicts)


def for_refinement(
    records: Sequence[EvidenceRecord], skill: ShownSkill, *, seed: int, update: int, limit: int = 32
) -> tuple[RefinementRecord, ...]:
    """Return B_k of Eq. 8: rollouts that failed the rubric although this revision was shown.

    Failed tasks come first, and among equals those whose diagnostics say what else went wrong.
    """
    _require_limit(limit)
    failed = (skill.rubric_id, Verdict.FAIL)
    candidates = [record for record in records if skill in record.view.shown_skills and failed in record.verdicts]

    def order(record: EvidenceRecord) -> tuple[bool, bool, bytes]:
        task_failed = record.outcome is not None and not record.outcome.success
        lot = _lot(seed, update, skill.rubric_id, record.view.evidence_id)
        return not task_failed, not record.has_diagnostics, lot

    chosen = sorted(candidates, key=order)[:limit]
    return tuple(RefinementRecord(record.view, record.outcome, record.excerpt) for record in chosen)


def _require_limit(limit: int) -> None:
    if limit < 1:
        raise ValueError(f"limit = {limit} must be at least 1 record")


def _lot(*parts: object) -> bytes:
    """Return a stable random key: the same on every machine, independent of record order."""
    return blake2b("/".join(map(str, parts)).encode(), digest_size=16).digest()
