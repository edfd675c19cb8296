"""Intervals and tests against scipy, and the cases that scipy does not have against brute force."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from arise.analyze.statistics import (
    Agreement,
    Rate,
    Table,
    attributable,
    benjamini_hochberg,
    detectable_difference,
    exact_conditional,
    mcnemar,
    odds_ratio,
    paired_interval,
    wilson,
)


@pytest.mark.parametrize(("count", "total"), [(0, 1), (0, 7), (3, 10), (7, 7), (116, 200), (1999, 2000)])
def test_wilson_intervals_are_scipys(count: int, total: int) -> None:
    expected = stats.binomtest(count, total).proportion_ci(method="wilson")
    assert wilson(count, total) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_a_rate_of_nothing_is_undefined() -> None:
    assert Rate(0, 0).value is None
    assert Rate(0, 0).interval is None


@pytest.mark.parametrize("cells", [(8, 2, 1, 5), (3, 3, 3, 3), (0, 4, 5, 1), (40, 20, 61, 90), (1, 0, 0, 1)])
def test_one_stratum_is_fishers_exact_test(cells: tuple[int, int, int, int]) -> None:
    a, b, c, d = cells
    expected = stats.fisher_exact([[a, b], [c, d]]).pvalue
    assert exact_conditional([Table(a, b, c, d)]) == pytest.approx(expected, rel=1e-9)


def test_several_strata_are_a_sum_of_hypergeometric_variables() -> None:
    tables = [Table(2, 1, 1, 3), Table(3, 0, 1, 2), Table(1, 1, 0, 2), Table(2, 2, 0, 0)]
    useful = tables[:3]
    supports = []
    for t in useful:
        failed, having = t.failed_with + t.failed_without, t.failed_with + t.passed_with
        size = failed + t.passed_with + t.passed_without
        law = stats.hypergeom(size, failed, having)
        supports.append([(k, law.pmf(k)) for k in range(having + 1) if law.pmf(k) > 0])
    totals: dict[int, float] = {}
    for combination in itertools.product(*supports):
        key = sum(k for k, _ in combination)
        totals[key] = totals.get(key, 0.0) + math.prod(p for _, p in combination)
    seen = totals[sum(t.failed_with for t in useful)]
    expected = sum(p for p in totals.values() if p <= seen * (1 + 1e-7))
    assert exact_conditional(tables) == pytest.approx(expected, rel=1e-9)


def test_strata_without_both_outcomes_say_nothing() -> None:
    assert exact_conditional([Table(5, 0, 5, 0), Table(0, 3, 0, 3), Table(4, 4, 0, 0)]) is None


def test_an_association_that_is_only_between_tasks_disappears_within_them() -> None:
    """Simpson: hard tasks fail and show the behaviour, within each task it makes no difference."""
    hard, easy = Table(18, 2, 18, 2), Table(1, 9, 4, 36)
    pooled = Table(19, 11, 22, 38)
    within, between = exact_conditional([hard, easy]), exact_conditional([pooled])
    assert within is not None
    assert between is not None
    assert between < 0.05 < within
    assert odds_ratio([hard, easy]) == pytest.approx(1.0)


def test_odds_ratios_at_the_edges() -> None:
    assert odds_ratio([Table(3, 0, 1, 4)]) == math.inf
    assert odds_ratio([Table(0, 0, 1, 4)]) is None


def test_what_fixing_could_bring_is_never_negative_and_counts_within_strata() -> None:
    assert attributable([Table(8, 2, 2, 8)]) == pytest.approx(6.0)
    assert attributable([Table(1, 9, 5, 5)]) == 0.0
    assert attributable([Table(4, 0, 0, 0), Table(0, 0, 1, 3)]) == pytest.approx(3.0)


def test_false_discovery_rates_are_scipys() -> None:
    rng = np.random.default_rng(0)
    for size in (1, 2, 5, 20):
        values = rng.random(size) ** 2
        assert benjamini_hochberg(values.tolist()) == pytest.approx(stats.false_discovery_control(values))
    assert benjamini_hochberg([]) == []


@pytest.mark.parametrize(("better", "worse"), [(0, 0), (5, 0), (3, 9), (50, 50), (400, 340)])
def test_mcnemar_is_an_exact_binomial_test(better: int, worse: int) -> None:
    expected = stats.binomtest(better, better + worse).pvalue if better + worse else 1.0
    assert mcnemar(better, worse) == pytest.approx(expected)


def test_the_detectable_difference_has_the_power_it_promises() -> None:
    """Simulated paired outcomes that differ by it are found in about 80 % of the experiments."""
    pairs, share = 400, 0.3
    difference = detectable_difference(pairs, share)
    assert difference is not None
    rng, found = np.random.default_rng(1), 0
    better = (share + difference) / 2
    for _ in range(400):
        counts = rng.multinomial(pairs, [better, share - better, 1 - share])
        found += stats.chi2.sf((abs(counts[0] - counts[1])) ** 2 / max(1, counts[0] + counts[1]), 1) < 0.05
    assert 0.72 < found / 400 < 0.88
    assert detectable_difference(0, 0.3) is None


def test_paired_intervals_need_two_pairs() -> None:
    assert paired_interval([0.5]) is None
    assert paired_interval([0.0, 0.0, 0.0]) == (0.0, 0.0)


def test_agreement() -> None:
    found = Agreement(both=20, ours=5, theirs=10, neither=15)
    assert found.precision == pytest.approx(0.8)
    assert found.recall == pytest.approx(2 / 3)
    assert found.kappa == pytest.approx(0.4)
    assert Agreement(0, 0, 0, 5).precision is None
    assert Agreement(0, 0, 0, 5).kappa is None
    assert Agreement(0, 0, 0, 0).kappa is None
