"""F1, F5, F32 and the alarm through `arise train` and `arise resume`: short runs, the provider scripted by the test."""

import json
import sqlite3
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from arise.analyst import OfflineJudge, OfflineReflector
from arise.compose.judges import analyst_rubrics
from arise.llm.first_call.first_call import FIRST_CALL
from arise.method.advantage import normalized
from arise.testing import Action, Ask, Expert, FakeLLM, Say, Status, honest, in_thread
from arise.types import Verdict
from tests.e2e.runs import TINY, call, digest, start

SMALL = (
    *TINY,
    "judge.kind=model",
    "judge.calls.transport_attempts=2",
    "judge.calls.breaker_after=3",
    "judge.calls.breaker_cooldown=0.2",
    "judge.calls.when_down=task_only",
)


SOUND = honest(lambda _rule, _ask: Verdict.PASS)

pytestmark = pytest.mark.timeout(600)


class Provider:
    """The analyst behind HTTP, by the name the test gives it, dead or alive as the test says."""

    def __init__(self) -> None:
        self.expert = Expert(OfflineJudge(), OfflineReflector(), analyst_rubrics())
        self.dead, self.name = False, "judge-1"
        self.judged, self.swap_after = 0, 10**9

    async def __call__(self, ask: Ask) -> Action:
        if self.dead:
            return Status(503)
        said = await self.expert(ask)
        assert isinstance(said, Say)
        self.judged += FIRST_CALL not in ask.data
        name = "judge-1-0202" if self.judged > self.swap_after else self.name
        return replace(said, model=name, completion_tokens=0 if FIRST_CALL in ask.data else 100)


def train_command(fake: FakeLLM, run: Path, *changes: str) -> list[str]:
    endpoint = (f"judge.endpoint.base_url={fake.base_url}", "judge.endpoint.model=judge-1")
    settings = [part for change in (*SMALL, *endpoint, *changes) for part in ("--set", change)]
    return ["train", "--run-dir", str(run), *settings]


def rows(run: Path, sql: str) -> list[tuple[Any, ...]]:
    with sqlite3.connect(run / "run.db") as db:
        return db.execute(sql).fetchall()


@pytest.mark.parametrize(
    ("last_before", "last_dead", "iterations"), [(3, 5, 6), pytest.param(3, 8, 10, marks=pytest.mark.slow)]
)
def test_f1_a_judge_dead_for_two_or_five_iterations(
    cache: Path, tmp_path: Path, last_before: int, last_dead: int, iterations: int
) -> None:
    provider, run = Provider(), tmp_path / "run"
    dead = range(last_before, last_dead)
    with in_thread(FakeLLM(provider)) as fake:
        process = start(cache, *train_command(fake, run, f"train.iterations={iterations}"))
        process.wait_for_line(f"{last_before:4d}/{iterations}")
        provider.dead = True
        process.wait_for_line(f"{last_dead:4d}/{iterations}")
        provider.dead = False
        done = process.wait()
    assert done.returncode == 0, done.stderr
    shown = done.stdout.splitlines()
    assert any(line.startswith("judge.degraded: ") for line in shown)
    assert any(line.startswith("judge.recovered: ") for line in shown)
    judged = dict(rows(run, "SELECT k, COUNT(*) FROM verdicts WHERE verdict IS NOT NULL GROUP BY k"))
    assert {k for k in range(2, iterations) if not judged.get(k)} == set(dead), (
        "no verdict is made up, none lost around it"
    )
    for k in dead:
        for (task,) in rows(run, f"SELECT DISTINCT task_id FROM rollouts WHERE k={k}"):  # noqa: S608
            group = rows(run, f"SELECT reward, advantage FROM rollouts WHERE k={k} AND task_id='{task}'")  # noqa: S608
            reward_J, advantage_J = np.array(group, dtype=float).T
            np.testing.assert_allclose(advantage_J, normalized(reward_J), rtol=0, atol=1e-12)


