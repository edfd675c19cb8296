"""Long waits on the screen: when they show, what they estimate, and that they leave no line behind."""

import asyncio
import io
import json
import logging
from pathlib import Path

import pytest
from rich.console import Console

from arise.cli.logs import LogLevel, configure
from arise.config import Config
from arise.observe.forecast import Stage, TimeForecast, stages
from arise.observe.live import LiveDisplay
from arise.observe.messages import shown_by
from arise.observe.terminal import Display, JsonDisplay
from arise.observe.waits import LINE_EVERY, Waits
from arise.rollouts.assessment import EachRollout
from arise.run.record import IterationRecord
from arise.text.progress import Progress, Reached
from arise.types import Group, Judgment, Pool, Rollout, Task
from tests.builders import a_rollout, a_task

log = logging.getLogger("arise.somewhere")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_estimate_is_the_mean_pace_so_far() -> None:
    clock = Clock()
    waits = Waits(clock)
    waits.take(Reached("cloning", 0, 100))
    clock.now = 5.0
    assert [str(wait) for wait in waits.under_way()] == ["cloning: 0 of 100, 5 s so far"]
    waits.take(Reached("cloning", 20, 100))
    assert [str(wait) for wait in waits.under_way()] == ["cloning: 20 of 100, about 20 s left"]
    waits.take(Reached("cloning", 100, 100, over=True))
    assert waits.under_way() == []


def test_where_no_bar_can_be_drawn_a_line_is_due_every_ten_seconds() -> None:
    clock = Clock()
    waits, told = Waits(clock), 0
    for second in range(31):
        clock.now = float(second)
        told += waits.due(Reached("cloning", second, 100)) is not None
    assert told == 30 // LINE_EVERY


def test_a_wait_whose_parts_are_found_on_the_way_ends_with_the_last_of_them() -> None:
    reports: list[Reached] = []
    wait = Progress(log, "judge")
    with shown_by(reached=reports.append):
        wait.expect(2)
        wait.add()
        wait.expect(1)
        wait.add(2)
        wait.expect(4)
    assert [(reached.done, reached.total, reached.over) for reached in reports] == [
        (0, 2, False), (1, 2, False), (1, 3, False), (3, 3, True), (0, 4, False),
    ]  # fmt: skip


def test_the_live_screen_has_the_bar_at_once_and_no_line_of_it_stays(tmp_path: Path) -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=150)
    with LiveDisplay(console, Config(), tmp_path) as display, shown_by(display.tell, display.reached):
        with Progress(log, "warm start: demonstrations", 900) as wait:
            assert "warm start: demonstrations: 0 of 900" in out.getvalue()
            wait.add(450)
        out.seek(0)
        out.truncate()
        display.tell("cached")
        assert "cached" in out.getvalue()
        assert "demonstrations" not in out.getvalue()


def test_programs_get_progress_as_numbers_and_people_a_line() -> None:
    for kind, expected in ((Display, "cloning: 5 of 10, about 20 s left"), (JsonDisplay, "")):
        lines: list[str] = []
        display, clock = kind(lines.append, 4), Clock()
        display._waits = Waits(clock)
        display.reached(Reached("cloning", 0, 10))
        clock.now = 20.0
        display.reached(Reached("cloning", 5, 10))
        if expected:
            assert lines == [expected]
        else:
            facts = {"what": "cloning", "done": 5, "total": 10, "seconds_left": 20.0}
            assert [json.loads(line) for line in lines] == [{"progress": facts}]


def test_progress_is_not_logged_to_stderr(capsys: object) -> None:
    configure(LogLevel.INFO)
    try:
        with Progress(log, "cloning", 3) as wait:
            wait.add(3)
    finally:
        configure(LogLevel.WARNING)
    assert capsys.readouterr().err == ""  # type: ignore[attr-defined]


