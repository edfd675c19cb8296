"""How many of the answers requested from a judge are usable: for the screen, for alarms and for the policy of a run."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from arise.text import numbers
from arise.types import Group
from arise.types.absence import QUARANTINED, REFUSED, UNANSWERED, WEAK, WITHHELD, kind_of_absence

ABSENT = "absent "
"""Prefix of a metric that counts missing answers of one kind: `absent refused`."""
LEAST_USABLE = 0.5
_NOT_ASKED = ("", "not asked for")
_ADVICE = {
    REFUSED: "the server refuses the requests: `arise doctor CONFIG` says why",
    UNANSWERED: "the server does not answer: see the events in calls.jsonl",
    WEAK: "the judge is too weak for its control questions: take another model, `arise judge check` measures it",
    QUARANTINED: "text in trajectories may steer the judge: read some of those rollouts",
}


def judging_metrics(groups: Sequence[Group]) -> dict[str, float]:
    """Count the answers of a judge: verdicts and diagnostics, usable and missing, the missing ones by kind."""
    judgments = [rollout.judgment for group in groups for rollout in group.rollouts if rollout.judgment]
    absent = Counter(kind_of_absence(reason) for judgment in judgments for reason in judgment.absent.values())
    verdicts = sum(len(judgment.verdicts) for judgment in judgments)
    notes = sum(judgment.diagnostic is not None for judgment in judgments)
    without = [
        kind_of_absence(judgment.diagnostic_absent)
        for judgment in judgments
        if judgment.diagnostic is None and judgment.diagnostic_absent not in _NOT_ASKED
    ]
    missing = absent + Counter(without)
    return {
        "verdicts": verdicts,
        "verdicts_absent": absent.total(),
        "answers": verdicts + notes + missing[WITHHELD],
        "answers_asked": verdicts + notes + missing.total(),
    } | {f"{ABSENT}{kind}": float(count) for kind, count in missing.items()}


def missing_by_kind(metrics: Iterable[Mapping[str, float]]) -> dict[str, int]:
    """Return the missing answers of some iterations by kind, most frequent first."""
    found: Counter[str] = Counter()
    for row in metrics:
        found.update({name.removeprefix(ABSENT): int(n) for name, n in row.items() if name.startswith(ABSENT)})
    return dict(found.most_common())


def usable_share(metrics: Iterable[Mapping[str, float]]) -> float | None:
    """Return the share of usable answers in some iterations; None if nothing was asked."""
    rows = list(metrics)
    asked = sum(row.get("answers_asked", 0.0) for row in rows)
    return sum(row.get("answers", 0.0) for row in rows) / asked if asked else None


def judge_note(metrics: Mapping[str, float]) -> str:
    """Return what is missing in one iteration, for its line; empty if nothing is."""
    missing = missing_by_kind([metrics])
    if not missing:
        return ""
    kinds = _kinds(missing)
    return f"  judge {metrics['answers']:.0f} of {metrics['answers_asked']:.0f} usable ({kinds})"


def _kinds(missing: Mapping[str, int]) -> str:
    """Return missing answers by kind; withheld ones, which were usable, come last with a remark."""
    parts = [f"{count:,} {kind}" for kind, count in missing.items() if kind != WITHHELD]
    if missing.get(WITHHELD):
        parts.append(f"{missing[WITHHELD]:,} of the usable ones withheld")
    return ", ".join(parts)


def unusable_text(metrics: Sequence[Mapping[str, float]]) -> str:
    """Return what is wrong with a judge if less than half of its answers are usable, else an empty string."""
    share = usable_share(metrics)
    if share is None or share >= LEAST_USABLE:
        return ""
    missing = missing_by_kind(metrics)
    kinds = _kinds(missing)
    worst = next((kind for kind in missing if kind != WITHHELD), "")
    advice = _ADVICE.get(worst, "look at a few replies on the page of the judge, and measure it: `arise judge check`")
    return f"only {numbers.percent(share)} of the judge's answers are usable ({kinds}); {advice}"
