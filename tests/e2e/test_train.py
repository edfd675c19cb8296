"""The whole loop through the command line: a short run, interrupted ones, and what a person sees when it goes wrong."""

import json
import random
import sqlite3
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from filelock import FileLock

from arise.sandbox import missing_limits
from arise.sandbox.cgroup import find_cgroups
from tests.e2e.commands import KILLED
from tests.e2e.runs import call, digest, settings, start


def test_a_run_shows_every_iteration_and_sums_itself_up(finished: tuple[Path, str]) -> None:
    _, shown = finished
    for number in range(1, 5):
        assert f"{number}/4  pass" in shown
    assert "held-out pass rate, no skills shown" in shown
    assert "0 evolved-skill bytes in 2 prompts" in shown
    assert "rubrics:" in shown
    assert "next: arise view" in shown


def test_everything_a_page_needs_is_in_the_run_folder(finished: tuple[Path, str]) -> None:
    run, _ = finished
    with sqlite3.connect(run / "run.db") as db:
        counts = {
            table: db.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0]  # noqa: S608
            for table in (
                "iterations",
                "draws",
                "rollouts",
                "verdicts",
                "evidence",
                "pairs",
                "skills",
                "events",
                "attempts",
            )
        }
        left = db.execute("SELECT COUNT(*) FROM inflight").fetchone()[0]
    assert counts["iterations"] == 4
    assert counts["draws"] == 8
    assert counts["rollouts"] == counts["evidence"] == 32
    assert counts["attempts"] == 4
    assert counts["pairs"] >= 1
    assert counts["skills"] >= counts["pairs"]
    assert left == 2, "groups that a fall-back to the checkpoint before would need"
    assert len(list((run / "checkpoints").iterdir())) == 2
    assert len(list((run / "trajectories").iterdir())) == 4


def test_the_record_says_which_limits_were_enforced(finished: tuple[Path, str]) -> None:
    run, shown = finished
    missing = missing_limits(find_cgroups())
    with sqlite3.connect(run / "run.db") as db:
        assert db.execute("SELECT value FROM meta WHERE key='limits.1'").fetchone() == ("; ".join(missing),)
    assert shown.count("limit not enforced by the kernel") == len(missing)


def test_the_same_seed_gives_the_same_run(finished: tuple[Path, str], cache: Path, tmp_path: Path) -> None:
    run, _ = finished
    assert call(cache, "train", "--run-dir", str(tmp_path / "again"), *settings()).returncode == 0
    assert digest(tmp_path / "again") == digest(run)


def killed_runs(cache: Path, folder: Path, kills: int) -> Iterator[Path]:
    """Kill runs at random moments and resume each until it finishes; yield the finished runs."""
    moments, hits = random.Random(kills), 0
    for number in count():
        run = folder / str(number)
        code = KILLED
        while code == KILLED:
            command = ["resume", str(run)] if (run / "config.toml").exists() else ["train", "--run-dir", str(run)]
            process = start(cache, *command, *([] if command[0] == "resume" else settings()))
            done = process.kill_after(moments.uniform(0.2, 3.0)) if hits < kills else process.wait()
            code = done.returncode
            hits += code == KILLED
        assert code == 0, done.stderr
        yield run
        if hits == kills:
            return


@pytest.mark.parametrize("kills", [3, pytest.param(200, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])])
def test_kills_at_random_moments_change_nothing(
    finished: tuple[Path, str], cache: Path, tmp_path: Path, kills: int
) -> None:
    """F17 with whole runs: only kills that hit a running process count."""
    whole, _ = finished
    for run in killed_runs(cache, tmp_path, kills):
        assert digest(run) == digest(whole)
        assert call(cache, "verify", str(run)).returncode == 0


AHEAD = ("train.max_staleness=1", "agent.max_tokens=24")


def kill_after(cache: Path, line: str, *arguments: str) -> None:
    """Kill the command a moment after it printed a line, when the rollouts of coming iterations are under way."""
    process = start(cache, *arguments)
    process.wait_for_line(line)
    process.kill_after(0.2)


