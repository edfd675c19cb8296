import numpy as np
import pytest

from arise.method.weighted_pick import WeightedPick


def picks(weights: list[float]) -> WeightedPick:
    return WeightedPick(np.arange(10, 10 + len(weights)), np.array(weights))


def test_draws_in_proportion_with_the_probability_it_states() -> None:
    random = np.random.default_rng(0)
    chosen = [picks([1.0, 3.0]).draw(random) for _ in range(4000)]
    assert dict(chosen) == {10: 0.25, 11: 0.75}
    share = sum(item == 11 for item, _ in chosen) / 4000
    assert abs(share - 0.75) < 4 * np.sqrt(0.75 * 0.25 / 4000)


def test_removed_items_leave_and_the_rest_renormalises() -> None:
    random = np.random.default_rng(0)
    pick = picks([1.0, 2.0, 1.0])
    pick.remove(11)
    assert pick.left == 2
    chosen = [pick.draw(random) for _ in range(500)]
    assert {item for item, _ in chosen} == {10, 12}
    assert {probability for _, probability in chosen} == {0.5}


def test_removal_of_nearly_everything() -> None:
    random = np.random.default_rng(0)
    pick = picks([1.0] * 1000)
    for item in range(10, 1009):
        pick.remove(item)
    assert pick.left == 1
    assert pick.draw(random) == (1009, 1.0)
    assert pick.draw(random) == (1009, 1.0)


def test_the_stated_probability_follows_unequal_weights() -> None:
    pick = picks([4.0, 2.0, 1.0, 1.0])
    pick.remove(11)
    stated = dict(pick.draw(np.random.default_rng(seed)) for seed in range(60))
    assert stated == {10: 4 / 6, 12: 1 / 6, 13: 1 / 6}
    pick.remove(10)
    stated = dict(pick.draw(np.random.default_rng(seed)) for seed in range(60))
    assert stated == {12: 0.5, 13: 0.5}


def test_removing_twice_or_what_is_not_there_changes_nothing() -> None:
    pick = picks([1.0, 1.0, 1.0])
    for item in (11, 11, 5, 99):
        pick.remove(item)
    assert pick.left == 2
    assert pick.draw(np.random.default_rng(0))[1] == 0.5


def test_removal_after_a_rebuild() -> None:
    random = np.random.default_rng(0)
    pick = picks([1.0, 1.0, 1.0, 1.0])
    for item in (10, 11, 12):
        pick.remove(item)
        assert pick.draw(random)[0] not in range(10, item + 1)
    pick.remove(10)
    assert pick.left == 1
    pick.remove(13)
    assert pick.left == 0


@pytest.mark.parametrize("weights", [[], [1.0]])
def test_drawing_from_an_empty_set_is_an_error(weights: list[float]) -> None:
    pick = picks(weights)
    pick.remove(10)
    assert pick.left == 0
    with pytest.raises(ValueError, match=r"^nothing is left to draw from$"):
        pick.draw(np.random.default_rng(0))
