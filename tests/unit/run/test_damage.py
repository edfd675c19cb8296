"""F18 and F20 — torn checkpoints and flipped bytes: found, named, and never loaded."""

import random
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from arise.errors import AriseError, Exit
from arise.run.calls import Recorded, Store, Usage
from arise.run.reader import RunReader
from arise.run.store import RunStore
from arise.run.verify import verify
from tests.stored_runs import write_run

ITERATIONS = 5
REPLY = Recorded(text="{}", finish="stop", model="m", fingerprint="", template_hash="h", usage=Usage(prompt_tokens=7))


@pytest.fixture(scope="module")
def whole(quick_folder: Path) -> Path:
    """A finished run, its journal folded into the database."""
    folder = quick_folder / "whole"
    write_run(folder, ITERATIONS)
    with closing(RunStore.open(folder)) as store:
        store.note({"weights": "a1b2c3"})
        for k in range(ITERATIONS):
            store.save_vitals(k, {"seconds.rollouts": 1.5 + k, "peak_mib": 100.0 + k})
    with closing(Store(folder / "calls.db")) as calls:
        for number in range(3):
            calls.put(f"key {number}", REPLY, "judge", 1_000 + number)
    with closing(sqlite3.connect(folder / "run.db")) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return folder


def flip(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1 << (place % 8)
    path.write_bytes(bytes(content))


def test_a_run_without_damage_passes_every_check(whole: Path) -> None:
    assert [check for check in verify(whole) if not check.passed] == []


@pytest.mark.parametrize("name", ["weights.bin", "moments.bin", "manifest.json"])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.999])
@pytest.mark.parametrize("how", ["truncate", "flip", "remove"])
def test_a_torn_checkpoint_is_named_and_the_one_before_is_used(
    whole: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, share: float, how: str
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    path = folder / "checkpoints" / f"k{ITERATIONS:05d}" / name
    place = int(path.stat().st_size * share)
    if how == "truncate":
        path.write_bytes(path.read_bytes()[:place])
    elif how == "flip":
        flip(path, place)
    else:
        path.unlink()
    with closing(RunStore.open(folder)) as store:
        found = store.last_checkpoint()
    assert found is not None
    assert found[0]["iteration"] == ITERATIONS - 1
    assert f"k{ITERATIONS:05d}/{name}" in caplog.messages[0]
    assert any(name in problem for check in verify(folder) for problem in check.problems)
    write_run(folder, ITERATIONS)
    assert [check for check in verify(folder) if not check.passed] == []


def test_without_any_whole_checkpoint_the_run_is_not_continued(whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    for checkpoint in (folder / "checkpoints").iterdir():
        flip(checkpoint / "weights.bin", 10)
    with closing(RunStore.open(folder)) as store, pytest.raises(AriseError, match="no checkpoint is whole") as caught:
        store.last_checkpoint()
    assert caught.value.exit_code is Exit.STORAGE


def everything(folder: Path) -> list[str]:
    """All that the database says."""
    with closing(sqlite3.connect(f"file:{folder / 'run.db'}?mode=ro", uri=True)) as db:
        return list(db.iterdump())


def outcome(folder: Path, expected: list[str], state: object) -> str:
    """What becomes of a damaged run: refused, reported by verify, or shown to be the same in every row."""
    try:
        with closing(RunStore.open(folder)) as store:
            found = store.last_checkpoint()
    except AriseError as error:
        return "refused" if error.exit_code is Exit.STORAGE else f"exit {error.exit_code}"
    if any(not check.passed for check in verify(folder)):
        return "reported"
    assert found is not None
    assert found[0] == state
    read = everything(folder)
    assert set(expected) <= set(read), "a wrong row was read as right"
    new = [line for line in read if line not in expected]
    assert all(re.match(r"INSERT INTO \"(sessions|seals)\" VALUES\(('session )?\d", line) for line in new), new
    return "same"


def test_none_of_100_flipped_bytes_is_loaded_undetected(whole: Path, tmp_path: Path) -> None:
    places = random.Random(20)
    expected = everything(whole)
    written = [place for place, byte in enumerate((whole / "run.db").read_bytes()) if byte]
    with closing(RunStore.open(whole)) as store:
        found = store.last_checkpoint()
    assert found is not None
    outcomes = []
    for number in range(100):
        folder = tmp_path / str(number)
        shutil.copytree(whole, folder)
        flip(folder / "run.db", places.choice(written))
        outcomes.append(outcome(folder, expected, found[0]))
        shutil.rmtree(folder)
    assert set(outcomes) <= {"refused", "reported", "same"}
    assert outcomes.count("same") < 60


@pytest.mark.parametrize("change", [
    "UPDATE iterations SET at = at - 3600 WHERE k = 1",
    "UPDATE vitals SET value = value + 1 WHERE k = 2 AND name = 'peak_mib'",
    "DELETE FROM vitals WHERE k = 3",
    "INSERT INTO vitals VALUES (1, 'judge.usd', 0.0)",
    "UPDATE sessions SET owner = 'somebody else' WHERE id = 1",
    "DELETE FROM sessions WHERE id = 1",
    "UPDATE meta SET value = 'other weights' WHERE key = 'weights'",
])  # fmt: skip
def test_clock_times_costs_and_sessions_are_sealed(whole: Path, tmp_path: Path, change: str) -> None:
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    with closing(sqlite3.connect(folder / "run.db")) as db:
        db.execute(change)
        db.commit()
    assert {check.name for check in verify(folder) if not check.passed} == {"costs"}
    with closing(RunStore.open(folder)) as store:
        store.save_vitals(2, {"peak_mib": 1.0})
    assert {check.name for check in verify(folder) if not check.passed} == {"costs"}, "no later write hides it"


@pytest.mark.parametrize("change", ["UPDATE spend SET nano_usd = 1 WHERE id = 2", "DELETE FROM spend WHERE id = 3"])
def test_what_calls_cost_is_sealed(whole: Path, tmp_path: Path, change: str) -> None:
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    with closing(sqlite3.connect(folder / "calls.db")) as db:
        db.execute(change)
        db.commit()
    with closing(Store(folder / "calls.db")) as calls:
        calls.put("another", REPLY, "judge", 5)
    (found,) = [check for check in verify(folder) if not check.passed]
    assert found.problems == ("calls.db: costs of calls were changed, added or lost since they were recorded",)


def test_vitals_that_are_measured_again_are_sealed_again(whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    with closing(RunStore.open(folder)) as store:
        store.save_vitals(2, {"peak_mib": 1.0, "seconds.update": 2.0})
        store.note({"weights": "later ones are not taken", "torch": "2.0"})
    assert [check for check in verify(folder) if not check.passed] == []
    with RunReader.open(folder) as run:
        assert dict(run.query("SELECT name, value FROM vitals WHERE k = 2")) == {
            "peak_mib": 1.0, "seconds.rollouts": 3.5, "seconds.update": 2.0
        }  # fmt: skip
        assert run.query("SELECT value FROM meta WHERE key = 'weights'") == [("a1b2c3",)]


def test_a_changed_trajectory_is_reported_and_refused(whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    chunk = folder / "trajectories" / "k00001.zst"
    flip(chunk, chunk.stat().st_size // 2)
    problems = [problem for check in verify(folder) for problem in check.problems]
    assert problems == ["trajectories/k00001.zst was changed or is torn"]
    refused: list[str] = []
    with RunReader.open(folder) as run:
        for row in run.rollouts(k=1):
            try:
                stored = run.trajectory(row.id)
                assert stored is not None
                stored.whole()
            except AriseError as error:
                refused.append(str(error))
    assert len(refused) == 1
    assert "k00001.zst, byte" in refused[0]


@pytest.mark.parametrize("change", [
    "UPDATE events SET kind='activate' WHERE kind='born'",
    "UPDATE draws SET task_id='task-0'",
    "UPDATE rollouts SET reward=NULL WHERE id='k0/task-0/0'",
    "UPDATE attempts SET skill_bytes=3",
    "UPDATE verdicts SET rubric_id='r999' WHERE k=3",
    "UPDATE tasks SET instruction='do something else'",
    "DELETE FROM iterations WHERE k=2",
])  # fmt: skip
def test_hand_edits_are_reported(whole: Path, tmp_path: Path, change: str) -> None:
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    with closing(RunStore.open(folder)) as store:
        store.save_attempts([("before", "t", 0, 0, "data", "type", 1, 1.0, "finished", "", 0, "{}")])
    with closing(sqlite3.connect(folder / "run.db")) as db:
        db.execute(change)
        db.commit()
    failed = {check.name for check in verify(folder) if not check.passed}
    assert "rows" in failed
    assert len(failed) > (change.startswith("UPDATE tasks") is False), "an invariant sees it too"
