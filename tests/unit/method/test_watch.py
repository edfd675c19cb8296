from arise.config import PoolLimits, Watch
from arise.method.evidence import records_of
from arise.method.lifecycle import Evolution, evolve
from arise.method.pass_rate import window_tallies
from arise.method.watch import reopened, unlearned
from arise.types import Group, Judgment, Pool, PoolEvent, Rollout, StopReason, Tally, Trajectory
from tests.builders import FAIL, PASS, a_pair, a_task

WATCH = Watch(share=0.5, reopen_below=0.7, min_evaluations=4)
POOL = Pool((a_pair("r003"),), 5, 3, (a_pair("r001", revision=2), a_pair("r002")))


def test_retired_pairs_are_remembered_with_their_skill_hidden() -> None:
    pool = Pool((a_pair("r001", active=True), a_pair("r002")), 1, 2)
    after = evolve(pool, {"r001": Tally(9, 10)}, iteration=10).pool
    assert [pair.rubric.id for pair in after.pairs] == ["r002"]
    assert after.retired == (a_pair("r001"),)


def test_enough_verdicts_below_the_threshold_bring_a_pair_back() -> None:
    tallies = {"r001": Tally(2, 4), "r002": Tally(3, 10)}
    assert [pair.rubric.id for pair in unlearned(POOL, tallies, WATCH)] == ["r002", "r001"]
    assert unlearned(POOL, {"r001": Tally(0, 3), "r002": Tally(7, 10)}, WATCH) == ()


def test_a_returned_pair_is_hidden_keeps_its_id_and_leaves_the_retired() -> None:
    tallies = {"r001": Tally(1, 4)}
    evolution = Evolution(POOL, ())
    found = reopened(evolution, unlearned(POOL, tallies, WATCH), tallies, 20, 64)
    assert [pair.rubric.id for pair in found.pool.pairs] == ["r003", "r001"]
    assert [pair.rubric.id for pair in found.pool.retired] == ["r002"]
    assert found.pool.version == POOL.version + 1
    assert found.pool.born == POOL.born
    assert found.events == (PoolEvent(20, "r001", "reopen", 1, 4, 2),)


def test_a_full_pool_takes_nobody_back() -> None:
    assert reopened(Evolution(POOL, ()), POOL.retired, {}, 20, 1) == Evolution(POOL, ())


def test_watched_verdicts_count_for_the_watch() -> None:
    trajectory = Trajectory("t", "x1", (), StopReason.FINISHED)
    judgment = Judgment(1, "test", {"r003": PASS}, watched={"r001": FAIL})
    records = records_of(4, [Group(a_task(), (Rollout(trajectory, 0.0, False, judgment),), 1)])
    assert window_tallies(records, ["r001", "r003"]) == {"r001": Tally(0, 1), "r003": Tally(1, 1)}


def test_without_retirement_a_mastered_pair_stays_hidden() -> None:
    pool = Pool((a_pair("r001", active=True), a_pair("r002")), 1, 2)
    tallies = {"r001": Tally(10, 10), "r002": Tally(10, 10)}
    found = evolve(pool, tallies, iteration=10, limits=PoolLimits(retires=False))
    assert [(pair.rubric.id, pair.skill.active) for pair in found.pool.pairs] == [("r001", False), ("r002", False)]
    assert [(event.rubric_id, event.kind) for event in found.events] == [("r001", "hide")]
