"""The metrics in the record of an iteration."""

from collections.abc import Sequence
from math import isfinite, nan

import numpy as np

from arise.method.pass_rate import pass_rate
from arise.method.sampler import CapabilitySampler
from arise.rollouts.guidance import left_out_ids
from arise.run.facts.verdicts import Guided, by_guidance, kinds_by_rubric, watched
from arise.state import State
from arise.types import Group, StepStats, Tally


def iteration_metrics(groups: Sequence[Group], update: StepStats, state: State, version: int) -> dict[str, float]:
    """Return the metrics of an iteration; `version` is the policy version that was updated.

    Omit rates without observations, such as with no complete group or no judged rubric, instead of reporting 0 %.
    """
    complete = [group for group in groups if group.complete]
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    wins = [(sum(bool(r.success) for r in group.rollouts), group.size) for group in complete]
    successes = Tally(sum(won for won, _ in wins), sum(len(group.rollouts) for group in complete))
    verdicts = by_guidance(kinds_by_rubric(groups))
    sampler = state.sampler
    found = (
        _guided_rates(verdicts)
        | _watched(groups)
        | _staleness(complete, version)
        | _set_aside(state)
        | {
            "pass_rate": _rate(successes),
            "rubric_reward": _rate(verdicts.all),
            "all_fail": sum(won == 0 for won, _ in wins),
            "all_pass": sum(won == size for won, size in wins),
            "mixed": sum(0 < won < size for won, size in wins),
            "incomplete": len(groups) - len(complete),
            "without_own_reward": sum(bool(rollout.reason) for rollout in rollouts) or nan,
            "pool": len(state.pool),
            "skills_shown": sum(pair.skill.active for pair in state.pool.pairs),
            "skills_left_out": len(left_out_ids(rollouts)) or nan,
            "coverage": sampler.coverage.coverage() if isinstance(sampler, CapabilitySampler) else nan,
            "turns": _mean([len(r.trajectory.turns) for g in complete for r in g.rollouts]),
            "loss": update.loss,
            "grad_norm": update.grad_norm,
            "kept_share": update.kept_tokens / max(update.generated_tokens, 1),
            "generated_tokens": update.generated_tokens,
            "skipped": float(bool(update.skipped)),
            "bad_update": float(not (isfinite(update.loss) and isfinite(update.grad_norm))),
        }
    )
    return {name: value for name, value in found.items() if isfinite(value)}


def _guided_rates(verdicts: Guided) -> dict[str, float]:
    rates = {"guided_rate": pass_rate(verdicts.guided), "unguided_rate": pass_rate(verdicts.unguided)}
    return {name: rate for name, rate in rates.items() if rate is not None}


def _watched(groups: Sequence[Group]) -> dict[str, float]:
    """Return the verdicts on retired rubrics; empty if none were judged."""
    tally = watched(groups)
    return {"watched": tally.evaluations, "watched_passes": tally.passes} if tally.evaluations else {}


def _set_aside(state: State) -> dict[str, float]:
    """Return the number of tasks set aside for the next iteration; empty if there are none."""
    away = len(state.set_aside.away(state.iteration))
    return {"set_aside": float(away)} if away else {}


def _staleness(groups: Sequence[Group], version: int) -> dict[str, float]:
    """Return the policy-version lag of the trained tokens relative to `version`."""
    rows = [row for group in groups for rollout in group.rollouts for row in rollout.trajectory.rows]
    ages = np.concatenate([np.zeros(0), *(version - row.version_U[row.generated_U] for row in rows)])
    return {"staleness": float(ages.mean()) if len(ages) else 0.0, "max_staleness": float(ages.max(initial=0.0))}


def _rate(tally: Tally) -> float:
    rate = pass_rate(tally)
    return nan if rate is None else rate


def _mean(values: Sequence[float]) -> float:
    return float(sum(values)) / len(values) if values else nan