def test_kills_change_nothing_where_rollouts_run_ahead_of_the_update(cache: Path, tmp_path: Path) -> None:
    assert call(cache, "train", "--run-dir", str(tmp_path / "whole"), *settings(AHEAD)).returncode == 0
    killed = tmp_path / "killed"
    kill_after(cache, "   1/4", "train", "--run-dir", str(killed), *settings(AHEAD))
    kill_after(cache, "   3/4", "resume", str(killed))
    assert call(cache, "resume", str(killed)).returncode == 0
    assert digest(killed) == digest(tmp_path / "whole")
    with sqlite3.connect(killed / "run.db") as db:
        ages = db.execute("SELECT json_extract(metrics, '$.staleness') FROM iterations ORDER BY k").fetchall()
    assert ages == [(0.0,), (1.0,), (1.0,), (1.0,)]
    assert call(cache, "verify", str(killed)).returncode == 0


def test_ctrl_c_leaves_a_run_that_resumes(finished: tuple[Path, str], cache: Path, tmp_path: Path) -> None:
    run, _ = finished
    stopped = tmp_path / "stopped"
    process = start(cache, "train", "--run-dir", str(stopped), *settings())
    process.wait_for_line("   1/4")
    process.interrupt()
    done = process.wait(60)
    assert done.returncode == 130
    assert f"arise resume {stopped}" in done.stderr
    assert "Traceback" not in done.stderr
    assert call(cache, "resume", str(stopped)).returncode == 0
    assert digest(stopped) == digest(run)


def test_evaluation_of_a_checkpoint_shows_no_skill(copied: Path, cache: Path) -> None:
    done = call(cache, "eval", str(copied), "--label", "later")
    assert done.returncode == 0, done.stderr
    assert "later:" in done.stdout
    assert "0 evolved-skill bytes in 2 prompts" in done.stdout


def test_guidance_is_measured_skill_by_skill_and_never_counts_as_an_evaluation(copied: Path, cache: Path) -> None:
    run = copied
    done = call(cache, "guidance", str(run), "--base", "--attempts", "2", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    names = [row["rubric"] for row in found["behaviours"]]
    assert names == [row["rubric"] for row in json.loads(call(cache, "pool", "ls", str(run), "--json").stdout)]
    assert found["passed_without"]["evaluations"] + found["faults"] == 2 * 2
    for name in ("none", *names, "all"):
        attempts = (run / "evaluations" / "guidance" / "base" / f"{name}.jsonl").read_text().splitlines()
        leaked = [json.loads(line)["skill_bytes"] for line in attempts]
        assert all(leaked) if name != "none" else not any(leaked), "the proof line counts what is really shown"
        shown = [
            [skill["rubric_id"] for skill in json.loads(attempt)["rollout"]["trajectory"]["shown_skills"]]
            for attempt in attempts
        ]
        assert shown == [{"none": [], "all": names}.get(name, [name])] * (2 * 2)
    assert call(cache, "verify", str(run)).returncode == 0, "no evaluation has seen a skill"


def test_a_second_process_on_the_same_run_is_turned_away(copied: Path, cache: Path) -> None:
    with FileLock(copied / "run.lock"):
        done = call(cache, "resume", str(copied))
    assert done.returncode == 6
    assert "is in use by host" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["train", "--set", "train.iteratons=3"], 2, "did you mean train.iterations?"),
        (["train", "no-such-file.toml"], 2, "cannot read the file"),
        (["resume", "no-such-run"], 5, "holds no run"),
        (
            [
                "train",
                "--set",
                "tasks.kind=harbor",
                "--set",
                "tasks.train=nowhere",
                "--set",
                "tasks.evaluation=nowhere",
            ],
            3,
            "nowhere",
        ),
    ],
)
def test_what_is_wrong_is_one_message_with_a_fixed_exit_code(
    cache: Path, tmp_path: Path, arguments: list[str], code: int, message: str
) -> None:
    where = ["--run-dir", str(tmp_path / "run")] if arguments[0] == "train" else []
    done = call(cache, *arguments, *where)
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