def test_f5_a_judge_that_changes_stops_the_run_until_it_is_allowed_by_name(cache: Path, tmp_path: Path) -> None:
    provider, run = Provider(), tmp_path / "run"
    provider.swap_after = 20
    with in_thread(FakeLLM(provider)) as fake:
        one_after_another = "judge.calls.concurrency=1"  # else the first answer to arrive may be the other judge's
        stopped = call(cache, *train_command(fake, run, one_after_another))
        assert stopped.returncode == 7, stopped.stdout + stopped.stderr
        assert "was 'judge-1' and is now 'judge-1-0202'" in stopped.stderr
        assert "arise resume RUN --allow-judge-change judge-1-0202" in stopped.stderr
        assert "Traceback" not in stopped.stderr
        other = call(cache, "resume", str(run), "--allow-judge-change", "somebody-else")
        assert other.returncode == 7
        allowed = call(cache, "resume", str(run), "--allow-judge-change", "judge-1-0202")
        assert allowed.returncode == 0, allowed.stderr
    stored = tomllib.loads((run / "config.toml").read_text("utf-8"))
    assert stored["judge"]["allow_change"] == ["somebody-else", "judge-1-0202"]
    events = [json.loads(line)["event"] for line in (run / "calls.jsonl").read_text("utf-8").splitlines()]
    assert "judge.changed" in events


def test_f32_a_budget_stops_cleanly_and_more_money_gives_the_same_run(cache: Path, tmp_path: Path) -> None:
    money = ("budget.max_usd=5.0", 'budget.prices={"judge-1"={input=0.0,output=100.0}}')  # one cent a call
    whole, run = tmp_path / "whole", tmp_path / "run"
    with in_thread(FakeLLM(Provider())) as fake:
        done = call(cache, *train_command(fake, whole, *money))
        assert done.returncode == 0, done.stderr
        calls = len(fake.asks)
        paid = sum(FIRST_CALL not in ask.data for ask in fake.asks)  # those before the run cost nothing here
        assert f"${paid / 100:.2f} of $5.00" in done.stdout
        assert "forecast $" in done.stdout
        stopped = call(cache, *train_command(fake, run, *money, "budget.max_usd=0.10", "judge.calls.concurrency=4"))
        assert stopped.returncode == 4, stopped.stdout + stopped.stderr
        assert "of $0.10 are spent" in stopped.stderr
        assert "Traceback" not in stopped.stderr
        rich = call(cache, "resume", str(run), "--add-budget", "4.9")
        assert rich.returncode == 0, rich.stderr
        assert len(fake.asks) == 2 * calls, "no call is paid twice"
    with sqlite3.connect(run / "calls.db") as db:
        assert db.execute("SELECT COUNT(*), SUM(nano_usd) FROM spend").fetchone() == (calls, paid * 10_000_000)
    assert f"${paid / 100:.2f} of $5.00" in rich.stdout
    assert digest(run) == digest(whole)


def test_allowances_that_do_not_apply_are_refused(cache: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "config.toml").write_text("", "utf-8")
    for option, value in (("--add-budget", "1"), ("--allow-judge-change", "m")):
        done = call(cache, "resume", str(run), option, value)
        assert done.returncode == 2
        assert f"error[config]  {option}: " in done.stderr


def mute(ask: Ask) -> Action:
    """A judge that answers its first call and says nothing of use afterwards."""
    return SOUND(ask) if FIRST_CALL in ask.data else Say("I cannot judge this.")  # type: ignore[return-value]


def test_a_run_whose_judge_is_unusable_stops_or_goes_on_as_the_policy_says(cache: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with in_thread(FakeLLM(mute)) as fake:
        stopped = call(cache, *train_command(fake, run, "judge.calls.format_attempts=1"))
        assert stopped.returncode == 7, stopped.stdout + stopped.stderr
        assert "in iterations 1 to 2 only 0.0 % of the judge's answers are usable" in stopped.stderr
        assert "resume with --change judge.when_unusable" in " ".join(stopped.stderr.split())
        settings = run / "config.toml"
        edited = settings.read_text("utf-8").replace('when_unusable = "stop"', 'when_unusable = "task_only"')
        settings.write_text(edited, "utf-8")
        done = call(cache, "resume", str(run), "--change", "judge.when_unusable")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "judge 0 of 8 usable (" in stopped.stdout, "on the line of an iteration"
    assert "task rewards only until a window is usable again" in done.stdout
    assert rows(run, "SELECT COUNT(*) FROM verdicts WHERE verdict IS NOT NULL") == [(0,)]
    assert len(rows(run, "SELECT k FROM iterations")) == 4
