"""The invariants of every run; each check reads the store and yields violations."""

import json
import math
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from arise.config import Config
from arise.config.baselines import ElicitedCriteria
from arise.config.file import load_config
from arise.config.sampler import CapabilitySampling
from arise.run.chunks import decompress
from arise.run.folder import CONFIG_FILE
from arise.run.numbering import iteration_of
from arise.run.read_only import read_only
from arise.text.numbers import dollars


@dataclass(frozen=True)
class Audited:
    """The run under audit: its database, opened read-only, and its folder."""

    db: sqlite3.Connection
    folder: Path

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Execute SQL."""
        return self.db.execute(sql, parameters).fetchall()

    @cached_property
    def config(self) -> Config:
        return load_config(self.folder / CONFIG_FILE)

    @cached_property
    def state(self) -> dict[str, Any]:
        """Return the last committed state, or an empty one before the first commit."""
        row = self.db.execute("SELECT state FROM iterations ORDER BY k DESC LIMIT 1").fetchone()
        return dict(decompress(row[0])) if row else {}


Look = Callable[[Audited], Iterator[str]]


def _missing_is_not_fail(run: Audited) -> Iterator[str]:
    for (name,) in run.db.execute("SELECT id FROM rollouts WHERE (reward IS NULL) != (success IS NULL)"):
        yield f"rollout {name} has a reward without an outcome, or an outcome without a reward"
    for (name,) in run.db.execute("SELECT id FROM rollouts WHERE fault != '' AND reward IS NOT NULL"):
        yield f"rollout {name} has a fault and a reward"
    for (name,) in run.db.execute("SELECT id FROM rollouts WHERE advantage IS NOT NULL AND reward IS NULL"):
        yield f"rollout {name} has an advantage without a reward"
    for name, rubric in run.db.execute(
        "SELECT rollout_id, rubric_id FROM verdicts WHERE verdict IS NULL AND reason = ''"
    ):
        yield f"rollout {name} has neither a verdict of {rubric} nor a reason for its absence"


def _verdicts_of_living_rubrics(run: Audited) -> Iterator[str]:
    if isinstance(run.config.criteria, ElicitedCriteria):
        return  # group-specific criteria have no birth event
    joined, left = defaultdict[str, list[int]](list), defaultdict[str, list[int]](list)
    for rubric, k, kind in run.db.execute("SELECT rubric_id, k, kind FROM events ORDER BY k, seq"):
        if kind in ("born", "imported", "reopen"):
            joined[rubric].append(k)
        elif kind == "retire":
            left[rubric].append(k)
    for rubric, k in run.db.execute("SELECT DISTINCT rubric_id, k FROM verdicts ORDER BY rubric_id, k"):
        if rubric not in joined:
            yield f"verdicts of {rubric}, which was never born"
        elif sum(before < k for before in joined[rubric]) - sum(last < k for last in left[rubric]) != 1:
            yield f"verdicts of {rubric} in iteration {iteration_of(k)}, when it was not in the pool"


def _pool_changes_on_schedule(run: Audited) -> Iterator[str]:
    limits = run.config.pool
    for k, new in run.db.execute("SELECT k, SUM(kind='born') FROM events WHERE k >= 0 GROUP BY k"):
        if iteration_of(k) % limits.update_every:
            yield f"the pool changed in iteration {iteration_of(k)}, between updates"
        if new > limits.max_new_pairs:
            yield f"{new} pairs were born in iteration {iteration_of(k)}, at most {limits.max_new_pairs} may be"
    for k, size in run.db.execute("SELECT k, json_extract(metrics, '$.pool') FROM iterations"):
        if size is not None and size > limits.max_pairs:
            yield f"{size:.0f} pairs after iteration {iteration_of(k)}, at most {limits.max_pairs} may be"


def _one_life(run: Audited) -> Iterator[str]:
    """Check that a pair is born once and hidden, only retired pairs reopen (hidden), and revisions increase."""
    active: dict[str, bool] = {}
    revision: dict[str, int] = {}
    gone: set[str] = set()
    for k, rubric, kind, new_revision in run.db.execute(
        "SELECT k, rubric_id, kind, revision FROM events ORDER BY k, kind='born', seq"
    ):
        place = f"{rubric}, {kind} in iteration {iteration_of(k)}"
        if kind in ("born", "imported"):
            if rubric in active:
                yield f"{place}: this id was used before"
            active[rubric], revision[rubric] = False, new_revision
            continue
        if kind == "reopen" and rubric in gone:
            gone.remove(rubric)
            active[rubric] = False
            continue
        if rubric not in active or rubric in gone:
            yield f"{place}: it is not in the pool"
            continue
        if kind in ("refine", "hide") and not active[rubric]:
            yield f"{place}: its skill was not shown"
        if kind == "activate" and active[rubric]:
            yield f"{place}: its skill was shown already"
        if new_revision not in (revision[rubric], revision[rubric] + (kind == "refine")):
            yield f"{place}: revision {new_revision} after {revision[rubric]}"
        active[rubric] = {"activate": True, "hide": False}.get(kind, active[rubric])
        revision[rubric] = new_revision
        if kind == "retire":
            gone.add(rubric)
    pairs = (run.state or {"pool": {"pairs": []}})["pool"]["pairs"]
    stated = {pair["rubric"]["id"]: (pair["skill"]["active"], pair["skill"]["revision"]) for pair in pairs}
    lived = {rubric: (active[rubric], revision[rubric]) for rubric in active if rubric not in gone}
    if stated != lived:
        differing = sorted(rubric for rubric in stated.keys() | lived.keys() if stated.get(rubric) != lived.get(rubric))
        yield f"the pool of the last state does not follow from the events: {', '.join(differing)}"


def _ledger(run: Audited) -> Iterator[str]:
    state = run.state
    ledger = state.get("sampler", {}).get("ledger")
    if not isinstance(ledger, dict) or "rubrics" not in ledger:
        return
    pool = {pair["rubric"]["id"] for pair in state["pool"]["pairs"]}
    for rubric, *_ in ledger["rubrics"]:
        if rubric not in pool:
            yield f"the ledger holds {rubric}, which is not in the pool"
    for task_type, rubric, passes, fails, _ in ledger["tallies"]:
        if not (passes >= 0 and fails >= 0):
            yield f"the ledger's mass of {rubric} on {task_type} is {passes}, {fails}"


def _batches(run: Audited) -> Iterator[str]:
    for k, task in run.db.execute("SELECT k, task_id FROM draws GROUP BY k, task_id HAVING COUNT(*) > 1"):
        yield f"task {task} was drawn twice in iteration {iteration_of(k)}"
    config = run.config
    if not isinstance(config.sampler, CapabilitySampling):
        return
    quota = max(1, math.ceil(config.sampler.quota_fraction * config.train.tasks_per_iteration))
    count: dict[tuple[int, str], int] = defaultdict(int)
    for k, details in run.db.execute("SELECT k, details FROM draws WHERE path='adaptive'"):
        count[k, " x ".join(json.loads(details)["cell"])] += 1
    for (k, cell), drawn in count.items():
        if drawn > quota:
            yield f"{drawn} slots of iteration {iteration_of(k)} went to {cell}, at most {quota} may"


def _skills_withheld(run: Audited) -> Iterator[str]:
    for label, leaked in run.db.execute("SELECT label, SUM(skill_bytes) FROM attempts GROUP BY label"):
        if leaked:
            yield f"evaluation {label}: {leaked} bytes of evolved skills in its prompts"


def _spend(run: Audited) -> Iterator[str]:
    cap, calls = run.config.budget.max_usd, run.folder / "calls.db"
    if not cap or not calls.exists():
        return
    recorded = read_only(calls)
    try:
        spent, dearest = recorded.execute("SELECT SUM(nano_usd), MAX(nano_usd) FROM spend").fetchone()
    finally:
        recorded.close()
    if (spent or 0) > cap * 1e9 + 32 * (dearest or 0):
        yield f"{dollars(spent / 1e9)} were spent of {dollars(cap)}"


INVARIANTS: dict[str, tuple[str, Look]] = {
    "absences": ("every missing reward or verdict has a reason and is left out of training", _missing_is_not_fail),
    "verdicts": ("every verdict belongs to a rubric of that time", _verdicts_of_living_rubrics),
    "schedule": ("the pool changes at updates only and stays within its limits", _pool_changes_on_schedule),
    "lives": ("a retired pair returns only by a reopening, and the last pool follows from its events", _one_life),
    "ledger": ("success and failure mass is not negative, and of active rubrics only", _ledger),
    "batches": ("no task twice in a batch, no cell over its quota", _batches),
    "evaluation": ("no evolved skill was in an evaluation prompt", _skills_withheld),
    "budget": ("spend is within the cap", _spend),
}
