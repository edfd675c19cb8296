import pytest

from arise.config.pool import PoolConfig
from arise.method.lifecycle import Evolution, deciding, evolve, fate, fates, refined, room
from arise.types import Capability, Fate, Pool, PoolEvent, Rewrite, Skill, Tally
from tests.builders import a_pair, a_pool, a_proposal

POOL = Pool(
    (
        a_pair("r001", active=True, revision=2),
        a_pair("r002", active=False),
        a_pair("r003", active=True),
        a_pair("r004", active=False),
        a_pair("r005", active=False),
    ),
    version=7,
    born=9,
)
TALLIES = {
    "r001": Tally(1, 10),
    "r002": Tally(1, 10),
    "r003": Tally(5, 10),
    "r004": Tally(10, 10),
    "r005": Tally(5, 10),
}


def test_fates_of_a_pool() -> None:
    assert fates(POOL, TALLIES) == {
        "r001": Fate.REFINE,
        "r002": Fate.ACTIVATE,
        "r003": Fate.HIDE,
        "r004": Fate.RETIRE,
        "r005": Fate.KEEP,
    }


def test_rubrics_without_verdicts_are_kept() -> None:
    assert set(fates(POOL, {}).values()) == {Fate.KEEP}


def test_too_few_evaluations_decide_nothing() -> None:
    few = PoolConfig(min_evaluations=11)
    assert set(fates(POOL, TALLIES, few).values()) == {Fate.KEEP}
    assert fates(POOL, TALLIES, PoolConfig(min_evaluations=10)) == fates(POOL, TALLIES)


def test_other_thresholds() -> None:
    assert fate(True, 5, 10, activate_at=0.5, retire_at=0.6) is Fate.REFINE
    assert fate(True, 6, 10, activate_at=0.5, retire_at=0.6) is Fate.RETIRE
    limits = PoolConfig(activate_at=0.5, retire_at=0.6)
    assert fates(POOL, TALLIES | {"r003": Tally(6, 10)}, limits)["r003"] is Fate.RETIRE
    assert fates(POOL, TALLIES, limits)["r005"] is Fate.ACTIVATE
    assert evolve(POOL, {"r005": Tally(5, 10)}, iteration=0, limits=limits).pool.find("r005").skill.active
    assert fate(False, 0, 1, activate_at=0.0, retire_at=1.0) is Fate.ACTIVATE
    assert fate(False, 1, 1, activate_at=0.0, retire_at=1.0) is Fate.RETIRE


@pytest.mark.parametrize(("low", "high"), [(0.9, 0.3), (0.5, 0.5), (-0.1, 0.9), (0.3, 1.1)])
def test_thresholds_must_be_ordered(low: float, high: float) -> None:
    with pytest.raises(ValueError, match=rf"^need 0 <= activate_at < retire_at <= 1, got {low} and {high}$"):
        fate(False, 1, 2, low, high)


def test_impossible_counts() -> None:
    with pytest.raises(ValueError, match=r"^tally 3 of 2: "):
        fate(False, 3, 2)
    with pytest.raises(ValueError, match=r"^tally 3 of 0: "):
        fates(POOL, {"r001": Tally(3, 0)})


def test_unknown_rubric() -> None:
    with pytest.raises(ValueError, match=r"^rubric 'zz' is not in pool version 7 \(active: r001, r002"):
        fates(POOL, {"zz": Tally(1, 2), "r001": Tally(1, 2)})
    with pytest.raises(ValueError, match=r"^rubric 'zz' is not in pool version 7"):
        evolve(POOL, TALLIES, iteration=9, rewrites={"zz": Rewrite("text")})


UNGUIDED = {"r001": Tally(0, 4), "r003": Tally(0, 4), "r004": Tally(0, 0)}


def test_all_verdicts_decide_as_in_the_paper() -> None:
    assert deciding(TALLIES, UNGUIDED) == TALLIES


def test_unguided_verdicts_decide_where_there_are_any() -> None:
    found = deciding(TALLIES, UNGUIDED, PoolConfig(rate="unguided"))
    assert found == TALLIES | {"r001": Tally(0, 4), "r003": Tally(0, 4)}


def test_a_pair_that_passes_only_under_guidance_is_hidden_by_all_and_refined_by_unguided_verdicts() -> None:
    pool, every, alone = Pool((a_pair("r001", active=True),), 1, 1), {"r001": Tally(48, 100)}, {"r001": Tally(4, 50)}
    hidden = evolve(pool, every, iteration=9, unguided=alone)
    assert hidden.events == (PoolEvent(9, "r001", "hide", 48, 100, 0, "", 4, 50),)
    refined_ = evolve(pool, every, iteration=9, unguided=alone, limits=PoolConfig(rate="unguided"))
    note = "skill unchanged: no rewrite was made"
    assert refined_.events == (PoolEvent(9, "r001", "refine", 48, 100, 0, note, 4, 50),)
    few = PoolConfig(rate="unguided", min_evaluations=51)
    assert evolve(pool, every, iteration=9, unguided=alone, limits=few).events == ()


