"""The reader sees what was committed, whole snapshots only, and says what it cannot read."""

import sqlite3
from pathlib import Path

import numpy as np
import pytest

from arise.errors import AriseError, Exit
from arise.run.chunks import PAGE_TURNS, StoredRollout, pack_rollout, write_chunk
from arise.run.reader import RunReader
from arise.run.store import RunStore
from arise.types import (
    Judgment,
    Observation,
    Rollout,
    ShownSkill,
    StopReason,
    Tokens,
    ToolCall,
    Trajectory,
    Turn,
    Verdict,
)
from tests.unit.run.test_run_store import record


def long_rollout(turns: int, text: str = "ls") -> Rollout:
    generated = np.array([False, True, True, False, True])
    row = Tokens(np.arange(5), generated, np.where(generated, -0.5, 0.0), np.where(generated, 3, -1))
    body = tuple(
        Turn(f"$ {text} {n}", (ToolCall("bash", {"command": text}),), (Observation(f"seen {n}"),)) for n in range(turns)
    )
    trajectory = Trajectory("k0/t/0", "t", body, StopReason.FINISHED, "system", (row,), (ShownSkill("r001", 0),))
    return Rollout(trajectory, 1.0, True, Judgment(1, "test", {"r001": Verdict.PASS}))


@pytest.mark.parametrize("turns", [0, 1, PAGE_TURNS, 3 * PAGE_TURNS + 7])
def test_a_rollout_reads_back_whole_and_in_pages(tmp_path: Path, turns: int) -> None:
    rollout = long_rollout(turns)
    _, place = write_chunk(tmp_path, "c", [long_rollout(3), rollout])
    stored = StoredRollout(tmp_path, place)
    assert stored.turn_count == turns
    assert stored.rollout.trajectory.turns == ()
    assert stored.masks[0].tokens == 5
    assert stored.masks[0].spans == ((1, 2), (4, 1))
    for first, count in ((0, 5), (PAGE_TURNS - 2, 4), (turns - 1, 10)):
        if first >= 0:
            assert tuple(stored.turns(first, count)) == rollout.trajectory.turns[first : first + count]
    whole = stored.whole()
    assert whole.trajectory.turns == rollout.trajectory.turns
    np.testing.assert_array_equal(whole.trajectory.rows[0].logprob_U, rollout.trajectory.rows[0].logprob_U)


def test_text_of_any_kind_reads_back(tmp_path: Path) -> None:
    text = "\x00\x1b[31m \ud800 \u202e \u200b </script> 🦊"
    (place,) = write_chunk(tmp_path, "c", [long_rollout(2, text)])
    assert StoredRollout(tmp_path, place).turns(1, 1)[0].text == f"$ {text} 1"


def test_a_page_of_a_long_rollout_reads_little_of_it() -> None:
    whole = len(pack_rollout(long_rollout(50 * PAGE_TURNS)))
    assert len(pack_rollout(long_rollout(1))) < whole / 20


def test_a_reader_sees_one_commit_while_the_run_goes_on(tmp_path: Path) -> None:
    store = RunStore.open(tmp_path)
    store.commit(record(0))
    with RunReader.open(tmp_path) as early:
        assert early.committed() == 1
        store.commit(record(1))
        assert early.committed() == 1
        with RunReader.open(tmp_path) as late:
            assert [iteration.number for iteration in late.iterations()] == [1, 2]
            assert late.tasks()[0].rewarded == 4
            assert [group.outcome for group in late.groups(k=1)] == ["mixed"]
    store.close()


def test_a_reader_writes_nothing(tmp_path: Path) -> None:
    RunStore.open(tmp_path).close()
    with RunReader.open(tmp_path) as run, pytest.raises(AriseError, match="readonly"):
        run.query("DELETE FROM meta")


def test_every_session_is_listed(tmp_path: Path) -> None:
    for k in range(2):
        store = RunStore.open(tmp_path)
        store.commit(record(k))
        store.close()
    with RunReader.open(tmp_path) as run:
        assert [session.committed for session in run.sessions()] == [0, 1]


def test_unknown_ids_give_none(tmp_path: Path) -> None:
    RunStore.open(tmp_path).close()
    with RunReader.open(tmp_path) as run:
        assert run.pair("r999") is None
        assert run.rollout("no") is None
        assert run.trajectory("no") is None
        assert run.task("no") is None


@pytest.mark.parametrize(("content", "message"), [(None, "holds no run"), (b"not a database" * 99, "cannot be read")])
def test_a_folder_without_a_run_is_one_message(tmp_path: Path, content: bytes | None, message: str) -> None:
    if content is not None:
        (tmp_path / "run.db").write_bytes(content)
    with pytest.raises(AriseError, match=message) as caught:
        RunReader.open(tmp_path)
    assert caught.value.exit_code is Exit.STORAGE


def test_a_run_of_another_format_is_refused(tmp_path: Path) -> None:
    RunStore.open(tmp_path).close()
    with sqlite3.connect(tmp_path / "run.db") as db:
        db.execute("UPDATE meta SET value='99' WHERE key='format'")
    db.close()
    with pytest.raises(AriseError, match="run store of format 99"):
        RunReader.open(tmp_path)
