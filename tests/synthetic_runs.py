"""Run folders whose every number is chosen, in the real store's tables, for tests of reports, figures and tables."""

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import tomli_w

from arise.config import Config
from arise.evaluation.attempts import write_raw
from arise.run.store import RunStore
from arise.types import Attempt, Capability, Rollout, Rubric, StopReason, Trajectory
from arise.types.codec import to_json

Success = Callable[[str, int, int], bool | None]
"""(task, attempt, iteration) to the outcome of a held-out attempt; None = infrastructure fault."""

DOMAINS = ("data", "text")


def write_run(
    folder: Path,
    *,
    seed: int,
    success: Success,
    iterations: int = 6,
    every: int = 2,
    tasks: int = 4,
    attempts: int = 3,
    changes: Mapping[str, Any] | None = None,
    events: Sequence[tuple[int, str, str]] = (),
    all_fail: Callable[[int], bool] = lambda _: False,
    retention: Mapping[str, Mapping[int, str]] | None = None,
    weights: str = "start",
) -> Path:
    """A finished run: `events` are (iteration, rubric, kind), `retention` rubric to iteration to verdict letters."""
    values: dict[str, Any] = {
        "train": {"iterations": iterations, "tasks_per_iteration": 2, "group_size": 4, "seed": seed},
        "pool": {"update_every": every},
        "evidence": {"window": every},
        "evaluation": {"every": every, "attempts": attempts},
    }
    for section, given in (changes or {}).items():
        values[section] = values.get(section, {}) | given
    store = RunStore.open(folder)
    store.note({"weights": weights, "threads": "1", "torch": "2.0"})
    store.close()
    (folder / "config.toml").write_text(tomli_w.dumps(Config.model_validate(values).model_dump(exclude_none=True)))
    with closing(sqlite3.connect(folder / "run.db")) as db, db:
        for k in range(iterations):
            _iteration(db, k, all_fail(k))
        points = {"before": 0, "after": iterations} | {f"k{k:05d}": k for k in range(every, iterations, every)}
        for label, k in points.items():
            times = attempts if label in ("before", "after") else 1
            rows = [_attempt(label, n, a, k, success) for n in range(tasks) for a in range(times)]
            db.executemany(f"INSERT INTO attempts VALUES ({', '.join('?' * 12)})", rows)  # noqa: S608
            write_raw(folder, label, [_raw(row) for row in rows])
        _lives(db, events, retention or {})
    return folder


def _iteration(db: sqlite3.Connection, k: int, failed: bool) -> None:
    metrics = {
        "pass_rate": min(1.0, 0.1 * k),
        "rubric_reward": min(1.0, 0.4 + 0.05 * k),
        "all_fail": int(failed),
    }
    db.execute("INSERT INTO iterations VALUES (?, ?, NULL, NULL, ?)", (k, json.dumps(metrics), 100.0 + k))
    for name, seconds in (("seconds.rollouts", 1.5 + 0.25 * k), ("seconds.update", 0.5), ("peak_mib", 99.0)):
        db.execute("INSERT INTO vitals VALUES (?, ?, ?)", (k, name, seconds))
    db.execute("INSERT INTO verdict_counts VALUES ('r1', ?, 0, ?, ?, 0, 0)", (k, min(k, 8), 8 - min(k, 8)))
    for slot in range(2):
        won = 0 if failed else slot + 1
        db.execute("INSERT INTO groups VALUES (?, ?, ?, 4, 4, ?, ?)", (k, slot, f"train-{slot}", won, won / 4))
        capability = list(Capability)[(k + slot) % 5].value
        details = {"task_id": f"train-{slot}", "path": "adaptive", "cell": [f"type-{slot}", capability]}
        row = (k, slot, f"train-{slot}", "adaptive", json.dumps(details))
        db.execute("INSERT INTO draws VALUES (?, ?, ?, ?, ?)", row)


def _attempt(label: str, task: int, attempt: int, k: int, success: Success) -> tuple[Any, ...]:
    outcome = success(f"held-{task}", attempt, k)
    found = None if outcome is None else int(outcome)
    fault = "" if outcome is not None else "sandbox: lost"
    where = (DOMAINS[task % 2], f"type-{task % 2}")
    stop = "turn_limit" if (task + attempt) % 3 == 0 else "finished"
    return label, f"held-{task}", attempt, k, *where, found, found, stop, fault, 0, "{}"


def _raw(row: tuple[Any, ...]) -> Attempt:
    """The attempt that the raw file keeps."""
    label, task_id, number, k, domain, task_type, found, reward, stop, fault, leaked, _ = row
    success, ended = None if found is None else bool(found), StopReason(stop)
    rollout = Rollout(Trajectory(f"eval/{label}/{task_id}/{number}", task_id, (), ended), reward, success, fault=fault)
    where = label, task_id, number, k, domain, task_type
    return Attempt(*where, success, reward, ended, fault, leaked, rollout=rollout)


def _lives(
    db: sqlite3.Connection, events: Sequence[tuple[int, str, str]], retention: Mapping[str, Mapping[int, str]]
) -> None:
    for seq, (iteration, rubric_id, kind) in enumerate(events):
        passes = 10 if kind == "retire" else 2
        db.execute(
            "INSERT INTO events VALUES (?, ?, ?, ?, ?, 10, 0, '')", (iteration - 1, seq, rubric_id, kind, passes)
        )
        words = f"criterion {rubric_id.partition('-')[0]}"  # r1-again has the words of r1
        rubric = Rubric(rubric_id, words, "tag", Capability.VERIFICATION, "always", "fail if not")
        db.execute("INSERT OR IGNORE INTO pairs VALUES (?, ?, ?)", (rubric_id, iteration, json.dumps(to_json(rubric))))
    verdicts: dict[tuple[int, int], dict[str, str]] = {}
    for rubric_id, by_iteration in retention.items():
        for k, letters in by_iteration.items():
            for n, letter in enumerate(letters):
                verdicts.setdefault((k, n), {})[rubric_id] = "pass" if letter == "1" else "fail"
    for (k, n), given in verdicts.items():
        head = (f"retention/k{k:05d}", f"train-{n % 2}", n, k, "data", "type-0", 1, 1.0, "finished", "", 0)
        db.execute(f"INSERT INTO attempts VALUES ({', '.join('?' * 12)})", (*head, json.dumps(given)))  # noqa: S608
