"""Claims are decided by their intervals and nothing else."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from arise.report.comparison.claims import FAILS, HOLDS, UNKNOWN, all_failure_differences, claims, decide
from arise.report.comparison.measures import Study, measure
from arise.report.comparison.statistics import Interval
from tests.synthetic_runs import Success, write_run


@pytest.mark.parametrize(
    ("low", "high", "want_above", "verdict"),
    [
        (0.1, 5.0, True, HOLDS),
        (0.1, 5.0, False, FAILS),
        (-5.0, -0.1, True, FAILS),
        (-5.0, -0.1, False, HOLDS),
        (-1.0, 1.0, True, UNKNOWN),
        (0.0, 1.0, True, UNKNOWN),
        (None, None, True, UNKNOWN),
    ],
)
def test_only_an_interval_on_one_side_decides(
    low: float | None, high: float | None, want_above: bool, verdict: str
) -> None:
    assert decide(Interval(0.0, low, high, 5), 0.0, want_above=want_above) == verdict


def from_iteration(first: int, noise: int = 0) -> Success:
    """Passes every task from this iteration on, except `noise` attempts of the last task."""
    return lambda task, attempt, k: k >= first and not (task == "held-3" and attempt < noise)


def a_study(tmp_path: Path, seeds: int = 3) -> Study:
    study: Study = {"arise": [], "outcome-only": [], "no-skill-injection": []}
    for seed in range(seeds):
        firsts = {"arise": 2, "outcome-only": 12, "no-skill-injection": 6}
        for method, first in firsts.items():
            folder = tmp_path / "runs" / method / f"seed-{seed}"
            write_run(
                folder,
                seed=seed,
                success=from_iteration(first, seed if method != "arise" else 0),
                iterations=12,
                tasks=4,
                events=[(2, "r1", "born"), (4, "r1", "retire")] if method == "arise" else [],
                all_fail=lambda k, method=method: method != "arise" and k % 2 == 0,  # type: ignore[misc]
                retention={"r1": {6: "1111", 12: "1110"}} if method == "arise" else None,
            )
            study[method].append(measure(folder, method))
    return study


def verdict_of(study: Study, words: str) -> str:
    return next(claim.verdict for claim in claims(study) if words in claim.text)


def test_claims_of_a_clear_study(tmp_path: Path) -> None:
    study = a_study(tmp_path)
    assert verdict_of(study, "rises above that of the start") == HOLDS
    assert verdict_of(study, "a third of the iterations") == HOLDS
    assert verdict_of(study, "a quarter of the iterations") == HOLDS
    assert verdict_of(study, "above that of Outcome-only RL") == UNKNOWN  # seeds lose 0, 1 and 2 of 12 attempts
    assert verdict_of(study, "Rubrics are replaced") == HOLDS
    assert verdict_of(study, "retired behaviours stay above 0.9") == FAILS  # (1.0 + 0.75) / 2 in every run
    assert verdict_of(study, "fewer all-failure groups than without skill injection, early") == HOLDS


def test_a_share_of_verdicts_stays_below_one(tmp_path: Path) -> None:
    runs = []
    for seed, verdicts in enumerate(("1111", "1110")):
        events = [(2, "r1", "born"), (4, "r1", "retire")]
        run = write_run(
            tmp_path / str(seed), seed=seed, success=from_iteration(2), events=events, retention={"r1": {6: verdicts}}
        )
        runs.append(measure(run, "arise"))
    (claim,) = [claim for claim in claims({"arise": runs}) if "retired behaviours" in claim.text]
    assert claim.numbers.startswith("0.88 (95 % 0.00 to 1.00) of verdicts")


def test_one_seed_decides_nothing(tmp_path: Path) -> None:
    assert {claim.verdict for claim in claims(a_study(tmp_path, seeds=1))} == {UNKNOWN}


def test_all_failure_rates_weigh_shared_tasks_equally(tmp_path: Path) -> None:
    always = from_iteration(0)
    ours = measure(write_run(tmp_path / "a", seed=0, success=always, iterations=6), "arise")
    failing = lambda k: k < 1  # noqa: E731
    theirs = measure(write_run(tmp_path / "b", seed=0, success=always, iterations=6, all_fail=failing), "other")
    assert all_failure_differences(ours, theirs) == [-50.0, 0.0, 0.0]


def test_a_study_without_arise_claims_nothing_about_it(tmp_path: Path) -> None:
    run = measure(write_run(tmp_path / "a", seed=0, success=from_iteration(0)), "vade")
    assert claims({"vade": [run]}) == []


def test_a_window_without_verdicts_has_no_rubric_reward(tmp_path: Path) -> None:
    """Missing is not fail: an empty pool is not a reward of 0."""
    run = measure(write_run(tmp_path / "a", seed=0, success=from_iteration(0), iterations=6, every=2), "arise")
    assert run.reward_windows() == {2: 1 / 16, 4: 5 / 16, 6: 9 / 16}
    unjudged = replace(run, verdicts={k: counts for k, counts in run.verdicts.items() if k >= 3})
    assert unjudged.reward_windows() == {4: 3 / 8, 6: 9 / 16}


def later(tmp_path: Path, *events: tuple[int, str, str], verdicts: dict[str, dict[int, str]]) -> list[tuple[int, int]]:
    run = write_run(
        tmp_path / "run", seed=0, success=from_iteration(0), iterations=12, events=events, retention=verdicts
    )
    return [tuple(tally) for tally in measure(run, "arise").later_tallies()]  # type: ignore[misc]


def test_a_behaviour_that_returned_says_nothing_about_retention_from_then_on(tmp_path: Path) -> None:
    verdicts = {"r1": {6: "1111", 8: "0011", 12: "1111"}}
    gone = (2, "r1", "born"), (4, "r1", "retire")
    assert later(tmp_path / "a", *gone, verdicts=verdicts) == [(4, 4), (2, 4), (4, 4)]
    assert later(tmp_path / "b", *gone, (8, "r1", "reopen"), verdicts=verdicts) == [(4, 4), (2, 4)]
    assert later(tmp_path / "c", *gone, (6, "r1-again", "born"), verdicts=verdicts) == [(4, 4)]


def test_a_second_retirement_has_its_own_tasks(tmp_path: Path) -> None:
    """The first retirement is judged on train-0, the second on train-1, though both are of one rubric."""
    lives = (2, "r1", "born"), (4, "r1", "retire"), (6, "r1", "reopen"), (8, "r1", "retire")
    run = write_run(
        tmp_path / "run",
        seed=0,
        success=from_iteration(0),
        iterations=12,
        events=lives,
        retention={"r1": {6: "1010", 10: "1110"}},
    )
    with closing(sqlite3.connect(run / "run.db")) as db, db:
        db.execute("UPDATE draws SET task_id = CASE WHEN k < 5 THEN 'train-0' ELSE 'train-1' END")
    first, second = measure(run, "arise").retention
    assert (first["tasks"], first["later"]) == (1, {6: [1.0, 2]})
    assert (second["tasks"], second["later"]) == (1, {10: [0.5, 2]})


def test_turnover_needs_a_retirement_in_every_run_and_counts_words(tmp_path: Path) -> None:
    lives = [(2, "r1", "born"), (4, "r1", "retire"), (6, "r1-again", "born"), (8, "r1-again", "retire")]
    runs = [
        measure(write_run(tmp_path / str(n), seed=n, success=from_iteration(0), iterations=12, events=events), "arise")
        for n, events in enumerate([lives, lives, lives[:1]])
    ]
    found = [next(c for c in claims({"arise": some}) if "are replaced" in c.text) for some in (runs[:2], runs)]
    assert [claim.verdict for claim in found] == [HOLDS, FAILS]
    assert "2.0 born a run, 1.0 of them in the words of one that had gone" in found[0].numbers
    assert "2.0 (95 % 2.0 to 2.0) retired, 1.0 different ones" in found[0].numbers
