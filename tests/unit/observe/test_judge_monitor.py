"""The alarm, the judge's health and its cost, over a run's own record, which a resumed run sees too."""

import asyncio
import io
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from arise.config import Config
from arise.config.llm import BudgetConfig, EndpointConfig, PriceConfig
from arise.llm.client.spend import Budget
from arise.llm.judge.meter import Meter
from arise.observe.judge_monitor import JudgeMonitor
from arise.observe.live import LiveDisplay
from arise.run.calls import Recorded, Store, Usage, recorded_totals
from arise.run.facts.alarms import alarm_text, recorded_signals, signal_of
from arise.run.record import IterationRecord
from arise.run.store import RunStore
from arise.types import Draw, DrawPath, Group, Pool, Task, Verdict
from tests.builders import a_group, a_task

CONFIG = Config.model_validate(
    {"pool": {"update_every": 3}, "evidence": {"window": 3}, "train": {"iterations": 12}, "judge": {"kind": "offline"}}
)
SIZE = 40


def iteration(k: int, passes: int, successes: int) -> Group:
    """Forty rollouts: r001 passes so many, r002 always the same half, and so many succeed."""
    letters = {"r001": "1" * passes + "0" * (SIZE - passes), "r002": "1" * 20 + "0" * 19 + "-"}
    group = a_group(a_task(f"t{k}"), letters, [1.0] * successes + [0.0] * (SIZE - successes))
    rollouts = [replace(r, trajectory=replace(r.trajectory, id=f"k{k}/{r.trajectory.id}")) for r in group.rollouts]
    return replace(group, rollouts=tuple(rollouts))


def committed(store: RunStore, k: int, group: Group, metrics: Mapping[str, float]) -> IterationRecord:
    draws = [Draw(group.task.id, DrawPath.UNIFORM, 1.0)]
    record = IterationRecord(k, draws, [group], [None], [], Pool(), None, metrics, {"at": k}, None)
    store.commit(record)
    return record


def gamed(k: int) -> Group:
    """Rubric r001 is passed by everybody from iteration 3 on, success stays where it is."""
    return iteration(k, 4 if k < 3 else 38, 10)


def test_the_alarm_is_raised_at_the_update_and_survives_a_resume(tmp_path: Path) -> None:
    store = RunStore.open(tmp_path)
    monitor = JudgeMonitor(CONFIG, store, 0)
    for k in range(5):
        numbers = monitor.numbers(k + 1, [gamed(k)])
        assert "alarm" not in numbers, "too little to compare, or no update"
        committed(store, k, gamed(k), numbers)
    whole = monitor.numbers(6, [gamed(5)])
    resumed = JudgeMonitor(CONFIG, store, 5).numbers(6, [gamed(5)])
    assert whole == resumed
    assert whole["alarm"] == 1.0
    assert whole["suspect r001"] == 1.0
    assert "suspect r002" not in whole
    text = alarm_text(6, whole)
    assert (
        "iteration 6: rubric pass rates moved by +43.0 points while verified success moved by +0.0; look at r001"
        in text
    )
    committed(store, 5, gamed(5), whole)
    assert text in monitor.summary(store)
    store.close()


def test_success_that_rises_too_is_no_alarm(tmp_path: Path) -> None:
    store = RunStore.open(tmp_path)
    monitor = JudgeMonitor(CONFIG, store, 0)
    for k in range(6):
        numbers = monitor.numbers(k + 1, [iteration(k, 4 if k < 3 else 38, 4 if k < 3 else 36)])
        committed(store, k, gamed(k), numbers)
    assert numbers["alarm"] == 0.0
    assert alarm_text(6, numbers) == ""
    assert any(line.startswith("no alarm in 1 comparisons") for line in monitor.summary(store))
    store.close()


def test_signals_read_back_as_they_were(tmp_path: Path) -> None:
    store = RunStore.open(tmp_path)
    for k in range(3):
        committed(store, k, gamed(k), {})
    assert recorded_signals(store, 1, 3) == {k: signal_of([gamed(k)]) for k in (1, 2)}
    store.close()


def test_rubrics_that_never_differ_are_hinted_at(tmp_path: Path) -> None:
    store = RunStore.open(tmp_path)
    monitor = JudgeMonitor(CONFIG, store, 0)
    for k in range(2):
        same = iteration(k, 20, 10)
        committed(store, k, same, monitor.numbers(k + 1, [same]))
    line = "r001 and r002 gave the same verdict on 78 of 78 rollouts: they may measure the same"
    assert line in monitor.summary(store)
    other = iteration(2, 5, 10)
    committed(store, 2, other, monitor.numbers(3, [other]))
    assert not any("may measure the same" in line for line in monitor.summary(store))
    store.close()


def test_a_run_without_a_judge_has_nothing_to_say(tmp_path: Path) -> None:
    store = RunStore.open(tmp_path)
    monitor = JudgeMonitor(CONFIG, store, 0)
    plain = Group(Task("t", "do"), (), 0)
    committed(store, 0, plain, monitor.numbers(1, [plain]))
    assert monitor.summary(store) == []
    assert monitor.money(1) == ""
    store.close()


def budget_of(dollars: float, calls: Store) -> Budget:
    recorded = Recorded(text="", finish="", model="m", fingerprint="", template_hash="", usage=Usage())
    calls.put("k", recorded, "judge", round(dollars * 1e9))
    return Budget(calls, BudgetConfig(max_usd=5.0, prices={"m": PriceConfig(input=0.0, output=1.0)}))


