"""golden.md section 8: VADE's worked figure, and its top-B selection."""

import numpy as np
import pytest

from arise.baselines.vade import Vade, top
from arise.method.sampler import cell_weight
from arise.types import Group, Pool
from tests.builders import a_rollout, a_task, close


def after_selection(alpha: float, beta: float, successes: int | None) -> tuple[float, float]:
    """Alpha and beta one version later, when the task was drawn with so many successes of 8, or not drawn."""
    vade = Vade([a_task("t")], np.random.default_rng(0))
    vade.restore(vade.to_dict() | {"tasks": [["t", alpha, beta, 0]]})
    if successes is not None:
        rewards = [1.0] * successes + [0.0] * (8 - successes)
        rollouts = tuple(a_rollout(j, reward=reward) for j, reward in enumerate(rewards))
        vade.observe([Group(a_task("t"), rollouts, 8)], Pool(), version=1)
    alpha_X, beta_X = vade.posterior(1)
    return float(alpha_X[0]), float(beta_X[0])


@pytest.mark.parametrize(
    ("before", "successes", "after"),
    [((0.1, 8.4), 1, (1.02, 8.68)), ((2.7, 5.3), 4, (4.54, 5.06)), ((9.0, 0.2), None, (8.991, 0.1998))],
)
def test_worked_figure(before: tuple[float, float], successes: int | None, after: tuple[float, float]) -> None:
    close(after_selection(*before, successes), after)


def test_information_gain() -> None:
    close(cell_weight([0.13, 0.32, 0.90]), [0.098397, 0.147968, 0.009])


def test_lazy_decay_equals_the_per_version_rule() -> None:
    vade = Vade([a_task("t")], np.random.default_rng(0))
    vade.restore(vade.to_dict() | {"tasks": [["t", 4.5, 5.5, 0]]})
    rollouts = tuple(a_rollout(j, reward=1.0 if j < 2 else 0.0) for j in range(8))
    vade.observe([Group(a_task("t"), rollouts, 8)], Pool(), version=4)
    alpha_X, beta_X = vade.posterior(4)
    assert float(alpha_X[0]) == pytest.approx(2.8973026991, rel=1e-12)
    assert float(beta_X[0]) == pytest.approx(7.0967032989, rel=1e-12)


def test_selection_takes_the_top_two() -> None:
    gain_X = cell_weight([0.05, 0.30, 0.36, 0.62, 0.95])
    close(gain_X, [0.045125, 0.147, 0.147456, 0.089528, 0.002375])
    assert top(gain_X, 2) == [2, 1]


def test_cold_start_is_uniform() -> None:
    draws = Vade([a_task(f"t{n}") for n in range(4000)], np.random.default_rng(3)).draw(4000, version=0)
    estimates = np.sort([draw.estimate for draw in draws if draw.estimate is not None])
    assert np.abs(estimates - np.linspace(0, 1, 4000)).max() < 1.63 / np.sqrt(4000)  # Kolmogorov-Smirnov, 1 %
