"""The official score of a benchmark: every attempt counts, and one without a reward counts as failed."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from arise.evaluation.metrics import mean_and_deviation, pooled_pass_rate
from arise.run.facts.verdicts import tallies
from arise.types import Tally

SHOWN_FAULTS, FAULT_CHARS = 3, 400
"""How many reasons of faults the table names, and how much of each."""


@dataclass(frozen=True)
class SuiteScore:
    """`SuiteScore("skillsbench", Tally(117, 261), {...}, (Tally(40, 87), ...), {"sandbox: ...": 2})`."""

    label: str
    overall: Tally
    by_domain: Mapping[str, Tally]
    runs: tuple[Tally, ...]
    """The tally of each attempt number over all tasks."""
    faults: Mapping[str, int]
    """Attempts that infrastructure ended, by reason; the official score counts them as failed."""

    def table(self) -> str:
        """Return the domain table, the stability table and the faults, as in the paper."""
        width = max([len("Overall"), *map(len, self.by_domain)])
        lines = [f"{self.label}: {_rate(self.overall)} % of {self.overall.evaluations} attempts"]
        lines += [
            f"  {name:{width}}  {_rate(tally)}  ({tally.passes}/{tally.evaluations})" for name, tally in self._rows()
        ]
        rates = [pooled_pass_rate(*run) for run in self.runs if run.evaluations]
        if len(rates) > 1:
            mean, deviation = mean_and_deviation(rates)
            each = "  ".join(f"Run {at} {rate:.1f}" for at, rate in enumerate(rates, 1))
            lines.append(f"stability: {each}  Mean {mean:.1f} ± {deviation:.1f}")
        faults = sum(self.faults.values())
        counted = self.overall.evaluations - faults
        beside = (
            f"{pooled_pass_rate(self.overall.passes, counted):.1f} % of the other {counted}" if counted else "no others"
        )
        lines.append(f"infrastructure faults: {faults}, counted as failed above ({beside} without them)")
        most_often = sorted(self.faults.items(), key=lambda fault: -fault[1])[:SHOWN_FAULTS]
        lines += [f"  {count} x {reason[:FAULT_CHARS]}" for reason, count in most_often]
        if len(self.faults) > SHOWN_FAULTS:
            lines.append(f"  and {len(self.faults) - SHOWN_FAULTS} more; the `result.json` of a trial names its reason")
        return "\n".join(lines)

    def _rows(self) -> list[tuple[str, Tally]]:
        return [*self.by_domain.items(), ("Overall", self.overall)]

    def facts(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "label": self.label,
            "rate": pooled_pass_rate(*self.overall) if self.overall.evaluations else None,
            "successes": self.overall.passes,
            "attempts": self.overall.evaluations,
            "faults": sum(self.faults.values()),
            "fault_reasons": dict(self.faults),
            "domains": {name: list(tally) for name, tally in self.by_domain.items()},
            "runs": [list(run) for run in self.runs],
        }


def _rate(tally: Tally) -> str:
    return f"{pooled_pass_rate(*tally):5.1f}" if tally.evaluations else "   --"


def score_trials(label: str, trials: Sequence[Mapping[str, Any]]) -> SuiteScore:
    """Score the trials of a job folder."""
    outcomes = [(trial["arise"], bool(trial["arise"]["success"])) for trial in trials]
    passes = sum(success for _, success in outcomes)
    return SuiteScore(
        label,
        Tally(passes, len(outcomes)),
        tallies([(about["domain"] or "(none)", success) for about, success in outcomes]),
        tuple(tallies([(about["attempt"], success) for about, success in outcomes]).values()),
        Counter(filter(None, map(fault_of, trials))),
    )


def fault_of(trial: Mapping[str, Any]) -> str:
    """Return what infrastructure did to a trial, or ""; an exception that the agent caused is no fault."""
    before_there_were_others = "infrastructure" if trial.get("exception_info") else ""
    return str(trial["arise"].get("fault", before_there_were_others))
