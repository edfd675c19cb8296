"""The thresholds of a pair's life in exact arithmetic."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from arise.method.lifecycle import fate
from arise.types import Fate


@given(st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.booleans())
def test_fate_equals_exact_comparison_with_three_and_nine_tenths(counts: tuple[int, int], active: bool) -> None:
    rate = Fraction(*counts)
    if rate >= Fraction(9, 10):
        expected = Fate.RETIRE
    elif rate <= Fraction(3, 10):
        expected = Fate.REFINE if active else Fate.ACTIVATE
    else:
        expected = Fate.HIDE if active else Fate.KEEP
    assert fate(active, *counts) is expected


@given(st.integers(1, 3000), st.booleans())
def test_the_thresholds_themselves_are_inside(tenths: int, active: bool) -> None:
    assert fate(active, 9 * tenths, 10 * tenths) is Fate.RETIRE
    assert fate(active, 3 * tenths, 10 * tenths) in (Fate.REFINE, Fate.ACTIVATE)
