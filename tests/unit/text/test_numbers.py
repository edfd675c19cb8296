"""Numbers as people read them."""

import pytest

from arise.text import numbers


def test_formats_of_rates_and_differences() -> None:
    assert numbers.percent(0.382) == "38.2 %"
    assert numbers.points(1 / 3) == "33.3"
    assert numbers.counted_rate(13, 34) == "38.2 % (13 of 34)"
    assert (numbers.counted_rate(2, 4), numbers.counted_rate(2, 5)) == ("2 of 4", "40.0 % (2 of 5)")
    assert numbers.interval(0.221, 0.549) == "95 % 22.1 to 54.9"
    assert numbers.difference(0.031) == "+3.1"


def test_zero_prints_without_a_minus() -> None:
    assert numbers.percent(-1e-9) == "0.0 %"
    assert numbers.difference(-1e-9) == "+0.0"
    assert numbers.signed(-0.001) == "+0.00"
    assert numbers.decimal(-0.001) == "0.00"
    assert numbers.interval(-1e-9, 0.5, signed=True) == "95 % +0.0 to +50.0"


def test_what_is_missing_is_a_dash_and_never_a_zero() -> None:
    for written in (numbers.percent(None), numbers.points(None), numbers.counted_rate(0, 0), numbers.decimal(None)):
        assert written == "–"
    assert numbers.interval(None, None) == numbers.difference(None) == numbers.signed(None) == "–"


@pytest.mark.parametrize(
    ("seconds", "written"),
    [(0.4, "0 s"), (89, "89 s"), (90, "2 min"), (3540, "59 min"), (3600, "1 h 00 min"), (11100, "3 h 05 min"),
     (3599, "1 h 00 min"), (400_000, "5 days")],
)  # fmt: skip
def test_durations_have_their_natural_unit(seconds: float, written: str) -> None:
    assert numbers.duration(seconds) == written


def test_amounts() -> None:
    assert numbers.amount(1234567.2) == "1 234 567"
    assert numbers.dollars(1234.5) == "$1,234.50"
    assert numbers.dollars(0.00042, 4) == "$0.0004"
    assert numbers.seconds(12.34) == "12.3 s"
    assert [numbers.size(value) for value in (512, 2_000_000, 3.5e9)] == ["0.5 KB", "2.0 MB", "3.5 GB"]
