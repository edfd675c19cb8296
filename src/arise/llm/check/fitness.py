"""Whether a judge is fit: a stated rule over measured quantities (docs/judge.md, "Fit to judge")."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from arise.llm.check.confusion import Confusion
from arise.text.numbers import percent
from arise.types import Verdict

VALID = 0.95
"""Minimum share of the requested verdicts that must be valid; more votes cannot replace missing ones."""
FLIPS = 0.05
"""Maximum share of verdicts that may differ from the majority of their repeats."""
RECALL = 0.8
"""Minimum share of the known answers of each kind that the judge must find."""
CONFIRMED = 0.6
"""Minimum share of verdicts that must remain with a second vote."""
ENOUGH = 5
"""Minimum number of known answers of a kind: five of five are the fewest whose interval lies above one half."""
_NAMES = {Verdict.FAIL: "fails", Verdict.PASS: "passes", Verdict.NOT_APPLICABLE: "rubrics that do not apply"}


class Advice(StrEnum):
    """The advice that a check ends with."""

    FIT = "fit to judge"
    CONFIRM = "fit with confirmation by a second vote (judge.votes = 2)"
    UNFIT = "not fit to judge"
    UNKNOWN = "cannot tell whether it is fit"


@dataclass(frozen=True)
class Votes:
    """The result of a number of votes: the share of verdicts that remain, and how they match the known answers."""

    count: int
    valid: float
    known: Confusion


@dataclass(frozen=True)
class Fitness:
    """Advice, with the reasons against the judge or the reason why nothing can be said."""

    advice: Advice
    doubts: tuple[str, ...]


def fitness(
    valid: float, flips: float | None, votes: Sequence[Votes], *, labelled: bool, only: Verdict | None = None
) -> Fitness:
    """Apply the rule to the shares of valid and flipped verdicts and to the results of one and two votes.

    `only` is the judge's verdict if it gave the same one every time. Labels decide by recall. Without labels the
    offline analyst is a limited reference: against it a judge must only be better than chance.
    """
    alone, two = (next((one for one in votes if one.count == count), None) for count in (1, 2))
    against = "the labels" if labelled else "the offline analyst"
    missing = [f"{percent(valid)} of verdicts are valid, {percent(VALID)} are needed"] if valid < VALID else []
    wavers = [f"{percent(flips)} of verdicts flip, at most {percent(FLIPS)} may"] if flips and flips > FLIPS else []
    if alone is None or not alone.known.total:
        always = [f"it says {_said(only)} to everything"] if only is not None else []
        doubts = (*missing, *always, *wavers, f"no verdict can be compared with {against}")
        return Fitness(Advice.UNFIT if missing else Advice.UNKNOWN, doubts)
    wrong = _wrong(alone.known, against, labelled) + wavers
    if missing or wrong:
        cured = two is not None and two.valid >= CONFIRMED and not _wrong(two.known, against, labelled)
        cured = cured and two is not None and not _thin(two.known, against)
        return Fitness(Advice.CONFIRM if cured and not missing else Advice.UNFIT, (*missing, *wrong))
    thin = _thin(alone.known, against)
    return Fitness(Advice.UNKNOWN if thin else Advice.FIT, thin)


def _wrong(known: Confusion, against: str, labelled: bool) -> list[str]:
    """Return what the comparison shows to be wrong; the first finding explains the others."""
    if known.constant is not None and known.total >= ENOUGH * known.rounds:
        return [f"it says {_said(known.constant)} to everything"]
    if known.interval is not None:
        low, high = known.interval
        if high < 0.0:
            return [f"it says the opposite of {against}: are pass and fail swapped?"]
        if low <= 0.0 and high < 2 * RECALL - 1:
            return [f"against {against} it is no better than chance"]
    if not labelled:
        return []
    return [
        f"it finds {percent(share)} of the {_NAMES[verdict]}, {percent(RECALL)} are needed"
        for verdict in (Verdict.FAIL, Verdict.PASS, Verdict.NOT_APPLICABLE)
        if (share := known.recall(verdict)) is not None
        and known.given(verdict, verdict).evaluations >= ENOUGH
        and share < RECALL
    ]


def _thin(known: Confusion, against: str) -> tuple[str, ...]:
    """Return why the known answers are too few to call a judge fit."""
    few = [
        f"{known.given(verdict, verdict).evaluations} {_NAMES[verdict]} are known from {against}, {ENOUGH} are needed"
        for verdict in (Verdict.FAIL, Verdict.PASS)
        if known.given(verdict, verdict).evaluations < ENOUGH
    ]
    if few or known.interval is None:
        return tuple(few)
    low, high = known.interval
    return () if low > 0.0 else (f"chance is not excluded (J {low:+.2f} to {high:+.2f}): more cases are needed",)


def _said(verdict: Verdict) -> str:
    return {Verdict.PASS: "pass", Verdict.FAIL: "fail"}.get(verdict, "not applicable")
