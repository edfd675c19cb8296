"""Task-type annotations: one judgment per task; invalid ones are dropped individually."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from arise.llm.wire.envelope import answer_object
from arise.llm.wire.strict_json import Strict, Texts, Unreadable, problem_of, read_object


class _Uncovered(Strict):
    process_name: Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=100)]
    definition: Annotated[str, Field(min_length=1, max_length=1000)]
    observable_outcome: Annotated[str, Field(min_length=1, max_length=1000)]
    nearest_tag_ids: Texts
    distinction: Annotated[str, Field(max_length=1000)]


class _Judgment(Strict):
    task_key: str
    matched_tag_ids: Texts
    match_rationale: Annotated[str, Field(max_length=2000)]
    uncovered: _Uncovered | None
    confidence: Literal["high", "medium", "low"]


@dataclass(frozen=True)
class Uncovered:
    """The process a task demands when no type of the registry does."""

    process_name: str
    definition: str
    observable_outcome: str
    nearest: tuple[str, ...]
    distinction: str


@dataclass(frozen=True)
class Annotation:
    """The task types of one task, or the process it demands instead."""

    task_key: str
    task_types: tuple[str, ...]
    confidence: str
    rationale: str = ""
    uncovered: Uncovered | None = None


@dataclass(frozen=True)
class AnnotationReply:
    """Annotations by task key and a reason for each that is absent."""

    annotations: dict[str, Annotation]
    absent: dict[str, str]


def parse_annotations(text: str, task_keys: Sequence[str], tag_ids: Collection[str]) -> AnnotationReply:
    """Parse a reply to task-type annotation; a task named twice, unknown or against a rule has no annotation."""
    value = read_object(answer_object(text))
    if isinstance(value, Unreadable):
        return AnnotationReply({}, dict.fromkeys(task_keys, value.reason))
    judgments = value.get("judgments")
    if set(value) != {"judgments"} or not isinstance(judgments, list):
        return AnnotationReply({}, dict.fromkeys(task_keys, "expected exactly a list 'judgments'"))
    counts = Counter(_key(raw) for raw in judgments)
    annotations: dict[str, Annotation] = {}
    absent: dict[str, str] = {}
    for raw in judgments:
        key = _key(raw)
        if key not in task_keys:
            continue
        found = _annotation(raw, tag_ids) if counts[key] == 1 else f"{counts[key]} judgments of this task"
        if isinstance(found, str):
            absent[key] = found
        else:
            annotations[key] = found
    for key in task_keys:
        if key not in annotations:
            absent.setdefault(key, "no judgment of this task")
    return AnnotationReply(annotations, absent)


def _key(raw: Any) -> str:
    return str(raw.get("task_key")) if isinstance(raw, dict) else ""


def _annotation(raw: object, tag_ids: Collection[str]) -> Annotation | str:
    try:
        judgment = _Judgment.model_validate(raw)
    except ValidationError as error:
        return problem_of(error)
    tags, uncovered = judgment.matched_tag_ids, judgment.uncovered
    unknown = [tag for tag in [*tags, *(uncovered.nearest_tag_ids if uncovered else ())] if tag not in tag_ids]
    if unknown:
        return f"{unknown[0][:60]!r} is not in the registry"
    if len(set(tags)) != len(tags):
        return "matched_tag_ids repeats an id"
    if bool(tags) == (uncovered is not None):
        return "uncovered must be null with a match and given without one"
    process = None
    if uncovered is not None:
        process = Uncovered(
            uncovered.process_name,
            uncovered.definition,
            uncovered.observable_outcome,
            tuple(uncovered.nearest_tag_ids),
            uncovered.distinction,
        )
    return Annotation(judgment.task_key, tuple(tags), judgment.confidence, judgment.match_rationale, process)
