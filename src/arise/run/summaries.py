"""Sums of an iteration, written with its commit, so that pages need not count rollouts."""

import json
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from arise.method.ledger import CAPABILITIES, Ledger
from arise.run.facts.verdicts import kinds_by_rubric
from arise.types import Group

Row = tuple[Any, ...]


def summary_rows(k: int, groups: Sequence[Group], state: Mapping[str, Any]) -> Iterator[tuple[str, Row]]:
    """Yield (table, row) for every sum of iteration k."""
    yield from (("tasks", _task_row(group)) for group in groups)
    yield from (("groups", _group_row(k, slot, group)) for slot, group in enumerate(groups))
    yield from (("verdict_counts", row) for row in _verdict_counts(k, groups))
    if ledger := _saved_ledger(state):
        yield from (("cells", row) for row in _cells(k, ledger))


def printable(text: str) -> str:
    """Escape lone surrogates, which SQLite refuses; the exact text is in the chunk or in the state."""
    return text.encode("utf-8", "backslashreplace").decode()


def _task_row(group: Group) -> Row:
    task = group.task
    return task.id, printable(task.domain), json.dumps(task.task_types), printable(task.instruction)


def _group_row(k: int, slot: int, group: Group) -> Row:
    rewards = [rollout.reward for rollout in group.rollouts if rollout.reward is not None]
    successes = sum(bool(rollout.success) for rollout in group.rollouts)
    return k, slot, group.task.id, group.size, len(rewards), successes, fmean(rewards) if rewards else None


def _verdict_counts(k: int, groups: Sequence[Group]) -> Iterator[Row]:
    for (rubric_id, was_shown), kinds in kinds_by_rubric(groups).items():
        yield rubric_id, k, int(was_shown), *kinds


def weakest_cell(state: Mapping[str, Any]) -> tuple[str, str, float, float] | None:
    """Return the (task type, capability) with the lowest expected pass rate, and its success and failure mass."""
    ledger = _saved_ledger(state)
    cells = [row[1:] for row in _cells(0, ledger)] if ledger else []
    return min(cells, key=lambda cell: (1 + cell[2]) / (2 + cell[2] + cell[3]), default=None)


def _saved_ledger(state: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the ledger in a sampler's state; a custom sampler may store any value under that name."""
    saved = state.get("sampler", {}).get("ledger")
    return saved if isinstance(saved, Mapping) and {"format", "rubrics", "tallies"} <= saved.keys() else None


def _cells(k: int, saved: Mapping[str, Any]) -> Iterator[Row]:
    """Yield S and F of every (task type, capability) with evidence, decayed to the newest policy version."""
    ledger = Ledger.from_dict(saved)
    newest = max((version for *_, version in saved["tallies"]), default=0)
    passes_DC, fails_DC = ledger.cells(newest)
    for task_type, passes_C, fails_C in zip(ledger.task_types, passes_DC, fails_DC, strict=True):
        for capability, passes, fails in zip(CAPABILITIES, passes_C, fails_C, strict=True):
            if passes + fails > 0.0:
                yield k, printable(task_type), capability.value, float(passes), float(fails)
