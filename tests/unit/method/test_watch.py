from dataclasses import replace

from arise.config.pool import PoolConfig, WatchConfig
from arise.method.evidence import records_of
from arise.method.lifecycle import Evolution, evolve
from arise.method.pass_rate import window_tallies
from arise.method.watch import Relapse, missing_again, reopened, unlearned
from arise.types import Group, Judgment, Pool, PoolEvent, Rejection, Return, Rollout, StopReason, Tally, Trajectory
from tests.builders import FAIL, PASS, a_pair, a_proposal, a_task

WATCH = WatchConfig(share=0.5, reopen_below=0.7, min_evaluations=4)
GONE = replace(a_pair("r001", revision=2), retired=10), replace(a_pair("r002"), retired=15)
POOL = Pool((a_pair("r003"),), 5, 3, GONE)


def test_retired_pairs_are_remembered_with_their_skill_hidden_and_when_they_left() -> None:
    pool = Pool((a_pair("r001", active=True), a_pair("r002")), 1, 2)
    after = evolve(pool, {"r001": Tally(9, 10)}, iteration=10).pool
    assert [pair.rubric.id for pair in after.pairs] == ["r002"]
    assert after.retired == (replace(a_pair("r001"), retired=10),)


def test_enough_verdicts_below_the_threshold_bring_a_pair_back() -> None:
    tallies, unguided = {"r001": Tally(2, 4), "r002": Tally(3, 10)}, {"r001": Tally(1, 3)}
    assert unlearned(POOL, tallies, WATCH, unguided) == (
        Relapse(GONE[1], Tally(3, 10), Tally(0, 0)),
        Relapse(GONE[0], Tally(2, 4), Tally(1, 3)),
    )
    assert unlearned(POOL, {"r001": Tally(0, 3), "r002": Tally(7, 10)}, WATCH) == ()


def test_a_returned_pair_is_hidden_keeps_its_id_and_leaves_the_retired() -> None:
    evolution = Evolution(POOL, (PoolEvent(20, "r003", "activate"),))
    found = reopened(evolution, [Relapse(GONE[0], Tally(1, 4), Tally(0, 2), "why")], 20, 64)
    assert found.pool.pairs == (a_pair("r003"), a_pair("r001", revision=2))
    assert found.pool.retired == GONE[1:]
    assert found.pool.version == POOL.version + 1
    assert found.pool.born == POOL.born
    assert found.events == (
        PoolEvent(20, "r003", "activate"),
        PoolEvent(20, "r001", "reopen", 1, 4, 2, "why", 0, 2),
    )


def test_a_full_pool_reopens_no_pair_and_one_with_room_the_first() -> None:
    relapses = [Relapse(GONE[1]), Relapse(GONE[1], note="again"), Relapse(GONE[0])]
    assert reopened(Evolution(POOL, ()), relapses, 20, 1) == Evolution(POOL, ())
    assert reopened(Evolution(POOL, ()), [], 20, 9) == Evolution(POOL, ())
    found = reopened(Evolution(POOL, ()), relapses, 20, 2)
    assert [event.rubric_id for event in found.events] == ["r002"]
    both = reopened(Evolution(POOL, ()), relapses, 20, 3)
    assert [(event.rubric_id, event.note) for event in both.events] == [("r002", ""), ("r001", "")]


def a_return(*refs: str) -> Return:
    return Return("r001", replace(a_proposal("one"), issue_refs=refs))


def test_issues_since_its_retirement_bring_a_pair_back() -> None:
    made = {"a": 9, "b": 10, "c": 11, "d": 12, "e": 13, "f": 14}
    found, rejected = missing_again(POOL, [a_return("a", "b", "c", "c")], made, 2)
    assert (found, rejected) == ([Relapse(GONE[0], note="missing in 2 records since its retirement: b, c")], [])
    found, _ = missing_again(POOL, [a_return("b", "c", "d", "e", "f")], made, 2)
    assert found[0].note == "missing in 5 records since its retirement: b, c, d, e and 1 more"
    found, _ = missing_again(POOL, [a_return("b", "c", "d", "e")], made, 2)
    assert found[0].note == "missing in 4 records since its retirement: b, c, d, e"


def test_older_or_too_few_issues_bring_no_pair_back() -> None:
    reason = "repeats r001, retired after iteration 10: 1 of the records it cites are from after that, 2 are needed"
    found, rejected = missing_again(POOL, [a_return("a", "b", "unknown")], {"a": 9, "b": 10}, 2)
    assert (found, rejected) == ([], [Rejection("criterion one", reason)])
    assert missing_again(POOL, [], {}, 2) == ([], [])


def test_watched_verdicts_count_for_the_watch() -> None:
    trajectory = Trajectory("t", "x1", (), StopReason.FINISHED)
    judgment = Judgment(1, "test", {"r003": PASS}, watched={"r001": FAIL})
    records = records_of(4, [Group(a_task(), (Rollout(trajectory, 0.0, False, judgment),), 1)])
    assert window_tallies(records, ["r001", "r003"]) == {"r001": Tally(0, 1), "r003": Tally(1, 1)}


def test_without_retirement_a_mastered_pair_stays_hidden() -> None:
    pool = Pool((a_pair("r001", active=True), a_pair("r002")), 1, 2)
    tallies = {"r001": Tally(10, 10), "r002": Tally(10, 10)}
    found = evolve(pool, tallies, iteration=10, limits=PoolConfig(retires=False))
    assert [(pair.rubric.id, pair.skill.active) for pair in found.pool.pairs] == [("r001", False), ("r002", False)]
    assert [(event.rubric_id, event.kind) for event in found.events] == [("r001", "hide")]
