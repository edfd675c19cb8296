"""golden.md sections 1 and 2: separately normalised advantages, and what they must not be."""

import numpy as np
import pytest

from arise.method.advantage import advantage_parts, combined_advantages, normalized, rubric_advantages
from tests.builders import NAN, close

BINARY = [1, 0, 0, 1, 0, 0, 0, 1]
VERDICTS: list[list[float]] = [
    [1, 0, 1, NAN, 0, 0, 1, NAN],
    [NAN, 1, 0, 0, 1, NAN, 1, NAN],
    [1, 1, 1, 1, 1, 1, 1, 1],
    [NAN, NAN, 1, NAN, NAN, NAN, NAN, NAN],
]
EXPECTED = [
    1.05369611194839728,
    -0.569743180159879461,
    -0.575929397982776724,
    0.719984381914658919,
    -0.569743180159879461,
    -0.692217667049038367,
    -0.269743180759879460,
    1.29099444606913897,
]


def test_binary_rewards() -> None:
    passed, failed = 1.29099444606913897, -0.774596667641483380
    close(normalized(BINARY), [passed if r else failed for r in BINARY])


def test_binary_rewards_do_not_use_the_sample_deviation() -> None:
    wrong = [1.20761472651578655 if r else -0.724568835909471931 for r in BINARY]
    assert np.abs(normalized(BINARY) - wrong).min() > 1e-2


def test_partial_credit() -> None:
    low = -0.641688946037394971
    expected = [2.29174623584783918, 0.825028644905222105, low, low, 0.0916698494339135673, low, low, low]
    actual = normalized([1, 0.5, 0, 0, 0.25, 0, 0, 0])
    close(actual, expected)
    assert abs(actual.sum()) < 1e-12


@pytest.mark.parametrize(
    ("reward", "size"), [(0, 8), (1, 8), (0.7, 8), (0.1, 7), (0.35, 6), (0.95, 7), (0.3, 10), (0.1, 3)]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_constant_group_is_exactly_zero(reward: float, size: int, dtype: type[np.floating]) -> None:
    values = np.full(size, reward, dtype=dtype)
    assert normalized(values).tolist() == [0.0] * size


def test_the_naive_formula_would_fail_that_check() -> None:
    values = np.full(7, 0.1)
    mean = sum(values.tolist()) / 7
    naive = (values - mean) / (np.sqrt(np.mean((values - mean) ** 2)) + 1e-9)
    assert np.abs(naive).max() > 1e-9


def test_rubric_advantages() -> None:
    advantage_IJ, informative_I = rubric_advantages(VERDICTS)
    one, low, high = 0.999999998000000004, -1.22474486889158905, 0.816496579261059369
    assert informative_I.tolist() == [1, 1, 0, 0]
    close(advantage_IJ[0], [one, -one, one, 0, -one, -one, one, 0])
    close(advantage_IJ[1], [0, high, low, low, high, 0, high, 0])
    assert not advantage_IJ[2:].any()


def test_combined_advantages() -> None:
    close(combined_advantages(BINARY, VERDICTS), EXPECTED)


@pytest.mark.parametrize(
    ("trajectory", "wrong"),
    [
        pytest.param(0, 1.20369611164839728, id="divide-by-applicable"),
        pytest.param(3, 0.536272651580920561, id="divide-by-applicable"),
        pytest.param(5, -0.842217666749038367, id="divide-by-applicable"),
        pytest.param(7, 0.903696112248397277, id="weight-on-fallback"),
        pytest.param(0, 0.978696112098397277, id="I-counts-constant-rubrics"),
        pytest.param(1, -0.555980423754458914, id="I-counts-constant-rubrics"),
        pytest.param(2, -0.559073532665907545, id="I-counts-constant-rubrics"),
        pytest.param(3, 0.811840247081528098, id="I-counts-constant-rubrics"),
        pytest.param(4, -0.555980423754458914, id="I-counts-constant-rubrics"),
        pytest.param(5, -0.617217667199038367, id="I-counts-constant-rubrics"),
        pytest.param(6, -0.405980424054458913, id="I-counts-constant-rubrics"),
    ],
)
def test_combined_advantages_are_none_of_the_wrong_columns(trajectory: int, wrong: float) -> None:
    assert abs(combined_advantages(BINARY, VERDICTS)[trajectory] - wrong) > 1e-2


def test_without_informative_rubrics_the_task_advantage_stays_whole() -> None:
    np.testing.assert_array_equal(combined_advantages(BINARY, VERDICTS[2:]), normalized(BINARY))


def test_an_all_failure_group_gets_its_signal_from_rubrics() -> None:
    expected = [
        0.149999999700000001,
        -0.0275255128108410952,
        -0.0337117306337383575,
        -0.183711730333738358,
        -0.0275255128108410952,
        -0.149999999700000001,
        0.272474486589158906,
        0.0,
    ]
    actual = combined_advantages([0] * 8, VERDICTS)
    close(actual, expected)
    assert actual[7] == 0.0


def test_parts_are_the_two_terms() -> None:
    task_J, rubric_J, usable_J = advantage_parts(BINARY, VERDICTS)
    np.testing.assert_array_equal(task_J, normalized(BINARY))
    assert usable_J.tolist() == [True] * 7 + [False]
    close((0.7 * task_J + 0.3 * rubric_J)[:7], EXPECTED[:7])
