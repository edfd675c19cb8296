"""Bad arrays are refused with the argument, the place and the value."""

import numpy as np
import pytest

from arise.method.arrays import finite, floats, fraction, same_length, unique, verdicts
from tests.builders import NAN


def test_good_values_pass_through_as_double_precision() -> None:
    assert floats("a", [1, 2]).dtype == np.float64
    assert finite("a", np.array([1.5], dtype=np.float32)).tolist() == [1.5]
    assert floats("a", [[1, 2]], dimensions=2).shape == (1, 2)
    np.testing.assert_array_equal(verdicts("y", [[0, 1, NAN]]), [[0, 1, NAN]])
    assert fraction("f", 0.0) == 0.0
    assert fraction("f", 1.0) == 1.0
    assert unique("ids", iter(["b", "a"])) == ("b", "a")
    same_length(a=np.zeros(2), b=np.zeros(2))


def test_wrong_dimensions() -> None:
    with pytest.raises(ValueError, match=r"^a must be 1-d, got shape \(1, 2\)$"):
        floats("a", [[1, 2]])


def test_every_check_names_its_argument() -> None:
    with pytest.raises(ValueError, match=r"^raw_J must be 1-d, got shape \(\)$"):
        finite("raw_J", 1.0)
    with pytest.raises(ValueError, match=r"^y must be 2-d, got shape \(1,\)$"):
        verdicts("y", [1.0])
    with pytest.raises(ValueError, match=r"^y\[0, 1, 0\] = 7\.0 is not a verdict"):
        verdicts("y", [[[1.0], [7.0]]], dimensions=3)


def test_not_numbers() -> None:
    with pytest.raises(ValueError, match=r"^a must hold numbers: "):
        floats("a", ["x"])
    with pytest.raises(ValueError, match=r"^a must hold numbers: "):
        floats("a", [[1], [1, 2]])


@pytest.mark.parametrize(("bad", "shown"), [(NAN, "nan"), (np.inf, "inf"), (-np.inf, "-inf")])
def test_not_finite(bad: float, shown: str) -> None:
    with pytest.raises(ValueError, match=rf"^raw_J\[1\] = {shown} is not finite; a missing value has no place"):
        finite("raw_J", [0.0, bad, NAN])


@pytest.mark.parametrize("bad", [0.5, 2.0, -1.0, np.inf])
def test_not_a_verdict(bad: float) -> None:
    with pytest.raises(ValueError, match=rf"^y\[1, 0\] = {bad} is not a verdict: use 1 \(pass\), 0 \(fail\) or nan"):
        verdicts("y", [[0.0, 1.0], [bad, bad]])


def test_lengths_differ() -> None:
    with pytest.raises(ValueError, match=r"^b has shape \(3,\), but a has shape \(2,\)$"):
        same_length(a=np.zeros(2), b=np.zeros(3))


@pytest.mark.parametrize("bad", [-0.01, 1.01, NAN])
def test_not_a_fraction(bad: float) -> None:
    with pytest.raises(ValueError, match=rf"^rubric_weight = {bad} must be between 0 and 1$"):
        fraction("rubric_weight", bad)


def test_duplicates_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^ids holds 'a' twice$"):
        unique("ids", ["a", "b", "a"])
