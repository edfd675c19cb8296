"""Evidence records as the reflection model sees them: compressed diagnostics and context, within a context budget."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from arise.models.prompt import to_json
from arise.types import DiagnosticItem, GenerationRecord, RefinementRecord

_CAPS = (5000, 2000, 800, 300)
_R = TypeVar("_R")


def generation_view(record: GenerationRecord, cap: int) -> dict[str, Any]:
    """A record without any outcome and without a task id; texts longer than `cap` are clipped."""
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
            "injected": [{"skill_id": skill.rubric_id, "revision": skill.revision} for skill in record.shown_skills],
            "provided": list(record.provided_skills),
        },
        "attempt_group_summary": {
            "group_size": record.group_size,
            "attempts_with_diagnostics": record.attempts_with_diagnostics,
        },
    }


def refinement_view(record: RefinementRecord, cap: int) -> dict[str, Any]:
    """A failed rollout under a skill, with the verifier's outcome as context."""
    outcome = record.outcome
    context = {"verifier_success": outcome.success, "score": outcome.reward} if outcome else None
    return generation_view(record.view, cap) | {"rubric_verdict": "fail", "outcome_context": context}


def fit(records: Sequence[_R], view: Callable[[_R, int], dict[str, Any]], budget: int) -> list[dict[str, Any]]:
    """As many records as fit into `budget` characters, in order; first texts are clipped, then records left out."""
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
    """A diagnostic item with exactly its five fields."""
    text = item.text if len(item.text) <= cap else f"{item.text[:cap]} [cut]"
    return {
        "kind": item.kind.value,
        "issue_tag": item.issue_tag,
        "text": text,
        "observable_signals": [signal[:cap] for signal in item.observable_signals],
        "related_rubric_ids": list(item.related_rubric_ids),
    }
