"""Split a corpus for training and evaluation, and count it by domain."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from arise.types import TaskSpec


@dataclass(frozen=True)
class Split:
    """Two disjoint parts of a corpus, both in corpus order."""

    train: tuple[TaskSpec, ...]
    held_out: tuple[TaskSpec, ...]


def split(
    tasks: Sequence[TaskSpec], share: float, seed: int = 0, domains: Iterable[str] = (), types: Iterable[str] = ()
) -> Split:
    """Hold out whole domains and task types, and `share` of every (domain, first type) of the rest.

    The choice depends on ids and seed only.
    """
    by_domain, by_type = set(domains), set(types)
    held = {task.task.id for task in tasks if task.task.domain in by_domain or by_type & set(task.task.task_types)}
    strata = defaultdict(list)
    for task in tasks:
        if task.task.id not in held:
            strata[task.task.domain, task.task.task_types[:1]].append(task.task.id)
    for ids in strata.values():
        ordered = sorted(ids, key=lambda name: hashlib.sha256(f"{seed}\0{name}".encode()).digest())
        held |= set(ordered[: round(share * len(ordered))])
    return Split(
        tuple(task for task in tasks if task.task.id not in held), tuple(task for task in tasks if task.task.id in held)
    )


def by_domain(tasks: Iterable[TaskSpec]) -> list[tuple[str, int, float]]:
    """Return domain, number of tasks and percentage, largest first, as in the paper's table of its training corpus."""
    counts = Counter(task.task.domain or "(none)" for task in tasks)
    total = sum(counts.values())
    return [(name, count, 100.0 * count / total) for name, count in sorted(counts.items(), key=lambda e: (-e[1], e[0]))]
