"""A run whose one pair lives through everything that can happen to it, in the real store."""

from contextlib import closing
from pathlib import Path

from arise.coevolution import Update
from arise.method.evidence import records_of
from arise.method.lifecycle import evolve
from arise.method.pass_rate import window_tallies
from arise.method.watch import Relapse, reopened
from arise.run.record import IterationRecord
from arise.run.store import RunStore
from arise.types import (
    Draw,
    DrawPath,
    EvidenceRecord,
    Fate,
    Group,
    Judgment,
    Pool,
    PoolEvent,
    Rewrite,
    Rollout,
    ShownSkill,
    StopReason,
    Task,
    Trajectory,
    Verdict,
)
from arise.types.codec import to_json
from tests.builders import a_proposal

CONFIG = "[train]\ntasks_per_iteration = 1\n[pool]\nupdate_every = 2\n[evidence]\nwindow = 2\n"
TASK = Task("task-0", "do it", ("cleaning",), "data")
WINDOWS = (
    ("born", "", ""),
    ("activate", "", "0000"),
    *[("refine", "1000", "0000")] * 4,
    ("hide", "1111", "0000"),
    ("retire", "", "1111"),
    ("reopen", "", ""),
    ("activate", "", "0000"),
)
"""What each window of two iterations ends with, and its verdicts on r001 an iteration: with its skill, and without."""


def write_life(folder: Path, windows: int = len(WINDOWS)) -> list[PoolEvent]:
    """Write the first windows of the life; gives the events as they happened."""
    happened: list[PoolEvent] = []
    with closing(RunStore.open(folder)) as store:
        (folder / "config.toml").write_text(CONFIG)
        pool = Pool()
        for number, (kind, guided, alone) in enumerate(WINDOWS[:windows]):
            evidence: list[EvidenceRecord] = []
            for k in (2 * number, 2 * number + 1):
                group = _group(k, pool, guided, alone)
                evidence += (records := records_of(k, [group]))
                update = _update(pool, kind, evidence, k + 1) if k % 2 else None
                after = update.evolution.pool if update else pool
                happened += update.evolution.events if update else ()
                state, draws = {"pool": to_json(after)}, [Draw(TASK.id, DrawPath.UNIFORM, 1.0)]
                metrics = {"pool": float(len(after))}
                store.commit(IterationRecord(k, draws, [group], [None], records, pool, update, metrics, state, None))
                pool = after
    return happened


def _group(k: int, pool: Pool, guided: str, alone: str) -> Group:
    rollouts = []
    for j, letter in enumerate(guided + alone or "-"):
        shown = tuple(ShownSkill("r001", pair.skill.revision) for pair in pool.pairs) if j < len(guided) else ()
        verdicts = {"r001": Verdict.PASS if letter == "1" else Verdict.FAIL} if letter != "-" else {}
        trajectory = Trajectory(f"k{k}/task-0/{j}", TASK.id, (), StopReason.FINISHED, shown_skills=shown)
        rollouts.append(Rollout(trajectory, 0.0, False, Judgment(pool.version, "test", verdicts)))
    return Group(TASK, tuple(rollouts), len(rollouts))


def _update(pool: Pool, kind: str, evidence: list[EvidenceRecord], iteration: int) -> Update:
    if kind == "born":
        return Update(evolve(pool, {}, iteration=iteration, proposals=[a_proposal("one")]), (a_proposal("one"),), ())
    ids = [rubric.id for rubric in pool.rubrics]
    every, unguided = (window_tallies(evidence, ids, unguided=only) for only in (False, True))
    rewrites = {"r001": Rewrite(f"text of {iteration}")} if kind == Fate.REFINE else {}
    evolution = evolve(pool, every, iteration=iteration, unguided=unguided, rewrites=rewrites)
    if kind == "reopen":
        evolution = reopened(evolution, [Relapse(pool.retired[0], note="missing again")], iteration, 64)
    assert [event.kind for event in evolution.events] == [kind], "the letters give what the window says"
    return Update(evolution, (), ())
