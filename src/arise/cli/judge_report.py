"""The report of `arise judge check`: progress, one judge or two side by side, and the advice."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from arise.cli.session import Cost
from arise.text.numbers import duration, percent

if TYPE_CHECKING:
    from arise.llm.check import JudgeCheck

EVERY = 5.0
"""Seconds between two lines of progress."""
_RUBRICS = 20


@dataclass(frozen=True)
class Checked:
    """One judge with its result, its cost and its address."""

    report: "JudgeCheck"
    cost: Cost
    base_url: str


class Progress:
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

    report = one.report
    facts = asdict(report)
    del facts["majorities"]
    rates = {"valid_rate": report.valid_rate, "flip_rate": report.flip_rate}
    return facts | rates | {"doubts": report.doubts, "advice": report.advice.value, "cost": asdict(one.cost)}


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
        shared = checked[0].report.agreement_with(checked[1].report)
        lines.append("both      " + _share(shared, "of majorities are the same for both judges"))
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
    doubts = "; ".join(report.doubts)
    return {
        "judge": f"{report.judge} at {one.base_url}",
        "cases": f"{report.cases} trajectories, {len(report.rubrics)} rubrics, {report.repeats} repeats",
        "valid": f"{report.verdicts} of {asked} verdicts ({percent(report.valid_rate)}); absent: {reasons}",
        "self": _self_agreement(report),
        "analyst": _share(report.with_reference, "of majorities equal the offline analyst's verdicts"),
        "labels": _share(report.with_labels, "of majorities equal the labels"),
        "votes": _votes(report),
        "cost": str(one.cost),
        "so": f"{report.advice}" + (f": {doubts}" if doubts else ""),
    }


def _votes(report: "JudgeCheck") -> str:
    """Return what each number of votes leaves and how often it is right."""
    if report.repeats < 2:
        return "not measured: it needs --repeat 2 or more"
    known = "labels" if report.with_labels is not None else "analyst"
    parts = []
    for votes in report.votes:
        right = "" if votes.agreement is None else f", {percent(votes.agreement)} as the {known}"
        parts.append(f"{votes.count}: {percent(votes.valid)} valid{right}")
    return "; ".join(parts)


def _self_agreement(report: "JudgeCheck") -> str:
    if report.flip_rate is None:
        return "undefined: there is no verdict to compare"
    return (
        f"{percent(1 - report.flip_rate)} agree with the majority of their repeats, flips {percent(report.flip_rate)}"
    )


def _share(value: float | None, of_what: str) -> str:
    return "undefined: nothing to compare with" if value is None else f"{percent(value)} {of_what}"
