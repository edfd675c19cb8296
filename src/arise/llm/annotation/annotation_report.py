"""Report on an annotated corpus: coverage, frequencies, uncovered processes, agreement of two runs."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from arise.llm.annotation.annotator import Annotated


@dataclass(frozen=True)
class AnnotationReport:
    """A one-screen report on a tagged corpus; `agreement` compares two runs, `against_known` the previous tags."""

    tasks: int
    covered: int
    uncovered: int
    absent: int
    second_pass: int
    types_used: int
    tags_per_task: float
    largest_share: float
    types: tuple[tuple[str, int], ...]
    processes: tuple[tuple[str, int, str], ...]
    absent_reasons: tuple[tuple[str, int], ...]
    low_confidence: tuple[str, ...]
    agreement: "TagAgreement | None" = None
    against_known: "TagAgreement | None" = None


@dataclass(frozen=True)
class TagAgreement:
    """Agreement of two runs on the same tasks: how many have equal sets of types, and the mean overlap of the sets."""

    tasks: int
    equal: float
    overlap: float


def report_of(
    found: Annotated, agreement: TagAgreement | None = None, known: Mapping[str, Sequence[str]] | None = None
) -> AnnotationReport:
    """Count annotated tasks."""
    annotations = found.annotations.values()
    types = Counter(tag for annotation in annotations for tag in annotation.task_types)
    covered = sum(bool(annotation.task_types) for annotation in annotations)
    processes: dict[str, tuple[int, str]] = {}
    for annotation in annotations:
        if annotation.uncovered:
            name = annotation.uncovered.process_name
            count, _ = processes.get(name, (0, ""))
            processes[name] = (count + 1, annotation.uncovered.definition)
    ordered = sorted(processes.items(), key=lambda entry: (-entry[1][0], entry[0]))
    return AnnotationReport(
        tasks=len(found.annotations) + len(found.absent),
        covered=covered,
        uncovered=len(found.annotations) - covered,
        absent=len(found.absent),
        second_pass=len(found.second_pass),
        types_used=len(types),
        tags_per_task=types.total() / covered if covered else 0.0,
        largest_share=max(types.values()) / covered if covered else 0.0,
        types=tuple(types.most_common()),
        processes=tuple((name, count, definition) for name, (count, definition) in ordered),
        absent_reasons=tuple(Counter(found.absent.values()).most_common(5)),
        low_confidence=tuple(sorted(a.task_key for a in annotations if a.confidence == "low")),
        agreement=agreement,
        against_known=_agreement({key: set(tags) for key, tags in (known or {}).items()}, _sets(found)),
    )


def agreement_of(first: Annotated, second: Annotated) -> TagAgreement | None:
    """Measure the agreement of two runs on the tasks both annotated."""
    return _agreement(_sets(first), _sets(second))


def _sets(found: Annotated) -> dict[str, set[str]]:
    return {key: set(annotation.task_types) for key, annotation in found.annotations.items()}


def _agreement(first: Mapping[str, set[str]], second: Mapping[str, set[str]]) -> TagAgreement | None:
    shared = sorted(first.keys() & second.keys())
    if not shared:
        return None
    equal = sum(first[key] == second[key] for key in shared) / len(shared)
    overlaps = [len(first[k] & second[k]) / len(first[k] | second[k]) if first[k] | second[k] else 1.0 for k in shared]
    return TagAgreement(len(shared), equal, sum(overlaps) / len(shared))
