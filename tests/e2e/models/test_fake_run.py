"""`arise train configs/fake-judge.toml`: the whole algorithm with judge and reflector behind HTTP, small."""

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.e2e.runs import TINY, call

CONFIG = Path(__file__).parents[3] / "configs/fake-judge.toml"


@pytest.mark.slow
def test_a_run_with_the_judge_behind_http(tmp_path: Path) -> None:
    run = tmp_path / "run"
    changes = [part for change in (*TINY, "judge.latency=0.05") for part in ("--set", change)]
    done = call(tmp_path / "cache", "train", str(CONFIG), "--run-dir", str(run), *changes)
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in (run / "calls.jsonl").read_text("utf-8").splitlines()]
    kinds = Counter(event["event"] for event in events)
    assert set(kinds) <= {"judge.reply", "reflection.reply", "reflection.nothing"}, kinds
    assert kinds["judge.reply"] >= 16
    assert all(event["absent"] == 0 and event["problems"] == [] for event in events if event["event"] == "judge.reply")
    again = call(tmp_path / "cache", "resume", str(run))
    assert again.returncode == 0, again.stderr
    assert len((run / "calls.jsonl").read_text("utf-8").splitlines()) == len(events), "nothing is asked again"
