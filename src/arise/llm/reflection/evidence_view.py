"""Evidence records as the reflection model sees them: compressed diagnostics and context, within a context budget."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from arise.llm.prompts.prompt import to_json
from arise.types import DiagnosticItem, GenerationRecord, RefinementRecord, SkillUse

_CAPS = (5000, 2000, 800, 300, 150)
_R = TypeVar("_R")


def generation_view(record: GenerationRecord, cap: int) -> dict[str, Any]:
    """Render a record without outcome and task id; texts longer than `cap` are clipped."""
    feedback = record.feedback
    use = dict(zip(record.shown_skills, record.skill_use, strict=False))  # records of older runs lack `skill_use`
    return {
        "evidence_id": record.evidence_id,
        "step": record.iteration,
        "coevolution_pool_version": record.pool_version,
        "task": {"task_types": list(record.task_types), "domain": record.domain},
        "coevolution_rubric_diagnostics": {
            "uncovered_issues": [item_view(item, cap) for item in record.uncovered_issues],
            "positive_uncovered_strategies": [item_view(item, cap) for item in record.positive_uncovered_strategies],
        },
        "skill_usage_summary": {
            "injected": [
                {"skill_id": s.rubric_id, "revision": s.revision, "use": use.get(s, SkillUse.NOT_JUDGED).value}
                for s in record.shown_skills
            ],
            "provided": list(record.provided_skills),
            "opened": list(record.opened_skills),
        },
        "environment_feedback": {
            "stop_reason": feedback.stop.value if feedback.stop else None,
            "turns": feedback.turns,
            "failed_calls": feedback.failed_calls,
            "errors": list(feedback.errors),
        },
        "attempt_group_summary": {
            "group_size": record.group_size,
            "attempts_with_diagnostics": record.attempts_with_diagnostics,
        },
    }


def refinement_view(record: RefinementRecord, cap: int) -> dict[str, Any]:
    """Render a failed guided rollout: the verifier's outcome as context, and the turns that show the failure."""
    outcome = record.outcome
    context = {"verifier_success": outcome.success, "score": outcome.reward} if outcome else None
    shown = record.excerpt if cap > _CAPS[-1] else record.excerpt[-1:]
    turns = [{"turn": t.turn, "agent": t.action, "environment": t.observation, "error": t.error} for t in shown]
    failed = {"rubric_verdict": "fail", "outcome_context": context, "failing_turns": turns}
    return generation_view(record.view, cap) | failed


def fit(records: Sequence[_R], view: Callable[[_R, int], dict[str, Any]], budget: int) -> list[dict[str, Any]]:
    """Keep as many records as fit into `budget` characters, in order; clip texts first, then drop records."""
    for cap in _CAPS:
        views = [view(record, cap) for record in records]
        sizes = [len(to_json(shown)) + 2 for shown in views]
        if sum(sizes) <= budget:
            return views
    kept, used = [], 0
    for shown, size in zip(views, sizes, strict=True):
        used += size
        if used > budget:
            break
        kept.append(shown)
    return kept


def item_view(item: DiagnosticItem, cap: int = _CAPS[0]) -> dict[str, Any]:
    """Return a diagnostic item with exactly its five fields."""
    text = item.text if len(item.text) <= cap else f"{item.text[:cap]} [cut]"
    return {
        "kind": item.kind.value,
        "issue_tag": item.issue_tag,
        "text": text,
        "observable_signals": [signal[:cap] for signal in item.observable_signals],
        "related_rubric_ids": list(item.related_rubric_ids),
    }
