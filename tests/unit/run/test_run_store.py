"""The run folder: one writer, nothing half-written, damage named."""

import json
import sqlite3
from pathlib import Path

import pytest

from arise.errors import AriseError, Exit
from arise.run.chunks import ChunkPlace, read_rollout
from arise.run.record import IterationRecord
from arise.run.snapshot import FORMAT
from arise.run.store import RunStore
from arise.types import Draw, DrawPath, Group, Pool, Rollout, StopReason, Task, Trajectory


def group(task_id: str = "t", k: int = 0) -> Group:
    rollouts = tuple(
        Rollout(Trajectory(f"k{k}/{task_id}/{j}", task_id, (), StopReason.FINISHED), float(j), bool(j))
        for j in range(2)
    )
    return Group(Task(task_id, "do"), rollouts, 2)


def record(k: int, checkpoint: str | None = None) -> IterationRecord:
    draws = [Draw("t", DrawPath.UNIFORM, 1.0)]
    return IterationRecord(k, draws, [group(k=k)], [None], [], Pool(), None, {"pass_rate": 0.5}, {"at": k}, checkpoint)


def with_checkpoint(store: RunStore, k: int) -> str:
    name = f"checkpoints/k{k:05d}"
    (store.folder / name).mkdir(parents=True)
    (store.folder / name / "manifest.json").write_text("{}")
    return name


def test_a_committed_iteration_reads_back(tmp_path: Path) -> None:
    store = RunStore.open(tmp_path)
    store.save_group(0, group())
    store.commit(record(0, with_checkpoint(store, 0)))
    assert store.last_checkpoint() == ({"at": 0}, "checkpoints/k00000")
    ((chunk, start, length),) = store.query("SELECT chunk, start, length FROM rollouts WHERE id='k0/t/1'")
    assert read_rollout(tmp_path / "trajectories", ChunkPlace(chunk, start, length)).reward == 1.0
    assert store.query("SELECT * FROM inflight") == []
    store.close()


def test_a_finished_group_is_kept_and_cannot_be_kept_twice(tmp_path: Path) -> None:
    store = RunStore.open(tmp_path)
    store.save_group(0, group())
    found = store.finished_group(0, "t")
    assert found is not None
    assert [rollout.reward for rollout in found.rollouts] == [0.0, 1.0]
    assert store.finished_group(1, "t") is None
    with pytest.raises(sqlite3.IntegrityError):
        store.save_group(0, group())
    store.close()


def test_between_checkpoints_finished_groups_stay_for_the_replay(tmp_path: Path) -> None:
    store = RunStore.open(tmp_path)
    store.commit(record(0, with_checkpoint(store, 0)))
    store.save_group(1, group())
    store.commit(record(1, None))
    assert store.finished_group(1, "t") is not None
    assert store.last_checkpoint() == ({"at": 0}, "checkpoints/k00000")
    store.close()


def test_two_generations_of_checkpoints_are_kept_and_a_lost_one_falls_back(tmp_path: Path) -> None:
    store = RunStore.open(tmp_path)
    for k in range(4):
        store.commit(record(k, with_checkpoint(store, k)), keep_checkpoints=2)
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == ["k00002", "k00003"]
    (tmp_path / "checkpoints" / "k00003" / "manifest.json").unlink()
    assert store.last_checkpoint() == ({"at": 2}, "checkpoints/k00002")
    store.close()


def test_a_second_writer_is_turned_away_by_name(tmp_path: Path) -> None:
    store = RunStore.open(tmp_path)
    with pytest.raises(AriseError, match=r"is in use by host .* process") as caught:
        RunStore.open(tmp_path)
    assert caught.value.exit_code is Exit.LOCKED
    store.close()
    RunStore.open(tmp_path).close()


def test_readers_see_the_run_while_it_is_written(tmp_path: Path) -> None:
    store = RunStore.open(tmp_path)
    reader = sqlite3.connect(f"file:{tmp_path / 'run.db'}?mode=ro", uri=True)
    for k in range(3):
        store.commit(record(k))
        rows = reader.execute("SELECT k, metrics FROM iterations ORDER BY k").fetchall()
        assert [row[0] for row in rows] == list(range(k + 1))
        assert json.loads(rows[-1][1]) == {"pass_rate": 0.5}
    reader.close()
    store.close()


def test_a_store_of_another_format_is_refused(tmp_path: Path) -> None:
    RunStore.open(tmp_path).close()
    with sqlite3.connect(tmp_path / "run.db") as db:
        db.execute("UPDATE meta SET value='99' WHERE key='format'")
    db.close()
    with pytest.raises(AriseError, match=f"run store of format 99, this version reads {FORMAT}"):
        RunStore.open(tmp_path)


def test_a_full_disk_leaves_the_last_commit_and_says_what_to_do(tmp_path: Path) -> None:
    store = RunStore.open(tmp_path)
    (tmp_path / "config.toml").touch()
    store.commit(record(0, with_checkpoint(store, 0)))
    pages = store.query("PRAGMA page_count")[0][0]
    store.query(f"PRAGMA max_page_count={pages}")
    state = {"at": 1, "evidence": [str(n) * 50 for n in range(20_000)]}
    full = IterationRecord(1, [], [group(k=1)], [None], [], Pool(), None, {}, state, None)
    with pytest.raises(AriseError, match=r"cannot write to .*full") as caught:
        store.commit(full)
    assert caught.value.exit_code is Exit.STORAGE
    assert "the last committed iteration is intact" in str(caught.value)
    assert store.query("SELECT k FROM iterations") == [(0,)]
    store.close()