class Slow:
    """A judge that reports how far the wait was when it was asked."""

    identity = "slow"

    def __init__(self, reports: list[Reached]) -> None:
        self.reports, self.seen = reports, list[tuple[int, int]]()

    async def judge(self, task: Task, rollout: Rollout, pool: Pool) -> Judgment:  # noqa: ARG002 - a judge's signature
        self.seen.append((self.reports[-1].done, self.reports[-1].total))
        await asyncio.sleep(0)
        return Judgment(pool.version, self.identity)


def test_a_slow_judge_shows_how_many_rollouts_wait_for_it() -> None:
    reports: list[Reached] = []
    judge = Slow(reports)
    group = Group(a_task(), (a_rollout(0, {}), a_rollout(1, {})), 2)
    with shown_by(reached=reports.append):
        asyncio.run(EachRollout(judge).assess(group, Pool()))
    assert judge.seen == [(0, 2), (0, 2)]
    assert reports[-1] == Reached("judge: rollouts", 2, 2, over=True)


def test_the_whole_run_is_forecast_from_the_pace_so_far() -> None:
    clock = Clock()
    config = Config()
    ahead = list(stages(config, 60, warm_start=True))
    total = sum(stage.weight for stage in ahead)
    forecast = TimeForecast(iter(ahead), clock)
    assert forecast.left is None
    for stage in ahead:
        forecast.take(Reached(stage.name, 0, 8))
        clock.now += 2 * stage.weight  # a machine half as fast as the one that the weights are from
        forecast.take(Reached(stage.name, 8, 8, over=True))
        total -= stage.weight
        assert forecast.left == pytest.approx(2 * total, abs=1e-6)
    resumed = TimeForecast(stages(config, 60, warm_start=True), clock)
    middle, last = (
        f"iteration {config.train.iterations // 2}: rollouts",
        f"iteration {config.train.iterations}: rollouts",
    )
    resumed.take(Reached(middle, 0, 8))
    clock.now += 100.0
    resumed.take(Reached(last, 0, 8))
    assert resumed.left is not None
    assert 1.0 < resumed.left < 20.0


def test_demonstrations_and_attempts_through_a_harness_weigh_more_than_the_cloning() -> None:
    config = Config.model_validate({"agent": {"kind": "pi"}, "model": {"demonstrations": 500, "epochs": 14}})
    weights = {stage.name: stage.weight for stage in stages(config, 24, warm_start=True)}
    assert weights["warm start: demonstrations"] > weights["warm start: cloning"]
    assert (
        weights["iteration 1: rollouts"]
        > 10 * {s.name: s.weight for s in stages(Config(), 24, False)}["iteration 1: rollouts"]
    )


def test_the_forecast_follows_a_machine_that_gets_busy() -> None:
    clock = Clock()
    forecast = TimeForecast((Stage(f"iteration {k}: rollouts", 1.0) for k in range(1, 101)), clock)
    for k in range(1, 81):
        forecast.take(Reached(f"iteration {k}: rollouts", 0, 8))
        clock.now += 2.0 if k <= 60 else 10.0
        forecast.take(Reached(f"iteration {k}: rollouts", 8, 8, over=True))
    assert forecast.left == pytest.approx(20 * 10.0)


def test_the_forecast_is_announced_once_and_then_shown_in_every_line() -> None:
    lines: list[str] = []
    clock = Clock()
    display = Display(lines.append, 4)
    display.forecast = TimeForecast((Stage(f"iteration {k}: rollouts", 1.0) for k in range(1, 5)), clock)
    for k in (1, 2):
        display.reached(Reached(f"iteration {k}: rollouts", 0, 8))
        clock.now += 60.0
        display.reached(Reached(f"iteration {k}: rollouts", 8, 8, over=True))
    assert [line for line in lines if "end of the run" in line] == ["about 3 min to the end of the run, at this pace"]
    metrics = {"all_fail": 0, "mixed": 0, "all_pass": 0, "pool": 0, "skills_shown": 0}
    display.show(IterationRecord(1, [], [], [], [], Pool(), None, metrics, {}, ""), 60.0)
    assert lines[-1].endswith("60.0 s, about 2 min left")
