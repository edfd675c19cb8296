"""`arise train configs/fake-judge.toml`: the whole algorithm with judge and reflector behind HTTP, small."""

import json
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

from arise.config.file import differences, load_config
from tests.e2e.runs import call, digest, settings

CONFIG, EMBEDDED = (Path(__file__).parents[3] / "configs" / name for name in ("fake-judge.toml", "embedded.toml"))


def verdicts(run: Path) -> list[tuple[Any, ...]]:
    """Every verdict, and why one is missing; what the analyst saw is not part of a model's reply."""
    why = "CASE WHEN verdict IS NULL THEN reason END"
    with sqlite3.connect(run / "run.db") as db:
        return db.execute(f"SELECT rollout_id, rubric_id, verdict, {why} FROM verdicts ORDER BY 1, 2").fetchall()  # noqa: S608


def test_only_the_judge_differs_from_the_embedded_run() -> None:
    assert set(differences(load_config(CONFIG), load_config(EMBEDDED))) == {"judge"}


def test_the_run_behind_http_is_the_run_with_the_analyst(cache: Path, tmp_path: Path) -> None:
    offline, run = tmp_path / "offline", tmp_path / "run"
    longer = settings(["train.iterations=6"])
    directly = call(cache, "train", str(EMBEDDED), "--run-dir", str(offline), *longer)
    assert directly.returncode == 0, directly.stderr
    done = call(cache, "train", str(CONFIG), "--run-dir", str(run), *longer, "--set", "judge.latency=0.05")
    assert done.returncode == 0, done.stderr
    assert "100.0 % of" in done.stdout
    assert "0 quarantined; $0.00" in done.stdout
    assert verdicts(run) == verdicts(offline)
    assert len(verdicts(run)) > 50
    assert digest(run) == digest(offline), "pool, skills, sampler, evidence and weights"
    events = [json.loads(line) for line in (run / "calls.jsonl").read_text("utf-8").splitlines()]
    kinds = Counter(event["event"] for event in events)
    assert set(kinds) <= {"judge.reply", "reflection.reply", "reflection.nothing"}, kinds
    replies = [event for event in events if event["event"] == "judge.reply"]
    assert len(replies) == 48 + 4, "every rollout, and the held-out attempts before and after"
    assert all(event["absent"] == 0 and event["problems"] == [] for event in replies)
    again = call(cache, "resume", str(run))
    assert again.returncode == 0, again.stderr
    later = [json.loads(line) for line in (run / "calls.jsonl").read_text("utf-8").splitlines()][len(events) :]
    assert all(event["cached"] for event in later), "nothing is paid for again"
