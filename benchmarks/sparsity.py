"""How sparse may outcomes be before training from outcomes alone fails? A calculation without a language model.

    python -m benchmarks.sparsity      depths 1 to 6, four seeds, 150 iterations

A policy is one logit for each of eight behaviours, which start at a rate of 20 %. A task requires `depth` of them and
succeeds if all are shown. Advantages are those of the method library (Eqs. 15-16); the update is the plain policy
gradient. Rubrics are the required behaviours, judged without error from the first pool update on; a skill adds a
constant to the logit of its behaviour in half of a group while the behaviour's pass rate is at most 30 %.

The step size is the only fitted number: it sets how fast outcome-only training learns at depth 3 in
`configs/worlds/sparse.toml`. Everything else is a prediction.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import numpy as np

from arise.method.advantage import combined_advantages, normalized
from arise.method.arrays import Floats

BEHAVIOURS, START = 8, 0.2
TASKS, GROUP, SHARE, UPDATE_EVERY, ACTIVATE_AT = 8, 8, 0.5, 4, 0.3
STEP, SKILL, SEEDS = 4.0, 3.0, 4
METHODS = {"outcome only": (False, False), "rubrics": (True, False), "rubrics and skills": (True, True)}


@dataclass(frozen=True)
class Curve:
    """Success rates without skills and shares of all-failure groups, per iteration."""

    success: Floats
    all_failed: Floats

    def reaches(self, rate: float) -> int | None:
        """Return the first iteration after which this success rate is reached."""
        hit = np.flatnonzero(self.success >= rate)
        return int(hit[0]) + 1 if hit.size else None


def rate_of(logit: Floats) -> Floats:
    return np.asarray(1.0 / (1.0 + np.exp(-logit)), dtype=np.float64)


def train(depth: int, seed: int, rubrics: bool, skills: bool, iterations: int = 150) -> Curve:
    """Train one policy and return its curve."""
    random = np.random.default_rng([depth, seed])
    logit_B = np.full(BEHAVIOURS, np.log(START / (1.0 - START)))
    shown_B, passes_B, seen_B = np.zeros(BEHAVIOURS, dtype=bool), np.zeros(BEHAVIOURS), np.zeros(BEHAVIOURS)
    success, all_failed = [], []
    for k in range(iterations):
        gradient_B = np.zeros(BEHAVIOURS)
        failed = 0
        for _ in range(TASKS):
            required = random.choice(BEHAVIOURS, depth, replace=False)
            guided_JD = (np.arange(GROUP) < SHARE * GROUP)[:, None] & shown_B[required] & skills
            rate_JD = rate_of(logit_B[required] + SKILL * guided_JD)
            shows_JD = random.random((GROUP, depth)) < rate_JD
            reward_J = shows_JD.all(axis=1).astype(np.float64)
            judged = rubrics and k >= UPDATE_EVERY
            advantage_J = combined_advantages(reward_J, shows_JD.T * 1.0) if judged else normalized(reward_J)
            gradient_B[required] += (advantage_J[:, None] * (shows_JD - rate_JD)).sum(axis=0) / (TASKS * GROUP)
            passes_B[required] += shows_JD.sum(axis=0)
            seen_B[required] += GROUP
            failed += not reward_J.any()
        logit_B = logit_B + STEP * gradient_B
        if (k + 1) % UPDATE_EVERY == 0:
            shown_B = (seen_B > 0) & (passes_B <= ACTIVATE_AT * seen_B)
            passes_B, seen_B = np.zeros(BEHAVIOURS), np.zeros(BEHAVIOURS)
        success.append(expected_success(rate_of(logit_B), depth))
        all_failed.append(failed / TASKS)
    return Curve(np.array(success), np.array(all_failed))


def expected_success(rate_B: Floats, depth: int) -> float:
    """Return the success rate over all tasks of a depth: the mean product of `depth` different rates."""
    sums = np.zeros(depth + 1)
    sums[0] = 1.0
    for rate in rate_B:
        sums[1:] += sums[:-1] * rate
    return float(sums[depth] / comb(len(rate_B), depth))


def mean_curve(depth: int, seeds: Sequence[int], rubrics: bool, skills: bool) -> Curve:
    curves = [train(depth, seed, rubrics, skills) for seed in seeds]
    return Curve(np.mean([c.success for c in curves], axis=0), np.mean([c.all_failed for c in curves], axis=0))


def calculated(seeds: Sequence[int]) -> dict[int, list[Curve]]:
    """Return the mean curves of all methods at every depth."""
    return {depth: [mean_curve(depth, seeds, *method) for method in METHODS.values()] for depth in range(1, 7)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    options = parser.parse_args()
    print("| depth | start | groups all-fail at the start |", " | ".join(METHODS), "|")
    print("|" + "---|" * (3 + len(METHODS)))
    for depth, curves in calculated(range(options.seeds)).items():
        start, failed = START**depth, (1.0 - START**depth) ** GROUP
        cells = [f"{curve.reaches(0.5) or 'never'} ({curve.success[-1]:.0%})" for curve in curves]
        print(f"| {depth} | {start:.2%} | {failed:.0%} |", " | ".join(cells), "|")
    print("Each cell: iteration that reaches 50 % (success after 150 iterations).")


if __name__ == "__main__":
    main()
