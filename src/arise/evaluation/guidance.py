"""The effect of each skill: the same tasks without skills, with each skill alone, and with all of them."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from arise.evaluation.attempts import Evaluator
from arise.method.intervals import difference_interval, wilson_interval
from arise.method.pass_rate import pass_rate
from arise.rollouts.guidance import left_out_text
from arise.run.facts.verdicts import judged
from arise.types import Attempt, Pair, Tally

log = logging.getLogger(__name__)

NONE, ALL = "none", "all"


@dataclass(frozen=True)
class Arm:
    """Attempts that saw the same skills — `Arm(Tally(3, 12), 0, {"r001": Tally(7, 9)})`; faults are not counted.

    `left_out` names the skills among them that did not fit into a prompt.
    """

    outcomes: Tally
    faults: int
    behaviours: Mapping[str, Tally]
    left_out: tuple[str, ...] = ()


async def measure(evaluator: Evaluator, pairs: Sequence[Pair], label: str, iteration: int) -> dict[str, Arm]:
    """Run one arm without guidance, one per skill (by its rubric's id), and one with all skills."""
    shown: dict[str, Sequence[Pair]] = {NONE: (), **{pair.rubric.id: (pair,) for pair in pairs}, ALL: pairs}
    arms: dict[str, Arm] = {}
    for name, skills in shown.items():
        attempts = len(evaluator.tasks) * evaluator.attempts
        log.info("skills shown: %s (%d of %d, %d attempts)", name, len(arms) + 1, len(shown), attempts)
        arms[name] = arm_of(await evaluator.take_guided(f"guidance/{label}/{name}", iteration, skills))
        if arms[name].left_out:
            log.info("%s", left_out_text(arms[name].left_out))
    return arms


def arm_of(attempts: Sequence[Attempt]) -> Arm:
    """Count judged attempts."""
    outcomes = [attempt.success for attempt in attempts if attempt.success is not None]
    behaviours = judged(attempt.verdicts for attempt in attempts)
    missed = [skill.rubric_id for attempt in attempts for skill in attempt.rollout.trajectory.left_out]
    faults = len(attempts) - len(outcomes)
    return Arm(Tally(sum(outcomes), len(outcomes)), faults, behaviours, tuple(sorted(set(missed))))


def report(pairs: Sequence[Pair], arms: Mapping[str, Arm]) -> dict[str, Any]:
    """Return every rate with its counts and 95 % interval in percent, as JSON values."""
    rows = []
    for pair in pairs:
        name = pair.rubric.id
        without, guided, with_all = (arms[arm].behaviours.get(name, Tally()) for arm in (NONE, name, ALL))
        rows.append(
            {
                "rubric": name,
                "criterion": pair.rubric.criteria_text,
                "skill": pair.skill.text,
                "without": _rate(without),
                "with_skill": _rate(guided),
                "difference": _difference(without, guided),
                "with_all": _rate(with_all),
                "passed_with_skill": _rate(arms[name].outcomes),
            }
        )
    passed = {"passed_without": _rate(arms[NONE].outcomes), "passed_with_all": _rate(arms[ALL].outcomes)}
    left_out = {name: list(arm.left_out) for name, arm in arms.items() if arm.left_out}
    return passed | {"faults": sum(arm.faults for arm in arms.values()), "left_out": left_out, "behaviours": rows}


def _rate(tally: Tally) -> dict[str, Any]:
    rate = pass_rate(tally)
    interval = None if rate is None else [100.0 * bound for bound in wilson_interval(*tally)]
    return {**tally._asdict(), "rate": None if rate is None else 100.0 * rate, "interval": interval}


def _difference(without: Tally, guided: Tally) -> dict[str, Any] | None:
    before, after = pass_rate(without), pass_rate(guided)
    if before is None or after is None:
        return None
    points = [100.0 * bound for bound in difference_interval(without, guided)]
    return {"points": 100.0 * (after - before), "interval": points}
