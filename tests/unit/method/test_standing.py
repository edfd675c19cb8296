from typing import NamedTuple

import pytest

from arise.method.standing import Standing, standing, without_effect
from arise.types import PairStatus, Tally


class Happened(NamedTuple):
    kind: str
    guided: Tally = Tally(0, 10)


def stands(*kinds: str) -> Standing:
    return standing(map(Happened, kinds))


@pytest.mark.parametrize(
    ("kinds", "status"),
    [
        ((), "hidden"),
        (("born",), "hidden"),
        (("imported",), "hidden"),
        (("born", "activate"), "shown"),
        (("born", "activate", "refine"), "shown"),
        (("born", "activate", "hide"), "hidden"),
        (("born", "activate", "retire"), "retired"),
        (("born", "retire", "reopen"), "hidden"),
        (("born", "retire", "reopen", "activate"), "shown"),
        (("born", "retire", "reopen", "retire"), "retired"),
    ],
)
def test_the_last_event_says_where_a_pair_stands(kinds: tuple[str, ...], status: str) -> None:
    assert stands(*kinds) == Standing(PairStatus(status))
    assert str(stands(*kinds)) == status


def test_an_event_of_an_unknown_kind_leaves_the_status_as_it_was() -> None:
    assert stands("born", "activate", "merged") == Standing(PairStatus.SHOWN)


def test_four_refinements_of_which_the_last_three_helped_nothing_are_stuck() -> None:
    assert not stands("born", "activate", *["refine"] * 3).stuck
    found = stands("born", "activate", *["refine"] * 4)
    assert found == Standing(PairStatus.SHOWN, stuck=True)
    assert str(found) == "shown, stuck"


@pytest.mark.parametrize("end", ["hide", "retire"])
def test_a_skill_that_is_not_shown_is_not_stuck(end: str) -> None:
    assert not stands("born", "activate", *["refine"] * 4, end).stuck


def test_refinements_count_since_the_skill_was_last_shown() -> None:
    before = ("born", "activate", *["refine"] * 3, "hide", "activate")
    assert not stands(*before, *["refine"] * 3).stuck
    assert stands(*before, *["refine"] * 4).stuck


@pytest.mark.parametrize(
    ("windows", "stuck"),
    [
        ([(1, 10), (1, 10), (1, 10), (1, 10)], True),
        ([(1, 10), (1, 10), (1, 10), (2, 10)], False),  # 4 of 30 after 1 of 10
        ([(1, 10), (0, 10), (0, 10), (3, 10)], True),  # 3 of 30: no better together
        ([(2, 10), (1, 10), (1, 10), (1, 10)], True),
        ([(0, 10), (0, 10), (0, 10), (1, 100)], False),
        ([(0, 10), (0, 10), (0, 10)], False),  # too early to say
        ([(0, 10), (3, 10), (2, 10), (2, 10), (2, 10)], True),  # the first rewrite helped, the last three did not
        ([(3, 10), (0, 10), (3, 10), (2, 10), (2, 10)], False),
        ([(1, 10), (0, 0), (1, 10), (1, 10)], False),  # nobody saw it in one of the windows
        ([(1, 10), (0, 0), (1, 10), (1, 10), (1, 10)], True),
        ([], False),
    ],
)
def test_refinements_without_effect(windows: list[tuple[int, int]], stuck: bool) -> None:
    assert without_effect([Tally(*window) for window in windows]) is stuck


def test_the_number_of_refinements_is_a_parameter() -> None:
    assert without_effect([Tally(1, 10), Tally(1, 10)], after=1)
    assert not without_effect([Tally(1, 10), Tally(2, 10)], after=1)
    assert not without_effect([Tally(1, 10)], after=1)
