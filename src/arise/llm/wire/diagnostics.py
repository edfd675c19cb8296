"""The diagnostics object of the initial analysis and of rubric evaluation; invalid items are dropped individually."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, ValidationError

from arise.llm.wire.envelope import answer_object
from arise.llm.wire.strict_json import Strict, Texts, Unreadable, problem_of, read_object
from arise.taxonomy import issue_tags
from arise.text.rules import item_problem
from arise.types import Diagnostic, DiagnosticItem, DiagnosticKind

MAX_ITEMS = 5
MAX_READ = 20

_LISTS = {
    "uncovered_issues": DiagnosticKind.FAILURE_GAP,
    "positive_uncovered_strategies": DiagnosticKind.POSITIVE_STRATEGY,
}


class _Item(Strict):
    kind: str
    issue_tag: str
    text: Annotated[str, Field(min_length=1, max_length=5000)]
    observable_signals: Annotated[Texts, Field(min_length=1, max_length=8)]
    related_rubric_ids: Texts


class _Body(Strict):
    covered_by_active_rubrics: bool
    rubric_gap_summary: Annotated[str, Field(max_length=1000)]
    uncovered_issues: list[Any]
    positive_uncovered_strategies: list[Any]


@dataclass(frozen=True)
class DiagnosticReply:
    """A diagnostic or the reason for its absence, and the dropped items."""

    diagnostic: Diagnostic | None
    absent: str = ""
    dropped: tuple[str, ...] = ()


def parse_diagnostics(text: str, known_ids: Collection[str] = ()) -> DiagnosticReply:
    """Parse a reply to the initial analysis: `{"diagnostics": {...}}` and nothing else."""
    value = read_object(answer_object(text))
    if isinstance(value, Unreadable):
        return DiagnosticReply(None, value.reason)
    if set(value) != {"diagnostics"}:
        return DiagnosticReply(None, "expected exactly the field 'diagnostics'")
    return diagnostic_of(value["diagnostics"], known_ids)


def diagnostic_of(value: object, known_ids: Collection[str]) -> DiagnosticReply:
    """Validate a diagnostics object; with no known rubric (bootstrap) nothing can be covered."""
    try:
        body = _Body.model_validate(value)
    except ValidationError as error:
        return DiagnosticReply(None, problem_of(error))
    dropped: list[str] = []
    items: dict[str, list[DiagnosticItem]] = {}
    for name, kind in _LISTS.items():
        items[name] = []
        listed = getattr(body, name)
        for position, raw in enumerate(listed[:MAX_READ]):
            item = _item(raw, kind, known_ids) if position < MAX_ITEMS else f"more than {MAX_ITEMS} items"
            if isinstance(item, str):
                dropped.append(f"{name}[{position}]: {item}")
            else:
                items[name].append(item)
        if len(listed) > MAX_READ:
            dropped.append(f"{name}: {len(listed) - MAX_READ:,} more items were not read")
    said_empty = not body.uncovered_issues and not body.positive_uncovered_strategies
    if body.covered_by_active_rubrics != (said_empty and bool(known_ids)):
        dropped.append("covered_by_active_rubrics: contradicts the lists, taken from the lists")
    issues, strategies = (tuple(found) for found in items.values())
    covered = said_empty and bool(known_ids)
    return DiagnosticReply(Diagnostic(covered, body.rubric_gap_summary, issues, strategies), "", tuple(dropped))


def _item(raw: object, kind: DiagnosticKind, known_ids: Collection[str]) -> DiagnosticItem | str:
    try:
        item = _Item.model_validate(raw)
    except ValidationError as error:
        return problem_of(error)
    if item.kind != kind:
        return f"kind is {item.kind[:40]!r}, expected {kind.value!r}"
    if item.issue_tag not in {tag.id for tag in issue_tags()}:
        return f"issue_tag {item.issue_tag[:40]!r} is not in the taxonomy"
    unknown = [rubric_id for rubric_id in item.related_rubric_ids if rubric_id not in known_ids]
    if unknown:
        return f"related_rubric_ids: {unknown[0][:40]!r} is not a rubric of this request"
    problem = item_problem(item.text)
    if problem:
        return problem
    return DiagnosticItem(
        kind, item.issue_tag, item.text, tuple(item.observable_signals), tuple(item.related_rubric_ids)
    )
