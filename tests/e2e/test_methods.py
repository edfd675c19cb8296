"""Every method for two iterations from the same weights, and what evaluation, export and retention make of a run."""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from arise.testing import Ask, FakeLLM, Say, Status, in_order, in_thread
from tests.e2e.runs import call, settings

CONFIGS = Path(__file__).parents[2] / "configs" / "methods"
SHORT = ("train.iterations=2", "pool.update_every=1", "evidence.window=1", "storage.keep_every=1")
NEED_A_LIFECYCLE = ("frozen-rubrics", "ruscarl")
OTHERS = (
    *NEED_A_LIFECYCLE,
    "no-skill-injection",
    "no-adaptive-sampling",
    "vade-sampling",
    "outcome-only",
    "vade",
    "online-rubrics",
)
Train = Callable[..., Path]


@pytest.fixture(scope="module")
def train(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Train:
    """Trains a method once."""
    runs = tmp_path_factory.mktemp("runs")
    made: dict[str, Path] = {}

    def run_of(method: str) -> Path:
        if method not in made:
            changes: tuple[str, ...] = SHORT
            if method in NEED_A_LIFECYCLE:
                changes = (*SHORT, f"pool.lifecycle={lifecycle_of(run_of('arise'), cache)}")
            run = runs / method
            done = call(cache, "train", str(CONFIGS / f"{method}.toml"), "--run-dir", str(run), *settings(changes))
            assert done.returncode == 0, done.stderr
            made[method] = run
        return made[method]

    return run_of


def lifecycle_of(run: Path, cache: Path) -> Path:
    done = call(cache, "pool", "export", str(run))
    assert done.returncode == 0, done.stderr
    return run / "lifecycle.json"


def rows(run: Path, sql: str) -> list[tuple[Any, ...]]:
    with sqlite3.connect(run / "run.db") as db:
        return db.execute(sql).fetchall()


def before(run: Path) -> list[Any]:
    lines = (run / "evaluations" / "before.jsonl").read_text().splitlines()
    return [json.loads(line)["rollout"]["trajectory"]["turns"] for line in lines]


@pytest.mark.parametrize("method", OTHERS)
def test_a_method_trains_from_the_same_start_with_the_same_budget(train: Train, method: str) -> None:
    run, reference = train(method), train("arise")
    assert before(run) == before(reference), "same weights, same held-out tasks"
    budget = "SELECT k, COUNT(DISTINCT task_id), COUNT(*) FROM rollouts GROUP BY k"
    assert rows(run, budget) == rows(reference, budget) == [(0, 2, 8), (1, 2, 8)]
    judged = rows(run, "SELECT COUNT(*) FROM verdicts")[0][0]
    assert (judged == 0) == (method in ("outcome-only", "vade"))


def test_frozen_rubrics_and_ruscarl_start_with_every_pair_and_keep_them(train: Train) -> None:
    born = rows(train("arise"), "SELECT rubric_id FROM pairs ORDER BY 1")
    assert born
    for method in NEED_A_LIFECYCLE:
        assert rows(train(method), "SELECT rubric_id FROM events WHERE kind='imported' ORDER BY 1") == born
        assert rows(train(method), "SELECT COUNT(*) FROM events WHERE kind IN ('born', 'retire')") == [(0,)]


def test_ruscarl_shows_criteria_from_the_first_iteration_on(train: Train) -> None:
    assert rows(train("ruscarl"), "SELECT COUNT(*) FROM verdicts WHERE shown=1 AND k=0")[0][0] > 0


def test_what_does_not_fit_into_a_prompt_is_reported_and_recorded(cache: Path, train: Train, tmp_path: Path) -> None:
    run, born = tmp_path / "run", lifecycle_of(train("arise"), cache)
    changes = (*SHORT, f"pool.lifecycle={born}", "guidance.max_tokens=45")
    done = call(cache, "train", str(CONFIGS / "ruscarl.toml"), "--run-dir", str(run), *settings(changes))
    assert done.returncode == 0, done.stderr
    assert "left out of prompts that cannot hold all" in done.stdout
    assert rows(run, "SELECT json_extract(metrics, '$.skills_left_out') FROM iterations WHERE k=0")[0][0] > 0
    assert rows(train("ruscarl"), "SELECT json_extract(metrics, '$.skills_left_out') FROM iterations WHERE k=0") == [
        (None,)
    ]
    assert rows(run, "SELECT COUNT(*) FROM rollouts WHERE fault != ''") == [(0,)]


@pytest.mark.parametrize("method", NEED_A_LIFECYCLE)
def test_without_a_lifecycle_the_command_that_makes_it_is_named(
    cache: Path, train: Train, tmp_path: Path, method: str
) -> None:
    missing = f"pool.lifecycle={tmp_path / 'none.json'}"
    run = tmp_path / "run"
    config = str(CONFIGS / f"{method}.toml")
    done = call(cache, "train", config, "--run-dir", str(run), *settings([missing]))
    assert done.returncode == 2
    assert "arise pool export RUN" in done.stderr
    assert not (run / "config.toml").exists()


def test_the_lifecycle_counts_every_verdict_and_shows_every_status(cache: Path, train: Train) -> None:
    run = train("arise")
    content = json.loads(lifecycle_of(run, cache).read_text())
    assert (content["format"], content["version"], content["iterations"]) == ("arise-lifecycle", 1, 2)
    counted = sum(
        entry[outcome]
        for pair in content["pairs"]
        for entry in pair["verdicts"]
        for outcome in ("pass", "fail", "not_applicable", "absent")
    )
    assert [(counted,)] == rows(run, "SELECT COUNT(*) FROM verdicts")
    for pair in content["pairs"]:
        assert pair["history"][0]["event"] == "born"
        assert pair["history"][-1]["status"] == pair["status"]
        assert pair["skills"]


def evaluated(cache: Path, run: Path, *arguments: str) -> dict[str, Any]:
    done = call(cache, "eval", str(run), "--json", *arguments)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_checkpoints_and_the_base_model_are_evaluated_on_the_same_tasks(cache: Path, train: Train) -> None:
    run = train("arise")
    early = evaluated(cache, train("arise"), "--at", "1", "--attempts", "2", "--label", "early")
    assert (early["attempts"] + early["faults"], len(early["runs"])) == (4, 2)
    assert early["proof"] == "0 evolved-skill bytes in 4 prompts"
    base = evaluated(cache, train("arise"), "--base")
    assert base["label"] == "base"
    tried = "SELECT DISTINCT task_id FROM attempts WHERE label='{}' ORDER BY 1"
    assert rows(run, tried.format("base")) == rows(run, tried.format("early")) == rows(run, tried.format("after"))
    raw = [json.loads(line) for line in (run / "evaluations" / "early.jsonl").read_text().splitlines()]
    assert sum(bool(attempt["success"]) for attempt in raw) == early["successes"]


def test_a_checkpoint_that_was_not_kept_is_named_with_the_ones_that_were(cache: Path, train: Train) -> None:
    done = call(cache, "eval", str(train("arise")), "--at", "9")
    assert done.returncode == 5
    assert "kept are those of: 1, 2" in done.stderr
    assert "storage.keep_every" in done.stderr


def test_a_model_behind_an_endpoint_is_evaluated_and_its_absence_is_no_failure(cache: Path, train: Train) -> None:
    def look_then_submit(ask: Ask) -> Say:
        return Say("$ ls" if len(ask.body["messages"]) == 2 else "$ submit")

    with in_thread(FakeLLM(look_then_submit)) as fake:
        found = evaluated(cache, train("arise"), "--model", "some/model", "--base-url", fake.base_url)
        assert (found["label"], found["faults"], found["attempts"]) == ("some-model", 0, 2)
        assert len(fake.asks) == 5, "the first call, then two turns of each attempt"
        assert {ask.body["temperature"] for ask in fake.asks} == {0.6}
    with in_thread(FakeLLM(in_order([Say("ok"), Status(401)]))) as fake:
        lost = call(cache, "eval", str(train("arise")), "--model", "other", "--base-url", fake.base_url)
    assert lost.returncode == 9
    assert "'other' has no score: infrastructure ended all 2 attempts, most often by: policy: denied" in lost.stderr
    assert rows(train("arise"), "SELECT COUNT(*), SUM(success IS NULL) FROM attempts WHERE label='other'") == [(2, 2)]


def test_retired_behaviours_are_judged_again_on_their_own_tasks(cache: Path, train: Train, tmp_path: Path) -> None:
    run = tmp_path / "run"
    changes = (*SHORT, "train.iterations=4", "pool.retire_at=0.31")
    assert call(cache, "train", "--run-dir", str(run), *settings(changes)).returncode == 0
    done = call(cache, "retention", str(run), "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found
    for row in found:
        ((drawn,),) = rows(run, f"SELECT COUNT(DISTINCT task_id) FROM draws WHERE k={row['retired'] - 1}")  # noqa: S608
        assert row["tasks"] == drawn
        assert [int(k) for k in row["later"]] == list(range(row["retired"] + 1, (row["returned"] or 4) + 1))
    assert call(cache, "verify", str(run)).returncode == 0