def test_room_is_limited_by_new_pairs_and_by_the_pool() -> None:
    everything_kept = fates(POOL, {})
    assert room(POOL, everything_kept) == 8
    assert room(POOL, everything_kept, PoolConfig(max_pairs=6)) == 1
    assert room(POOL, fates(POOL, TALLIES), PoolConfig(max_pairs=6)) == 2
    assert room(POOL, everything_kept, PoolConfig(max_pairs=3)) == 0
    assert room(POOL, everything_kept, PoolConfig(max_new_pairs=0)) == 0


def test_refined_keeps_the_skill_active() -> None:
    assert refined(Skill("old", active=True, revision=3), "new") == Skill("new", True, 4, earlier=("old",))
    twice = refined(refined(Skill("a", active=True), "b"), "c")
    assert twice == Skill("c", True, 2, earlier=("a", "b"))


def evolved() -> Evolution:
    rewrites = {"r001": Rewrite("sharper")}
    proposals = [a_proposal("one"), a_proposal("two", Capability.EFFICIENCY)]
    return evolve(POOL, TALLIES, iteration=19, rewrites=rewrites, proposals=proposals)


def test_the_next_pool() -> None:
    pool = evolved().pool
    assert [rubric.id for rubric in pool.rubrics] == ["r001", "r002", "r003", "r005", "r010", "r011"]
    assert [pair.skill.active for pair in pool.pairs] == [True, True, False, False, False, False]
    assert pool.find("r001").skill == Skill("sharper", True, 3, earlier=("skill r001",))
    assert pool.find("r001").rubric == POOL.find("r001").rubric
    assert pool.find("r005") == POOL.find("r005")
    assert (pool.version, pool.born) == (8, 11)
    new = pool.find("r011")
    assert new.skill == Skill("skill two", active=False, revision=0)
    assert (new.rubric.criteria_text, new.rubric.issue_tag) == ("criterion two", "error_diagnosis")
    assert (new.rubric.capability, new.rubric.born, new.rubric.version) == (Capability.EFFICIENCY, 19, 1)
    assert (new.rubric.applicability_condition, new.rubric.rule_text) == ("always", "fail")
    assert (new.rubric.issue_refs, new.rubric.contrast_refs) == (("e1",), ("e2",))


def test_events_in_the_order_of_the_algorithm() -> None:
    assert evolved().events == (
        PoolEvent(19, "r002", "activate", 1, 10, 0),
        PoolEvent(19, "r001", "refine", 1, 10, 3),
        PoolEvent(19, "r003", "hide", 5, 10, 0),
        PoolEvent(19, "r004", "retire", 10, 10, 0),
        PoolEvent(19, "r010", "born", note="criterion one"),
        PoolEvent(19, "r011", "born", note="criterion two"),
    )


def test_a_pair_activated_now_is_not_refined_now() -> None:
    with pytest.raises(ValueError, match=r"^rewrite for 'r002', whose fate is activate: only refined skills change$"):
        evolve(POOL, TALLIES, iteration=9, rewrites={"r002": Rewrite("text")})


@pytest.mark.parametrize(
    ("rewrites", "note"),
    [
        ({}, "skill unchanged: no rewrite was made"),
        ({"r001": Rewrite(None, "not valid JSON")}, "skill unchanged: not valid JSON"),
    ],
)
def test_a_failed_refinement_keeps_the_old_skill(rewrites: dict[str, Rewrite], note: str) -> None:
    evolution = evolve(POOL, {"r001": Tally(0, 3)}, iteration=9, rewrites=rewrites)
    assert evolution.pool == POOL, "not even its version changes"
    assert evolution.events == (PoolEvent(9, "r001", "refine", 0, 3, 2, note),)


def test_an_update_without_fates_changes_nothing() -> None:
    assert evolve(POOL, {}, iteration=9) == Evolution(POOL, ())


def test_limits_of_an_update() -> None:
    with pytest.raises(ValueError, match=r"^9 proposals, but this update has room for 8$"):
        evolve(Pool(), {}, iteration=9, proposals=[a_proposal()] * 9)
    full = a_pool({f"r{n:03d}": Capability.EXECUTION for n in range(1, 65)})
    with pytest.raises(ValueError, match=r"^1 proposals, but this update has room for 0$"):
        evolve(full, {}, iteration=9, proposals=[a_proposal()])
    after = evolve(full, {"r001": Tally(9, 10)}, iteration=9, proposals=[a_proposal()])
    assert len(after.pool) == 64
    assert after.pool.pairs[-1].rubric.id == "r065"
    with pytest.raises(ValueError, match=r"room for 1$"):
        evolve(Pool(), {}, iteration=9, proposals=[a_proposal()] * 2, limits=PoolConfig(max_new_pairs=1))
