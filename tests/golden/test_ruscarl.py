"""Golden section 9: the scaffold's schedule and the reward of a scored response."""

import pytest

from arise.baselines.response import criteria_score
from arise.baselines.ruscarl import decay, ratio, shown_count

ITERATIONS, GROUP, CRITERIA = 150, 8, 36
SCHEDULE = [
    (1, 0.999999999986, [36, 31, 26, 21, 15, 10, 5, 0]),
    (10, 0.999999973594, [36, 31, 26, 21, 15, 10, 5, 0]),
    (20, 0.999883837311, [36, 31, 26, 21, 15, 10, 5, 0]),
    (25, 0.992353048076, [36, 31, 26, 20, 15, 10, 5, 0]),
    (28, 0.912854175506, [33, 28, 23, 19, 14, 9, 5, 0]),
    (30, 0.661758587572, [24, 20, 17, 14, 10, 7, 3, 0]),
    (31, 0.458151820670, [16, 14, 12, 9, 7, 5, 2, 0]),
    (32, 0.267623926217, [10, 8, 7, 6, 4, 3, 1, 0]),
    (33, 0.136385908714, [5, 4, 4, 3, 2, 1, 1, 0]),
    (35, 0.0286512100496, [1, 1, 1, 1, 0, 0, 0, 0]),
    (38, 0.00237526434120, [0, 0, 0, 0, 0, 0, 0, 0]),
    (45, 6.70432054326e-6, [0, 0, 0, 0, 0, 0, 0, 0]),
    (150, 3.72007597602e-44, [0, 0, 0, 0, 0, 0, 0, 0]),
]


@pytest.mark.parametrize(("number", "left", "shown"), SCHEDULE)
def test_the_scaffold_decays_as_published(number: int, left: float, shown: list[int]) -> None:
    assert decay(number - 1, ITERATIONS) == pytest.approx(left, rel=1e-11)
    shares = [ratio(j, GROUP, decay(number - 1, ITERATIONS)) for j in range(GROUP)]
    assert [shown_count(CRITERIA, share) for share in shares] == shown


def test_a_group_of_one_sees_everything() -> None:
    assert ratio(0, 1, 0.1) == 1.0


@pytest.mark.parametrize(
    ("points", "met", "score"),
    [([5, 3, -4], [True, False, True], 0.125), ([-2.0], [True], 0.0), ([], [], 0.0)],
)
def test_criteria_score(points: list[float], met: list[bool], score: float) -> None:
    assert criteria_score(points, met) == score
