"""Derived facts: how a run ended, what is done about a behaviour, which behaviours are weakest, what changed."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from benchmarks.big_run import write_run

from arise.run.facts.behaviours import Behaviour, behaviours, weakest
from arise.run.facts.held_out import RateChange, held_out
from arise.run.facts.story import ending, run_facts, what_is_done
from arise.run.facts.verdicts import Guided
from arise.run.facts.windows import latest
from arise.run.pool_rows import Event, PairLife
from arise.run.reader import RunReader
from arise.run.store import RunStore
from arise.types import Capability, Tally
from tests.builders import a_pair

NONE = Tally()


def life(*kinds: str, name: str = "r001") -> PairLife:
    """Return a pair with events of these kinds, ten verdicts each, two of which pass, all guided."""
    events = [Event(k, name, kind, 2, 10, 0, "") for k, kind in enumerate(kinds)]
    return PairLife(a_pair(name, Capability.DEBUGGING).rubric, tuple(events))


def behaviour(pair: PairLife, after: Tally = NONE, last: Tally = NONE, recent: Tally = NONE) -> Behaviour:
    return Behaviour((pair,), NONE, NONE, NONE, Guided(NONE, recent), NONE, last, NONE, after)


@pytest.mark.parametrize(
    ("kinds", "said"),
    [
        (("born",), "skill hidden, passes 40.0 % (4 of 10) in its last window"),
        (("born", "activate"), "skill shown"),
        (("born", "activate", "refine"), "skill shown, rewritten 1 time"),
        (
            ("born", "activate", *["refine"] * 4),
            "skill shown, rewritten 4 times, stuck: the last 3 refinements had no effect",
        ),
        (("born", "activate", "retire"), "retired after 3: not trained any more"),
    ],
)
def test_what_is_done_about_a_behaviour(kinds: tuple[str, ...], said: str) -> None:
    assert what_is_done(behaviour(life(*kinds), recent=Tally(4, 10)), {}) == said


def test_a_capability_that_gets_more_than_its_share_is_drawn_more_often() -> None:
    shown = behaviour(life("born", "activate"))
    assert what_is_done(shown, {"Debugging": 6, "Execution": 2}).endswith(
        "Debugging drawn more often, 6 of 8 adaptive slots"
    )
    assert what_is_done(shown, {"Debugging": 2, "Execution": 6}).endswith("; Debugging drawn 2 of 8 adaptive slots")


def test_the_weakest_come_first_those_with_few_verdicts_last_and_what_was_never_judged_is_left_out() -> None:
    found = [
        behaviour(life("born", name="r001"), after=Tally(5, 10)),
        behaviour(life("born", name="r002"), after=Tally(0, 2)),
        behaviour(life("born", name="r003"), after=Tally(0, 9)),
        behaviour(life("born", name="r004")),
        behaviour(life("born", name="r005"), after=Tally(19, 20)),
        behaviour(life("born", name="r006"), last=Tally(1, 10)),
    ]
    assert [b.rubric.id for b in weakest(found, 0.9)] == ["r003", "r006", "r001", "r002"]
    assert [b.source for b in weakest(found, 0.9)] == ["held out", "training", "held out", "held out"]


def test_a_change_is_clear_when_its_interval_excludes_zero() -> None:
    small, large = RateChange(Tally(5, 10), Tally(4, 10)), RateChange(Tally(80, 100), Tally(20, 100))
    assert (small.clear, large.clear) == (False, True)
    assert (small.from_to, small.noise_text) == ("50.0 % → 40.0 %", "within noise")
    assert large.difference_text.startswith("-60.0 points (95 % -")


def test_too_few_verdicts_of_the_last_window_are_joined_by_those_before_it_but_never_the_first() -> None:
    assert latest([Tally(7, 51), Tally(0, 11), Tally(0, 1)]) == Tally(0, 12)
    assert latest([Tally(7, 51), Tally(0, 11), Tally(2, 5)]) == Tally(2, 5)
    assert latest([Tally(7, 51), Tally(0, 1)]) == Tally(0, 1)
    assert (latest([Tally(7, 51)]), latest([])) == (Tally(7, 51), Tally())


def test_a_change_of_few_evaluations_is_written_as_counts_and_not_as_a_difference() -> None:
    unknown, clear = RateChange(Tally(7, 51), Tally(0, 1)), RateChange(Tally(0, 4), Tally(30, 30))
    assert (unknown.from_to, unknown.reading) == ("7 of 51 → 0 of 1", "too few to tell")
    assert clear.from_to == "0 of 4 → 30 of 30"
    assert clear.reading.startswith("+100.0 points (95 % +")
    assert clear.reading.endswith("beyond noise")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    write_run(folder, iterations=20, tasks=2, group=2)
    return folder


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "run"))


def changed(run: Path, sql: str) -> str:
    with closing(sqlite3.connect(run / "run.db")) as db, db:
        db.execute(sql)
    with RunReader.open(run) as reader:
        return ending(reader)


def test_the_ending_of_a_run(run: Path) -> None:
    assert changed(run, "SELECT 1") == "finished"
    assert changed(run, "DELETE FROM attempts WHERE label='after'") == "trained, not evaluated"
    assert changed(run, "DELETE FROM iterations WHERE k > 3") == "stopped"
    assert changed(run, "DELETE FROM iterations") == "not begun"
    with closing(RunStore.open(run)) as store:
        assert ending(store) == "running"


def test_snapshot_and_writer_derive_the_same_facts(run: Path) -> None:
    with RunReader.open(run) as reader:
        expected = run_facts(reader)
    with closing(RunStore.open(run)) as store:
        assert run_facts(store) == expected


def test_guided_beside_and_alone_add_up_to_all_verdicts(run: Path) -> None:
    with RunReader.open(run) as reader:
        found = behaviours(reader, held_out(reader))
        counts = reader.verdict_sums()
    total = sum(b.guided.evaluations + b.beside.evaluations + b.alone.evaluations for b in found)
    assert total == sum(count.evaluations for count in counts) > 0
