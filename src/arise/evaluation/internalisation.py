"""How much of what is learned under guidance survives without it, behaviour by behaviour."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from arise.evaluation.rubrics import every_pair
from arise.evaluation.score import Query, score
from arise.method.pass_rate import pass_rate
from arise.types import Group, Rubric, Tally, Verdict


@dataclass(frozen=True)
class Behaviour:
    """One rubric's verdicts: training rollouts that saw its skill and others, held-out attempts before and after."""

    rubric: Rubric
    guided: Tally
    unguided: Tally
    before: Tally
    after: Tally


def behaviours(query: Query, first: int = 0, last: int | None = None) -> list[Behaviour]:
    """Every behaviour of a run, training verdicts counted from iteration `first` on and before iteration `last`."""
    end = last if last is not None else 1 << 60
    rows = query(
        "SELECT rubric_id, shown, SUM(passes), SUM(passes + fails) FROM verdict_counts WHERE k >= ? AND k < ?"
        " GROUP BY rubric_id, shown",
        (first, end),
    )
    seen = {(rubric_id, bool(shown)): Tally(passes, evaluations) for rubric_id, shown, passes, evaluations in rows}
    before, after = (score(label, query).behaviours for label in ("before", "after"))
    return [
        Behaviour(
            rubric,
            seen.get((rubric.id, True), Tally()),
            seen.get((rubric.id, False), Tally()),
            before.get(rubric.id, Tally()),
            after.get(rubric.id, Tally()),
        )
        for rubric in every_pair(query).rubrics
    ]


def by_guidance(groups: Sequence[Group]) -> dict[str, float]:
    """Pass rates of an iteration's verdicts whose rubric's skill was shown to that rollout, and of the others."""
    tallies = {"guided_rate": Tally(), "unguided_rate": Tally()}
    for rollout in (rollout for group in groups for rollout in group.rollouts if rollout.judgment):
        assert rollout.judgment is not None
        shown = {skill.rubric_id for skill in rollout.trajectory.shown_skills}
        for rubric_id, verdict in rollout.judgment.verdicts.items():
            if verdict is not Verdict.NOT_APPLICABLE:
                name = "guided_rate" if rubric_id in shown else "unguided_rate"
                passes, evaluations = tallies[name]
                tallies[name] = Tally(passes + (verdict is Verdict.PASS), evaluations + 1)
    return {name: rate for name, tally in tallies.items() if (rate := pass_rate(tally)) is not None}


def facts(behaviour: Behaviour) -> dict[str, Any]:
    """A behaviour as JSON values: each rate with the number of verdicts behind it."""
    tallies = {name: getattr(behaviour, name) for name in ("guided", "unguided", "before", "after")}
    rates = {name: [pass_rate(tally), tally.evaluations] for name, tally in tallies.items()}
    return {"rubric": behaviour.rubric.id, "criterion": behaviour.rubric.criteria_text} | rates


def table(found: Sequence[dict[str, Any]]) -> list[str]:
    """Lines for a person: in training with and without the skill shown, then on held-out tasks before and after."""
    lines = [
        "how often each behaviour was shown, %: in training with its skill and without, held out before and after",
        "     with  without   before  after",
    ]
    for row in found:
        guided, unguided, before, after = (_percent(row[n][0]) for n in ("guided", "unguided", "before", "after"))
        lines.append(f"  {guided:>7}  {unguided:>7}  {before:>7}  {after:>5}  {row['rubric']} {row['criterion']}")
    return lines if found else []


def _percent(rate: float | None) -> str:
    return "--" if rate is None else f"{100 * rate:.1f}"
