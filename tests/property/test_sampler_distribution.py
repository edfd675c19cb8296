"""Draws against closed forms, with checks strong enough to reject the formulas they could be confused with.

Seeds are fixed, so a check that passes once passes always; each is also shown to fail for a wrong formula.
"""

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from scipy.stats import chisquare

from arise.baselines.vade import Vade
from arise.config.sampler import CapabilitySampling
from arise.method.sampler import CapabilitySampler, cell_weight, pass_estimates
from arise.types import Capability, DrawPath
from tests.builders import Floats, a_group, a_pool, a_task, close

V = Capability.VERIFICATION
POOL = a_pool({"a": V})
EVIDENCE = [(0.0, 0.0), (4.0, 4.0), (2.0, 6.0), (8.0, 0.0)]
SELECTION = [0.23240, 0.34072, 0.38817, 0.03871]
"""golden.md 7b: average selection probability of those four pairs over redraws."""


def fits(counts: Sequence[int], probabilities: Sequence[float]) -> bool:
    """Chi-square at one in a thousand."""
    expected = np.array(probabilities) / np.sum(probabilities) * np.sum(counts)
    return bool(chisquare(counts, expected).pvalue > 1e-3)


def variance_weight(p: Floats) -> Floats:
    """P (1 - p): what the weight would be without the preference for weak cells."""
    return p * (1.0 - p)


def expected_weight(passes: float, fails: float) -> float:
    a, b = 1.0 + passes, 1.0 + fails
    return a * b * (b + 1.0) / ((a + b) * (a + b + 1.0) * (a + b + 2.0))


MOMENTS = [
    (0.0, 0.0, 0.5, 0.0833333333333333333),
    (8.0, 0.0, 0.9, 0.0136363636363636364),
    (0.0, 8.0, 0.1, 0.0681818181818181818),
    (4.0, 4.0, 0.5, 0.113636363636363636),
    (2.0, 6.0, 0.3, 0.127272727272727273),
    (1.1666666666666667, 0.83333333333333337, 0.541666666666666666, 0.0937885802469135807),
    (2.8973026991, 7.0967032989, 0.324937531276028632, 0.131615492370098333),
]


def off_by(sample: Floats, expected: float) -> float:
    """The distance of a sample mean from its expectation in standard errors."""
    return float(abs(sample.mean() - expected) / (sample.std() / np.sqrt(len(sample))))


@pytest.mark.parametrize(("passes", "fails", "mean", "weight"), MOMENTS)
def test_moments_of_estimates_and_weights(passes: float, fails: float, mean: float, weight: float) -> None:
    assert expected_weight(passes, fails) == pytest.approx(weight, rel=1e-12)
    size = 200_000
    estimates = pass_estimates(np.full(size, passes), np.full(size, fails), np.random.default_rng(11))
    assert off_by(estimates, mean) < 4
    assert off_by(cell_weight(estimates), weight) < 4
    assert off_by(variance_weight(estimates), weight) > 20, "the check rejects p (1 - p)"
    if passes != fails:
        assert off_by(1 - estimates, mean) > 20, "and passes exchanged with fails"


def four_cells() -> CapabilitySampler:
    """Four task types with one task each, whose evidence is exactly `EVIDENCE`; everything is covered."""
    tasks = [a_task(f"x{n}", f"d{n}") for n in range(4)]
    sampler = CapabilitySampler(tasks, np.random.default_rng(5), CapabilitySampling(min_discovery=0.0))
    sampler.keep_only(POOL)
    sampler.observe([a_group(task, {"a": "10"}) for task in tasks], POOL, version=0)
    saved = sampler.to_dict()
    saved["ledger"]["tallies"] = [[f"d{n}", "a", *mass, 0] for n, mass in enumerate(EVIDENCE)]
    sampler.restore(saved)
    return sampler


def counts_of(drawn: Sequence[str], size: int) -> list[int]:
    counter = Counter(drawn)
    return [counter[f"x{n}"] for n in range(size)]


def simulated(weight: Callable[[Floats], Floats], choose: Callable[[Floats, np.random.Generator], int]) -> list[float]:
    """Selection probabilities of the four cells by plain simulation, independent of the sampler's code."""
    random = np.random.default_rng(77)
    alpha, beta = np.array(EVIDENCE).T + 1.0
    chosen = Counter(choose(weight(random.beta(alpha, beta)), random) for _ in range(40_000))
    return [chosen[n] / 40_000 for n in range(4)]


def in_proportion(weights: Floats, random: np.random.Generator) -> int:
    return int(random.choice(4, p=weights / weights.sum()))


def the_largest(weights: Floats, random: np.random.Generator) -> int:
    return int(np.argmax(weights))


def test_cells_are_selected_in_proportion_to_redrawn_weights() -> None:
    sampler = four_cells()
    draws = [sampler.draw(1, version=0)[0] for _ in range(12_000)]
    assert {draw.path for draw in draws} == {DrawPath.ADAPTIVE}
    counts = counts_of([draw.task_id for draw in draws], 4)
    assert fits(counts, SELECTION)
    np.testing.assert_allclose(np.array(counts) / 12_000, SELECTION, atol=4 * np.sqrt(0.25 / 12_000))
    assert not fits(counts, simulated(variance_weight, in_proportion)), "the check rejects p (1 - p)"
    assert not fits(counts, simulated(cell_weight, the_largest)), "and taking the best draw"
    assert not fits(counts, [expected_weight(*mass) for mass in EVIDENCE]), "and weights of the mean of many draws"


