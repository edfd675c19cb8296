"""Whole runs in the real store without a policy: every iteration follows from the state before, so that a resume shows.

`write_run` drives the store as the training loop does: finished groups are kept, a checkpoint is written, then commit.
"""

import hashlib
import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from arise.coevolution import Update
from arise.engines.folders import draft_beside, swap_in, sync
from arise.method.evidence import records_of
from arise.method.lifecycle import evolve
from arise.run.record import IterationRecord
from arise.run.store import RunStore
from arise.types import (
    Draw,
    DrawPath,
    Group,
    Judgment,
    Observation,
    Pool,
    Rollout,
    StopReason,
    Tally,
    Task,
    Tokens,
    ToolCall,
    Trajectory,
    Turn,
    Verdict,
)
from arise.types.codec import from_json, to_json
from tests.builders import a_proposal

TASKS, GROUP = 2, 2
ROLLED = "rolled.log"


def write_run(folder: Path, iterations: int, text_size: int = 200) -> None:
    """Start or continue a run until it has so many iterations."""
    with closing(RunStore.open(folder)) as store:
        with store.writing():
            (folder / "config.toml").write_text(CONFIG)
        found = store.last_checkpoint()
        state = found[0] if found else {"iteration": 0, "pool": to_json(Pool()), "chain": ""}
        while state["iteration"] < iterations:
            state = _iteration(store, state, text_size)


CONFIG = "[train]\ntasks_per_iteration = 2\n[pool]\nupdate_every = 2\n[evidence]\nwindow = 2\n"


def _iteration(store: RunStore, state: dict[str, Any], text_size: int) -> dict[str, Any]:
    k, pool = state["iteration"], from_json(Pool, state["pool"])
    groups = [_group(store, k, f"task-{(k + slot) % 3}", text_size) for slot in range(TASKS)]
    judged = [_judged(group, pool) for group in groups]
    after, update = pool, None
    if (k + 1) % 2 == 0:
        tallies = {rubric.id: Tally(k % 5, 10) for rubric in pool.rubrics}
        proposals = (a_proposal(f"of {k}"),) if len(pool) < 4 else ()
        evolution = evolve(pool, tallies, iteration=k + 1, proposals=proposals)
        after, update = evolution.pool, Update(evolution, proposals, ())
    content = json.dumps([to_json(group) for group in judged])
    chain = hashlib.sha256(f"{state['chain']}{content}".encode()).hexdigest()
    new = {"iteration": k + 1, "pool": to_json(after), "chain": chain}
    checkpoint = f"checkpoints/k{k + 1:05d}"
    with store.writing():
        write_checkpoint(store.folder / checkpoint, chain)
    draws = [Draw(group.task.id, DrawPath.UNIFORM, 0.5) for group in judged]
    metrics = {"pass_rate": 0.5, "pool": float(len(after))} | ({"rubric_reward": 0.25} if len(pool) else {})
    evidence = records_of(k, judged)
    store.commit(IterationRecord(k, draws, judged, [None] * TASKS, evidence, pool, update, metrics, new, checkpoint))
    return new


def write_checkpoint(folder: Path, content: str) -> None:
    """Files with a manifest, as the engine writes them."""
    draft = draft_beside(folder)
    digests = {}
    for name in ("weights.bin", "moments.bin"):
        (draft / name).write_bytes(hashlib.shake_256(f"{name}{content}".encode()).digest(9000))
        sync(draft / name)
        digests[name] = hashlib.sha256((draft / name).read_bytes()).hexdigest()
    (draft / "manifest.json").write_text(json.dumps({"format": 1, "facts": {"version": 7}, "sha256": digests}))
    sync(draft / "manifest.json")
    sync(draft)
    swap_in(draft, folder)


def _group(store: RunStore, k: int, task_id: str, text_size: int) -> Group:
    found = store.finished_group(k, task_id)
    if found is not None:
        return found
    random = np.random.default_rng([k, int(task_id[-1])])
    rollouts = tuple(_rollout(f"k{k}/{task_id}/{j}", task_id, random, text_size) for j in range(GROUP))
    group = Group(Task(task_id, f"do {task_id}", ("cleaning",), "data"), rollouts, GROUP)
    store.save_group(k, group)
    with store.writing(), (store.folder / ROLLED).open("a") as log:
        log.write(f"{k} {task_id}\n")
    return group


def _rollout(name: str, task_id: str, random: np.random.Generator, text_size: int) -> Rollout:
    reward = float(random.integers(2))
    turns = tuple(
        Turn(
            f"turn {n}",
            (ToolCall("shell", {"command": f"ls {n}"}),),
            (Observation(random.bytes(text_size).hex()),),
        )
        for n in range(3)
    )
    rows = (
        Tokens(
            random.integers(0, 99, 12),
            np.arange(12) % 3 == 2,
            -random.random(12),
            np.where(np.arange(12) % 3 == 2, 4, -1),
        ),
    )
    return Rollout(Trajectory(name, task_id, turns, StopReason.FINISHED, "system", rows), reward, bool(reward))


def _judged(group: Group, pool: Pool) -> Group:
    verdicts = {rubric.id: Verdict.PASS if n % 2 else Verdict.FAIL for n, rubric in enumerate(pool.rubrics)}
    rollouts = [
        Rollout(r.trajectory, r.reward, r.success, Judgment(pool.version, "test", verdicts)) for r in group.rollouts
    ]
    return Group(group.task, tuple(rollouts), group.size)


def content_of(folder: Path) -> dict[str, Any]:
    """What must be the same however often a run was interrupted: all rows, files and the last state."""
    with closing(sqlite3.connect(folder / "run.db")) as db:
        return {
            "seals": db.execute("SELECT * FROM seals WHERE name GLOB 'k*' ORDER BY name").fetchall(),
            "files": db.execute("SELECT * FROM files ORDER BY name").fetchall(),
            "state": db.execute("SELECT state FROM iterations ORDER BY k DESC LIMIT 1").fetchone(),
            "chunks": sorted(path.name for path in (folder / "trajectories").iterdir()),
            # One more may be left by a process that died between its commit and its clearing up.
            "checkpoints": sorted(path.name for path in (folder / "checkpoints").iterdir())[-2:],
        }


def rolled_twice(folder: Path) -> list[str]:
    """Groups that were rolled out more than once although they had been kept."""
    lines = (folder / ROLLED).read_text().splitlines()
    return sorted({line for line in lines if lines.count(line) > 1})


def in_child(action: Any) -> int:
    """Run `action` in a forked process; gives its wait status."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    try:
        action()
        os._exit(0)
    except BaseException:
        os._exit(1)
