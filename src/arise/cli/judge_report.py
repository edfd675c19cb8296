"""The report of `arise judge check`: progress, one judge or two side by side, and the advice."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from arise.cli.session import Cost
from arise.text import numbers
from arise.text.numbers import duration, percent
from arise.types.absence import CUT_OFF, INTERNAL, QUARANTINED, REFUSED, UNANSWERED, UNREADABLE, WEAK

if TYPE_CHECKING:
    from arise.llm.check.check import JudgeCheck
    from arise.llm.check.confusion import Confusion

EVERY = 5.0
"""Seconds between two lines of progress."""
_RUBRICS = 20
_MISSING = {
    REFUSED: "the server refuses requests: look for the reason in its log, and at its window and its limits",
    UNANSWERED: "the server is down or too slow: try again when it is idle, or take a faster one",
    QUARANTINED: "text in these trajectories may steer the judge: read some of them, and take a stronger model",
    WEAK: "control questions are answered wrongly even on a neutral trace, so no verdict counts: take a stronger model",
    CUT_OFF: "replies are cut off: raise --max-tokens",
    UNREADABLE: "replies lack verdicts or break their form: constrain them (--structured), or take a stronger model",
    INTERNAL: "a fault of ARISE: please report it",
}
"""What to do about missing verdicts of a kind; a check withholds none and counts no votes."""


@dataclass(frozen=True)
class Checked:
    """One judge with its result, its cost and its address."""

    report: "JudgeCheck"
    cost: Cost
    base_url: str


class JudgeProgress:
    """Prints at intervals how many trajectories are judged and how long the rest will take."""

    def __init__(self, total: int, tell: Callable[[str], None]) -> None:
        self._total, self._tell = total, tell
        self._began = self._told = time.monotonic()

    def __call__(self, done: int) -> None:
        now = time.monotonic()
        if now - self._told < EVERY or done >= self._total:
            return
        self._told = now
        left = (now - self._began) / done * (self._total - done)
        self._tell(f"{done:,} of {self._total:,} trajectories judged, about {duration(left)} left")


def as_json(checked: Sequence[Checked]) -> str:
    """Return the results as JSON: an object for one judge, a list for several."""
    import json

    found = [_facts(one) for one in checked]
    return json.dumps(found[0] if len(found) == 1 else found, indent=2)


def _facts(one: Checked) -> dict[str, Any]:
    from dataclasses import asdict

    report, fitness = one.report, one.report.fitness
    return {
        "judge": report.judge,
        "cases": report.cases,
        "repeats": report.repeats,
        "rubrics": [asdict(rubric) for rubric in report.rubrics],
        "valid_rate": report.valid_rate,
        "flip_rate": report.flip_rate,
        "absent_reasons": report.absent_reasons,
        "with_reference": None if report.with_reference is None else report.with_reference.facts(),
        "with_labels": None if report.with_labels is None else report.with_labels.facts(),
        "votes": [{"count": v.count, "valid": v.valid, **v.known.facts()} for v in report.votes],
        "doubts": fitness.doubts,
        "advice": fitness.advice.value,
        "cost": asdict(one.cost),
    }


def as_text(checked: Sequence[Checked]) -> str:
    """Return the results by measure, one line for each judge, then the rubrics of the first."""
    rows = [_measures(one) for one in checked]
    lines = []
    for name in rows[0]:
        said = [row[name] for row in rows]
        if len(said) > 1:
            said = [f"{letter}: {text}" for letter, text in zip("AB", said, strict=True)]
        lines += [f"{label:<10}{text}" for label, text in zip((name, *[""] * len(said)), said, strict=False)]
    if len(checked) == 2:
        lines.append(f"{'both':<10}{_both(checked[0].report, checked[1].report)}")
    rubrics = checked[0].report.rubrics
    lines += ["", f"{'rubric':<10}{'verdicts':>10}{'absent':>10}{'flips':>10}"]
    lines += [f"{r.rubric_id:<10}{r.verdicts:>10}{r.absent:>10}{r.flips:>10}" for r in rubrics[:_RUBRICS]]
    if len(rubrics) > _RUBRICS:
        lines.append(f"... and {len(rubrics) - _RUBRICS} more rubrics, see --json")
    return "\n".join(lines)


def _measures(one: Checked) -> dict[str, str]:
    report = one.report
    asked = report.cases * report.repeats * len(report.rubrics)
    reasons = ", ".join(f"{reason} {count}" for reason, count in report.absent_reasons) or "none"
    fitness = report.fitness
    doubts = "; ".join(fitness.doubts)
    return {
        "judge": f"{report.judge} at {one.base_url}",
        "cases": f"{report.cases} trajectories, {len(report.rubrics)} rubrics, {report.repeats} repeats",
        "valid": f"{report.verdicts} of {asked} verdicts ({percent(report.valid_rate)}); absent: {reasons}",
        "self": _self_agreement(report),
        "analyst": _agreement(report.with_reference),
        "labels": _agreement(report.with_labels),
        "found": _recalls(report),
        "chance": _chance(report),
        "votes": _votes(report),
        "cost": str(one.cost),
        "so": f"{fitness.advice}" + (f": {doubts}" if doubts else ""),
        "do": _remedy(report),
    }


def _remedy(report: "JudgeCheck") -> str:
    """Return what to do next: about the most frequent reason for missing verdicts, else about the advice."""
    from arise.llm.check.fitness import VALID, Advice

    if report.valid_rate < VALID and report.absent_reasons:
        return _MISSING.get(report.absent_reasons[0][0], _MISSING[UNREADABLE])
    return {
        Advice.FIT: "use it as it is",
        Advice.CONFIRM: "set judge.votes = 2; a run then makes twice as many calls",
        Advice.UNFIT: "take a stronger model, and measure it on your own rollouts: arise judge check RUN",
        Advice.UNKNOWN: "measure it on more cases with known answers: your own labels, or more cases of a run",
    }[report.fitness.advice]


def _recalls(report: "JudgeCheck") -> str:
    """Return how many of the known answers of each kind the judge finds, with 95 % intervals."""
    from arise.method.intervals import wilson_interval
    from arise.types import Verdict

    known = report.known_by
    parts = []
    for verdict, name in ((Verdict.FAIL, "fails"), (Verdict.PASS, "passes"), (Verdict.NOT_APPLICABLE, "n/a")):
        tally = known.given(verdict, verdict)
        if tally.evaluations:
            low, high = wilson_interval(*tally)
            parts.append(f"{name} {tally.passes} of {tally.evaluations} ({numbers.span(low, high)} %)")
    return ", ".join(parts) or "undefined: nothing to compare with"


def _chance(report: "JudgeCheck") -> str:
    """Return the agreement beyond chance, where a constant judge and a coin have 0."""
    known = report.known_by
    if known.interval is None or known.informedness is None:
        return "undefined: no fail or no pass is known"
    low, high = known.interval
    kappa = "undefined" if known.kappa is None else f"{known.kappa:.2f}"
    return f"J {known.informedness:+.2f} (95 % {low:+.2f} to {high:+.2f}), kappa {kappa}; a constant judge has 0"


def _votes(report: "JudgeCheck") -> str:
    """Return what each number of votes leaves, how often it is right, and what it gains over one vote."""
    if report.repeats < 2:
        return "not measured: it needs --repeat 2 or more"
    alone = report.votes[0].known.balanced
    parts = []
    for votes in report.votes:
        right, gain = votes.known.balanced, ""
        if right is not None and alone is not None and votes.count > 1:
            gain = f", gain {numbers.difference(right - alone)}"
        shown = "" if right is None else f", {percent(right)} right{gain}"
        parts.append(f"{votes.count}: {percent(votes.valid)} valid{shown}")
    return "; ".join(parts)


def _both(first: "JudgeCheck", second: "JudgeCheck") -> str:
    """Return how far two judges agree, and who is right where they do not."""
    shared = first.beside(second)
    if shared.agreement is None:
        return "undefined: nothing to compare with"
    kappa = "" if shared.kappa is None else f" (kappa {shared.kappa:.2f})"
    apart, mine, other = first.where_they_differ(second)
    known = "labels" if first.with_labels is not None else "analyst's verdicts"
    return (
        f"{percent(shared.agreement)} of majorities are the same{kappa}; where they differ, "
        f"A has the {known} {mine} times of {apart}, B {other}"
    )


def _self_agreement(report: "JudgeCheck") -> str:
    if report.repeats < 2 and report.verdicts:
        return "not measured: it needs --repeat 2 or more"
    if report.flip_rate is None:
        return "undefined: there is no verdict to compare"
    return (
        f"{percent(1 - report.flip_rate)} agree with the majority of their repeats, flips {percent(report.flip_rate)}"
    )


def _agreement(found: "Confusion | None") -> str:
    if found is None or found.agreement is None:
        return "undefined: nothing to compare with"
    return f"{percent(found.agreement)} of {found.total} majorities are the same"
