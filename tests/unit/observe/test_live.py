"""The live screen: what a person who watches must find on it, and nothing a run says can change the terminal."""

import io
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from arise.coevolution import Update
from arise.config import Config
from arise.method.lifecycle import Evolution
from arise.observe.forecast import TimeForecast, stages
from arise.observe.live import LiveDisplay, sparkline
from arise.run.record import IterationRecord
from arise.text.progress import Reached
from arise.types import Capability, Cell, Draw, DrawPath, Group, Judgment, Pool, PoolEvent, Verdict
from tests.builders import a_rollout, a_task

METRICS = {
    "pass_rate": 0.382,
    "rubric_reward": 0.61,
    "all_fail": 9,
    "all_pass": 4,
    "mixed": 19,
    "incomplete": 1,
    "pool": 14,
    "skills_shown": 4,
    "coverage": 0.78,
    "kept_share": 0.974,
    "grad_norm": 0.83,
    "guided_rate": 0.9,
    "unguided_rate": 0.31,
    "set_aside": 2.0,
    "answers": 2.0,
    "answers_asked": 3.0,
    "absent format": 1.0,
}


def record(k: int, note: str = "") -> IterationRecord:
    judged = a_rollout(0, {})
    judgment = Judgment(1, "test", {"r001": Verdict.PASS, "r002": Verdict.FAIL}, {"r003": "format: two lines"})
    group = Group(a_task(), (type(judged)(judged.trajectory, 1.0, True, judgment),), 1)
    cell = Cell("repair", Capability.VERIFICATION)
    draws = [Draw("x1", DrawPath.ADAPTIVE, 0.1, rho=0.22, cell=cell)]
    ledger = {
        "format": 1,
        "observed_decay": 0.2,
        "unobserved_decay": 0.999,
        "task_types": ["repair"],
        "rubrics": [["r001", "Verification"]],
        "tallies": [["repair", "r001", 1.0, 5.0, 3]],
    }
    events = (
        PoolEvent(k + 1, "r014", "born", note=note),
        PoolEvent(k + 1, "r002", "retire", 9, 10, unguided_passes=9, unguided_evaluations=10),
        PoolEvent(k + 1, "r003", "hide", 48, 100, unguided_passes=4, unguided_evaluations=50),
        PoolEvent(k + 1, "r004", "refine", 1, 10),
    )
    update = Update(Evolution(Pool(), events), (), ())
    state = {"sampler": {"ledger": ledger}}
    return IterationRecord(k, draws, [group], [None], [], Pool(), update, METRICS, state, "checkpoints/k")


def screen_after(k: int, note: str = "", colour: bool = True) -> str:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=150, no_color=not colour)
    with LiveDisplay(console, Config(), Path("wise-otter")) as display:
        clock = iter(range(0, 10_000, 60))
        display.forecast = TimeForecast(stages(Config(), 60, warm_start=False), lambda: float(next(clock)))
        for at in (1, k + 1):
            display.reached(Reached(f"iteration {at}: rollouts", at > 1, 1, over=at > 1))
        display.tell("warm start: cached")
        display.finished(record(k, note))
    return out.getvalue()


def test_the_screen_says_what_a_person_looks_for() -> None:
    shown = screen_after(46)
    for words in (
        "wise-otter", "iteration 47/150", " elapsed, about", "checkpoint 47 saved", "pass 38.2 %", "19 mixed",
        "9 all-fail", "pass 61.0 % (31.0 % unguided)", "pool 14 (+1 -1 at 47)", "skills shown 4", "next update 50",
        "discovery 22.0 %",
        "coverage 78.0 %", "weakest repair x Verification 25.0 % ± 14.4", "judge 2 of 3 usable (1 format)",
        "tokens kept 97.4 %",
        "groups left out for infrastructure 1", "retired r002 at 90.0 % (9 of 10)  ",
        "skill hidden r003 at 48.0 % (48 of 100), unguided 8.0 % (4 of 50)",
        "skill rewritten r004 at 10.0 % (1 of 10), unguided –", "tasks set aside 2", "warm start: cached",
    ):  # fmt: skip
        assert words in shown, words


def test_before_the_first_message_the_screen_says_that_it_is_starting_and_at_the_end_it_promises_nothing() -> None:
    out = io.StringIO()
    with LiveDisplay(Console(file=out, force_terminal=True, width=150), Config(), Path("wise-otter")):
        pass
    assert "starting" in out.getvalue()
    last = screen_after(Config().train.iterations - 1)
    assert "starting" not in last
    assert "0 s left" not in last
    assert "next update" not in last


def test_text_of_a_run_cannot_change_the_terminal() -> None:
    shown = screen_after(3, note="\x1b]0;owned\x07 \x1b[2J")
    assert "\x1b]0;" not in shown
    assert "\x07" not in shown
    assert "\x1b[2J" not in shown


def test_no_colour_is_no_colour() -> None:
    assert "\x1b[38" not in screen_after(3, colour=False)
    assert "\x1b[31" not in screen_after(3, colour=False)


def test_sparklines_leave_gaps_for_missing_values() -> None:
    assert sparkline([0.0, 0.5, 1.0]) == "▁▅█"
    assert sparkline([0.0, None, 1.0]) == "▁ █"


def test_an_iteration_without_a_measurement_is_shown_as_dashes() -> None:
    known = {name: value for name, value in METRICS.items() if name not in ("pass_rate", "rubric_reward", "coverage")}
    out = io.StringIO()
    with LiveDisplay(Console(file=out, force_terminal=True, width=150), Config(), Path("wise-otter")) as display:
        for k in range(20):
            display.finished(replace(record(k), metrics=METRICS if k < 19 else known))
    for words in ("pass –", "coverage –"):
        assert words in out.getvalue(), words
