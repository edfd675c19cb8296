"""Which skills are needed most: when an update last found their rubric failing, and how badly."""

from dataclasses import replace

from arise.method.lifecycle import evolve, fates
from arise.method.need import urgency, with_needs
from arise.types import Need, Pool, Skill, Tally
from tests.builders import a_pair

POOL = Pool(
    (a_pair("idle", active=True), a_pair("activated"), a_pair("refined", active=True), a_pair("hidden", active=True))
)
TALLIES = {"activated": Tally(2, 10), "refined": Tally(1, 10), "hidden": Tally(5, 10)}


def test_an_update_notes_what_it_found_failing() -> None:
    decided = fates(POOL, TALLIES)
    pool = with_needs(evolve(POOL, TALLIES, iteration=20).pool, decided, TALLIES, 20)
    needs = {pair.rubric.id: pair.skill.need for pair in pool.pairs}
    assert needs == {"idle": None, "activated": Need(20, 2, 10), "refined": Need(20, 1, 10), "hidden": None}
    later = with_needs(pool, {}, {}, 30)
    assert later == pool, "without a finding the earlier need stands"


def test_urgency_sorts_newest_then_weakest() -> None:
    def pair_of(need: Need | None) -> tuple[int, float]:
        return urgency(replace(a_pair("a"), skill=Skill("text", need=need)))

    assert pair_of(Need(30, 3, 10)) < pair_of(Need(20, 0, 10)) < pair_of(Need(20, 1, 10)) < pair_of(None)