def test_the_live_screen_shows_judge_cost_and_alarm(tmp_path: Path) -> None:
    store, calls = RunStore.open(tmp_path), Store()
    meter = Meter()
    for number, cached in enumerate((False, False, True)):
        meter.take("judge.reply", {"cached": cached, "seconds": 1.0 + number})
    meter.take("judge.quarantined", {})
    meter.take("reflection.reply", {"cached": False, "seconds": 9.0})
    console = Console(file=io.StringIO(), width=220, force_terminal=True, no_color=True)
    screen = LiveDisplay(console, CONFIG, tmp_path)
    screen.judge_monitor = JudgeMonitor(CONFIG, store, 0, budget_of(3.0, calls), meter)
    keys = ("pass_rate", "rubric_reward", "all_fail", "all_pass", "mixed", "pool", "skills_shown", "coverage")
    rest = dict.fromkeys((*keys, "grad_norm", "kept_share"), 0.0)
    for k in range(6):
        record = committed(store, k, gamed(k), rest | screen.judge_monitor.numbers(k + 1, [gamed(k)]))
        screen.finished(record)
    console.print(screen._screen())
    shown = re.sub(r"\x1b\[[0-9;]*m", "", console.file.getvalue())  # type: ignore[attr-defined]
    assert "iteration 6/12" in shown
    assert " elapsed" in shown
    assert "100.0 % of 79 verdicts valid; 3 replies, typically 1.5 s, 33.3 % recorded, 1 quarantined" in shown
    assert "$3.00 of $5.00, forecast $6.00 (over the budget)" in shown
    assert "rubric pass rates moved by +43.0 points" in shown
    store.close()
    calls.close()


def test_a_forecast_takes_the_larger_of_mean_and_recent_rate() -> None:
    calls = Store()
    budget = budget_of(1.0, calls)
    endpoint = EndpointConfig(model="m", base_url="https://example.org/v1")
    most, said = Usage(completion_tokens=2_000_000), Usage(completion_tokens=1_000_000)
    reply = Recorded(text="", finish="", model="m", fingerprint="", template_hash="", usage=said)
    assert budget.forecast(10, 100).expected == pytest.approx(10.0)
    held = asyncio.run(budget.reserve(endpoint, most, "k2", "judge"))
    assert budget.pay(held, endpoint, reply, keep=True) == 1_000_000_000
    assert budget.forecast(11, 100).expected == pytest.approx(2.0 + 89 * 1.0), "a pool that grew costs more"
    held = asyncio.run(budget.reserve(endpoint, most, "k3", "judge"))
    estimated = reply.model_copy(update={"usage": None, "estimated": "no prompt_tokens reported"})
    assert budget.pay(held, endpoint, estimated, keep=True) is None
    text = "$2.00 of $5.00, 1 calls without a known price, 1 calls counted by our own estimate"
    assert str(budget.forecast(100, 100)) == text
    assert budget.price(endpoint, Usage(completion_tokens=1_000_000)) == 1_000_000_000
    calls.close()


def test_missing_verdicts_are_counted(tmp_path: Path) -> None:
    store = RunStore.open(tmp_path)
    group = iteration(0, 4, 10)
    judgment = group.rollouts[-1].judgment
    assert judgment is not None
    absent = replace(judgment, verdicts={"r001": Verdict.FAIL}, absent={"r002": "unavailable: HTTP 503"})
    group = replace(group, rollouts=(*group.rollouts[:-1], replace(group.rollouts[-1], judgment=absent)))
    monitor = JudgeMonitor(CONFIG, store, 0)
    numbers = monitor.numbers(1, [group])
    assert (numbers["verdicts"], numbers["verdicts_absent"]) == (79, 1)
    assert monitor.judge(numbers) == "98.8 % of 80 verdicts valid"
    store.close()


def test_what_an_iteration_took_and_what_calls_came_to_is_kept_with_it(tmp_path: Path) -> None:
    store, calls, meter = RunStore.open(tmp_path), Store(tmp_path / "calls.db"), Meter()
    monitor = JudgeMonitor(CONFIG, store, 0, Budget(calls), meter)
    assert monitor.costs() == {"judge.replies": 0, "judge.recorded": 0}
    for number in range(20):
        meter.take("judge.reply", {"cached": number == 7, "seconds": 1.0 + number})
    usage = Usage(prompt_tokens=100, cached_tokens=60, completion_tokens=5)
    for model in ("a", "b"):
        reply = Recorded(text="", finish="stop", model=model, fingerprint="", template_hash="", usage=usage)
        calls.put(model, reply, "judge", 250_000_000)
    spent = {"calls": 2, "prompt_tokens": 200, "cached_tokens": 120, "usd": 0.5}
    sums = {f"spent.judge.{name}": value for name, value in spent.items()}
    took = {"judge.replies": 20, "judge.recorded": 1, "judge.seconds": 11.0, "judge.seconds_p95": 19.0}
    assert monitor.costs() == took | sums
    assert monitor.costs() == {"judge.replies": 0, "judge.recorded": 0} | sums, "replies count once, sums stand"
    calls.close()
    assert [(total.model, total.calls) for total in recorded_totals(tmp_path / "calls.db")] == [("a", 1), ("b", 1)]
    assert recorded_totals(tmp_path / "nowhere.db") == []
    store.close()