def test_the_simulation_itself_agrees_with_the_published_numbers() -> None:
    np.testing.assert_allclose(simulated(cell_weight, in_proportion), SELECTION, atol=0.01)


def test_stated_probabilities_average_to_the_selection_probabilities() -> None:
    sampler = four_cells()
    draws = [sampler.draw(1, version=0)[0] for _ in range(4000)]
    # E[1/q of the chosen] = number of cells, whatever the distribution, exactly when q is the true probability.
    inverse = np.array([1.0 / draw.probability for draw in draws])
    assert off_by(inverse, 4.0) < 4


def test_vade_takes_the_best_draw_not_a_proportional_one() -> None:
    tasks = [a_task(f"x{n}") for n in range(4)]
    vade = Vade(tasks, np.random.default_rng(5))
    vade.restore(vade.to_dict() | {"tasks": [[f"x{n}", *mass, 0] for n, mass in enumerate(EVIDENCE) if any(mass)]})
    counts = counts_of([vade.draw(1, version=0)[0].task_id for _ in range(12_000)], 4)
    assert fits(counts, simulated(cell_weight, the_largest))
    assert not fits(counts, SELECTION), "the check rejects proportional sampling"


def test_discovery_prefers_tasks_with_few_attempts() -> None:
    tasks = [a_task(f"x{n}", "d") for n in range(4)]
    sampler = CapabilitySampler(tasks, np.random.default_rng(5))
    sampler.keep_only(POOL)
    for task, attempts in zip(tasks, [0, 1, 3, 7], strict=True):
        sampler.observe([a_group(task, {"a": "--"})] * attempts, POOL, version=0)
    draws = [sampler.draw(1, version=0)[0] for _ in range(8000)]
    assert {(draw.path, draw.rho) for draw in draws} == {(DrawPath.DISCOVERY, 1.0)}
    counts = counts_of([draw.task_id for draw in draws], 4)
    assert fits(counts, [8 / 15, 4 / 15, 2 / 15, 1 / 15])
    assert not fits(counts, [1 / 4] * 4)
    assert not fits(counts, [1 / (1 + a) ** 2 for a in (0, 1, 3, 7)])
    stated = {draw.task_id: draw.probability for draw in draws}
    assert stated == {f"x{n}": pytest.approx(8 / 15 / 2**n) for n in range(4)}


def test_the_second_discovery_of_a_batch_renormalises() -> None:
    tasks = [a_task(f"x{n}") for n in range(3)]
    sampler = CapabilitySampler(tasks, np.random.default_rng(5))
    sampler.coverage.attempts_X[:] = [0, 1, 3]
    weights = np.array([1.0, 0.5, 0.25])
    expected = [
        weights[first] / weights.sum() * weights[second] / (weights.sum() - weights[first])
        for first in range(3)
        for second in range(3)
        if first != second
    ]
    pairs = Counter(tuple(draw.task_id for draw in sampler.draw(2, version=0)) for _ in range(8000))
    order = [(f"x{first}", f"x{second}") for first in range(3) for second in range(3) if first != second]
    assert fits([pairs[key] for key in order], expected)
    assert not fits([pairs[key] for key in order], [1 / 6] * 6)


def test_slots_take_the_discovery_path_with_probability_rho() -> None:
    tasks = [a_task(f"x{n}", "d") for n in range(10)]
    sampler = CapabilitySampler(tasks, np.random.default_rng(5))
    sampler.keep_only(POOL)
    sampler.observe([a_group(task, {"a": "10"}) for task in tasks[:7]], POOL, version=0)
    draws = [sampler.draw(1, version=0)[0] for _ in range(6000)]
    close([draw.rho or 0.0 for draw in draws], 0.3)
    discovered = sum(draw.path is DrawPath.DISCOVERY for draw in draws)
    assert fits([discovered, 6000 - discovered], [0.3, 0.7])
    assert not fits([discovered, 6000 - discovered], [0.1, 0.9]), "not the minimum"


def test_members_of_a_cell_are_equally_likely_also_while_some_are_taken() -> None:
    tasks = [a_task(f"x{n}", "d") for n in range(6)]
    sampler = CapabilitySampler(tasks, np.random.default_rng(5), CapabilitySampling(min_discovery=0, quota_fraction=1))
    sampler.keep_only(POOL)
    sampler.observe([a_group(task, {"a": "10"}) for task in tasks], POOL, version=0)
    sampler.coverage.attempts_X[:] = np.arange(6)  # which must not matter on this path
    first = [sampler.draw(1, version=0)[0].task_id for _ in range(4000)]
    assert fits(counts_of(first, 6), [1 / 6] * 6)
    for count in (2, 5):
        last = [sampler.draw(count, version=0)[-1] for _ in range(3000)]
        close([draw.probability for draw in last], 1 / (7 - count))
        assert fits(counts_of([draw.task_id for draw in last], 6), [1 / 6] * 6)
