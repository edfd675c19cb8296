"""How much of what is learned under guidance survives without it, behaviour by behaviour."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from arise.evaluation.rubrics import every_pair
from arise.evaluation.score import Query, score
from arise.method.pass_rate import pass_rate
from arise.types import Group, Rubric, Tally, Verdict


@dataclass(frozen=True)
class Behaviour:
    """One rubric's verdicts on training rollouts and on held-out attempts before and after.

    Training rollouts that saw its skill, others of the same iterations, and those of iterations without the skill.
    """

    rubric: Rubric
    guided: Tally
    beside: Tally
    alone: Tally
    before: Tally
    after: Tally


def behaviours(query: Query) -> list[Behaviour]:
    """Every behaviour of a run."""
    rows = query("SELECT rubric_id, k, shown, passes, passes + fails FROM verdict_counts")
    shown_in = {(rubric_id, k) for rubric_id, k, shown, _, _ in rows if shown}
    seen: dict[tuple[str, str], Tally] = defaultdict(Tally)
    for rubric_id, k, shown, passes, evaluations in rows:
        name = "guided" if shown else "beside" if (rubric_id, k) in shown_in else "alone"
        seen[rubric_id, name] = _sum(seen[rubric_id, name], Tally(passes, evaluations))
    before, after = (score(label, query).behaviours for label in ("before", "after"))
    return [
        Behaviour(
            rubric,
            seen[rubric.id, "guided"],
            seen[rubric.id, "beside"],
            seen[rubric.id, "alone"],
            before.get(rubric.id, Tally()),
            after.get(rubric.id, Tally()),
        )
        for rubric in every_pair(query).rubrics
    ]


def contrasts(query: Query) -> dict[int, tuple[Tally, Tally]]:
    """Iteration (from 0) to verdicts on rubrics whose skill was shown in it: of rollouts that saw it, and of others."""
    rows = query(
        "SELECT k, shown, passes, passes + fails FROM verdict_counts v WHERE EXISTS"
        " (SELECT 1 FROM verdict_counts o WHERE o.rubric_id = v.rubric_id AND o.k = v.k AND o.shown)"
    )
    found: dict[int, tuple[Tally, Tally]] = defaultdict(lambda: (Tally(), Tally()))
    for k, shown, passes, evaluations in rows:
        guided, beside = found[k]
        more = Tally(passes, evaluations)
        found[k] = (_sum(guided, more), beside) if shown else (guided, _sum(beside, more))
    return dict(found)


def _sum(one: Tally, other: Tally) -> Tally:
    return Tally(one.passes + other.passes, one.evaluations + other.evaluations)


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


def of_the_watch(groups: Sequence[Group]) -> dict[str, float]:
    """Verdicts of an iteration on retired rubrics, and how many of them passed; nothing where none was watched."""
    judged = [rollout.judgment for group in groups for rollout in group.rollouts if rollout.judgment]
    verdicts = [verdict for judgment in judged for verdict in judgment.watched.values()]
    applicable = [verdict for verdict in verdicts if verdict is not Verdict.NOT_APPLICABLE]
    passes = sum(verdict is Verdict.PASS for verdict in applicable)
    return {"watched": len(applicable), "watched_passes": passes} if applicable else {}


def facts(behaviour: Behaviour) -> dict[str, Any]:
    """A behaviour as JSON values: each rate with the number of verdicts behind it."""
    tallies = {name: getattr(behaviour, name) for name in ("guided", "beside", "alone", "before", "after")}
    rates = {name: [pass_rate(tally), tally.evaluations] for name, tally in tallies.items()}
    return {"rubric": behaviour.rubric.id, "criterion": behaviour.rubric.criteria_text} | rates


def table(found: Sequence[dict[str, Any]]) -> list[str]:
    """Lines for a person, a behaviour each."""
    lines = [
        "how often each behaviour was shown, %: in training with its skill, without it in the same iterations, and "
        "in iterations without it; held out before and after",
        "     with  without    alone   before  after",
    ]
    for row in found:
        *training, after = (_percent(row[n][0]) for n in ("guided", "beside", "alone", "before", "after"))
        rates = "  ".join(f"{rate:>7}" for rate in training)
        lines.append(f"  {rates}  {after:>5}  {row['rubric']} {row['criterion']}")
    return lines if found else []


def _percent(rate: float | None) -> str:
    return "--" if rate is None else f"{100 * rate:.1f}"
