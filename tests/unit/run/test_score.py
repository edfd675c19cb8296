"""Scores from recorded attempts: pooled, by domain, over runs, with faults beside them."""

import json
from collections.abc import Sequence

import pytest

from arise.run.facts.score import score, stored_evaluation
from arise.types import Tally
from tests.in_memory_run import InMemoryRun

Attempt = tuple[str, str, int, int | None, dict[str, str]]


def store_of(attempts: Sequence[Attempt]) -> InMemoryRun:
    """Return a run with one evaluation."""
    return InMemoryRun(
        attempts=[
            ("after", task, number, 4, domain, "", success, success, "finished", "", 0, json.dumps(verdicts))
            for domain, task, number, success, verdicts in attempts
        ]
    )


ATTEMPTS: list[Attempt] = [
    ("a", "x", 0, 1, {"r1": "pass", "r2": "not_applicable"}),
    ("a", "x", 1, 0, {"r1": "fail"}),
    ("a", "y", 0, 1, {}),
    ("a", "y", 1, None, {}),
    ("b", "z", 0, 0, {"r1": "pass"}),
    ("b", "z", 1, 0, {}),
]


def test_faults_are_reported_with_the_score_and_are_never_failures() -> None:
    found = score("after", store_of(ATTEMPTS))
    assert (found.successes, found.attempts, found.faults) == (2, 5, 1)
    assert found.rate == 40.0
    assert found.by_domain == {"a": Tally(2, 3), "b": Tally(0, 2)}
    assert found.behaviours == {"r1": Tally(2, 3)}
    assert "1 infrastructure faults left out" in found.line()


def test_spread_is_over_runs_from_unrounded_rates() -> None:
    found = score("after", store_of(ATTEMPTS))
    assert found.runs == (Tally(2, 3), Tally(0, 2))
    assert found.spread == pytest.approx((33.3333333, 47.1404521))
    assert "33.3 ± 47.1 over 2 runs" in found.line()


def test_the_published_spread() -> None:
    attempts: list[Attempt] = [
        ("d", f"t{n}", run, int(n < passes), {}) for run, passes in enumerate((37, 30, 36)) for n in range(87)
    ]
    found = score("after", store_of(attempts))
    assert found.spread is not None
    assert round(found.spread[1], 4) == 4.3517
    assert found.proof == "0 evolved-skill bytes in 261 prompts"


def test_one_run_has_no_spread_and_faults_alone_have_no_rate() -> None:
    assert score("after", store_of(ATTEMPTS[:1])).spread is None
    lost = score("after", store_of([("a", "x", 0, None, {})]))
    assert lost.rate is None
    assert lost.interval is None
    assert "infrastructure ended all 1 attempts" in lost.line()
    assert lost.facts()["rate"] is None
    assert "–" in lost.table()


def test_an_evaluation_is_stored_only_when_it_is_whole() -> None:
    run = store_of(ATTEMPTS)
    assert stored_evaluation("after", run, 6) == score("after", run)
    assert stored_evaluation("after", run, 7) is None
