"""`arise eval --suite`: official score, faults listed separately, a Harbor job folder, and continuing after a stop."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from arise.cli.app import app
from arise.evaluation.suite import score_trials
from arise.testing import FakeLLM, always, in_thread
from tests.stored_runs import write_run
from tests.task_folders import write_task


@pytest.fixture
def endpoint() -> Iterator[str]:
    """A model on loopback that always writes the answer of one of the two tasks."""
    with in_thread(FakeLLM(always("$ echo 42 > answer.txt"))) as fake:
        yield fake.base_url


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """One task that 42 solves and one that it does not, of two domains."""
    write_task(tmp_path / "suite" / "right")
    other = write_task(tmp_path / "suite" / "wrong")
    (other / "tests/expected.txt").write_text("43\n")
    (other / "task.toml").write_text((other / "task.toml").read_text().replace('"data"', '"maths"'))
    return tmp_path / "suite"


def test_a_suite_is_scored_recorded_and_continued(
    tmp_path: Path, suite: Path, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_run(tmp_path / "run", 2)
    monkeypatch.setenv("FAKE_KEY", "k")
    words = ["eval", str(tmp_path / "run"), "--model", "m", "--base-url", endpoint, "--api-key-env", "FAKE_KEY"]
    words += ["--suite", str(suite), "--label", "first"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "50.0 % of 6 attempts" in done.stdout
    assert "data     100.0  (3/3)" in done.stdout
    assert "maths      0.0  (0/3)" in done.stdout
    assert "Run 1 50.0  Run 2 50.0  Run 3 50.0  Mean 50.0 ± 0.0" in done.stdout
    assert "infrastructure faults: 0" in done.stdout
    job = tmp_path / "run" / "jobs" / "first"
    trials = sorted(path.name for path in job.iterdir() if path.is_dir())
    assert trials == [f"{name}__{at:07d}" for name in ("right", "wrong") for at in range(3)]
    result = json.loads((job / "right__0000000" / "result.json").read_text())
    assert result["verifier_result"] == {"rewards": {"reward": 1.0}}
    assert json.loads((job / "right__0000000/agent/trajectory.json").read_text())["schema_version"] == "ATIF-v1.8"
    kept = (job / "wrong__0000001" / "result.json").read_bytes()
    (job / "right__0000002" / "result.json").unlink()
    again = CliRunner().invoke(app, words)
    first, second = (re.sub(r"answers in \S+ s", "", output.stdout) for output in (done, again))
    assert second == first
    assert (job / "wrong__0000001" / "result.json").read_bytes() == kept
    assert (job / "right__0000002" / "result.json").exists()


def test_a_known_suite_that_is_not_here_is_refused_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_run(tmp_path / "run", 2)
    monkeypatch.setenv("ARISE_CACHE", str(tmp_path / "cache"))
    done = CliRunner().invoke(app, ["eval", str(tmp_path / "run"), "--base", "--suite", "skillsbench"])
    assert done.exit_code == 3
    assert "SkillsBench v1.1" in done.stderr
    assert "clone the benchmark" in done.stderr


def test_an_attempt_that_infrastructure_ended_counts_as_failed_and_is_reported_with_the_score() -> None:
    def trial(attempt: int, success: bool | None) -> dict[str, object]:
        fault = None if success is not None else {"exception_type": "InfrastructureFault"}
        return {"arise": {"attempt": attempt, "domain": "d", "success": success}, "exception_info": fault}

    score = score_trials("s", [trial(0, True), trial(1, None), trial(2, True), trial(0, False)])
    assert (score.overall, score.faults) == ((2, 4), {"infrastructure": 1})
    assert "50.0 % of 4 attempts" in score.table()
    assert "infrastructure faults: 1, counted as failed above (66.7 % of the other 3 without them)" in score.table()


def test_the_table_names_the_most_frequent_reasons_of_faults() -> None:
    def trial(reason: str) -> dict[str, object]:
        about = {"attempt": 0, "domain": "d", "success": None, "fault": reason}
        return {"arise": about, "exception_info": {"exception_type": "InfrastructureFault"}}

    score = score_trials("s", [trial(reason) for reason in ("no disk", "no image", "no image", "no key", "no port")])
    lines = score.table().splitlines()
    assert lines[-4:-1] == ["  2 x no image", "  1 x no disk", "  1 x no key"]
    assert lines[-1].startswith("  and 1 more;")
    assert score.facts()["faults"] == 5
