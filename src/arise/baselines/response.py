"""Response-level credit of OnlineRubrics and RuscaRL: one reward from outcome and criteria, normalised as a whole."""

from collections.abc import Sequence

import numpy as np

from arise.config.baselines import ResponseCredit
from arise.method.advantage import normalized
from arise.method.arrays import Floats
from arise.method.credit import Advantages, CreditRule
from arise.method.reward import length_regularized
from arise.types import Group, Pool, Verdict


def criteria_score(points: Sequence[float], met: Sequence[bool]) -> float:
    """Return the points of the criteria that were met over all positive points; 0 without positive points."""
    possible = sum(point for point in points if point > 0)
    gained = sum(point for point, is_met in zip(points, met, strict=True) if is_met)
    return gained / possible if possible > 0 else 0.0


def response_credit(settings: ResponseCredit) -> CreditRule:
    """Return R = (w * outcome + score) / (w + 1), normalised within the group; the outcome if no criterion applies."""

    def rule(group: Group, pool: Pool) -> Advantages | None:  # noqa: ARG001 - criteria may be the group's own
        if not group.complete:
            return None
        success_J = np.array([float(bool(rollout.success)) for rollout in group.rollouts])
        lengths_J = np.array([rollout.trajectory.generated_tokens for rollout in group.rollouts], dtype=np.float64)
        outcome_J = length_regularized(success_J, lengths_J, settings.length_strength, settings.length_threshold)
        score_J = _scores(group)
        weight = settings.outcome_weight
        scored_J = ~np.isnan(score_J)
        reward_J = np.where(scored_J, (weight * outcome_J + score_J) / (weight + 1.0), outcome_J)
        criteria_J = np.zeros_like(score_J)
        if scored_J.any():
            criteria_J[scored_J] = normalized(score_J[scored_J])
        return Advantages(normalized(reward_J), normalized(outcome_J), criteria_J)

    return rule


def _scores(group: Group) -> Floats:
    """Return the share of applicable criteria that each rollout met, equally weighted; nan if none applied."""
    scores = []
    for rollout in group.rollouts:
        verdicts = rollout.judgment.verdicts.values() if rollout.judgment else ()
        met = [verdict is Verdict.PASS for verdict in verdicts if verdict is not Verdict.NOT_APPLICABLE]
        scores.append(criteria_score([1.0] * len(met), met) if met else np.nan)
    return np.array(scores)
