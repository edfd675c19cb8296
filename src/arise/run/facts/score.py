"""The score of an evaluation: pooled, by domain and task type, with interval, spread over runs, and faults."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import mean, stdev
from typing import Any

from arise.method.intervals import wilson_interval
from arise.run.facts.verdicts import judged, tallies
from arise.run.queries import RunQueries
from arise.run.rows import AttemptRow
from arise.text import numbers
from arise.types import Tally


@dataclass(frozen=True)
class Evaluation:
    """`Evaluation("after", 12, 120, 0, ...)`; `faults` are uncounted attempts that infrastructure ended.

    `runs` are the tallies of each attempt number over all tasks; `behaviours` are those of each rubric without skills.
    """

    label: str
    successes: int
    attempts: int
    faults: int
    by_domain: dict[str, Tally]
    runs: tuple[Tally, ...]
    skill_bytes: int
    behaviours: dict[str, Tally]
    by_task_type: dict[str, Tally]
    iteration: int = 0

    @property
    def tally(self) -> Tally:
        return Tally(self.successes, self.attempts)

    @property
    def rate(self) -> float | None:
        """Return the pass rate in percent; None if no attempt counts."""
        return 100.0 * self.successes / self.attempts if self.attempts else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Return the 95 % interval of the rate, in percent."""
        low, high = share_interval(self.tally)
        return None if low is None or high is None else (100.0 * low, 100.0 * high)

    @property
    def spread(self) -> tuple[float, float] | None:
        """Return mean and sample standard deviation over the runs, in percent; None for fewer than two."""
        rates = [100.0 * run.passes / run.evaluations for run in self.runs if run.evaluations]
        return (mean(rates), stdev(rates)) if len(rates) > 1 else None

    @property
    def proof(self) -> str:
        return f"{self.skill_bytes} evolved-skill bytes in {self.attempts + self.faults} prompts"

    def line(self) -> str:
        """Return the score in one line."""
        if not self.attempts:
            return f"{self.label}: no score, infrastructure ended all {self.faults} attempts; {self.proof}"
        spread = ""
        if self.spread:
            centre, deviation = self.spread
            spread = f", {numbers.decimal(centre, 1)} ± {numbers.decimal(deviation, 1)} over {len(self.runs)} runs"
        return (
            f"{self.label}: {rate_text(self.tally)}{spread}; {self.faults} infrastructure faults left out; {self.proof}"
        )

    def table(self) -> str:
        """Return the score line, and one line per domain."""
        width = max(map(len, self.by_domain), default=0)
        lines = [f"  {domain:{width}}  {rate_text(tally)}" for domain, tally in self.by_domain.items()]
        return "\n".join([self.line(), *lines])

    def facts(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return asdict(self) | {
            "rate": self.rate,
            "interval": self.interval,
            "mean": self.spread and self.spread[0],
            "deviation": self.spread and self.spread[1],
            "proof": self.proof,
        }


def share_interval(tally: Tally) -> tuple[float, float] | tuple[None, None]:
    """Return the 95 % Wilson interval as shares; None twice without evaluations."""
    return wilson_interval(*tally) if tally.evaluations else (None, None)


def rate_text(tally: Tally) -> str:
    """Write a rate with its counts and interval: `40.0 % (24 of 60, 95 % 28.6 to 52.6)`."""
    if not tally.evaluations:
        return numbers.MISSING
    passes, evaluations = tally
    counts = counts_text(tally)
    return counts if evaluations < numbers.FEW else f"{numbers.percent(passes / evaluations)} ({counts})"


def counts_text(tally: Tally) -> str:
    """Write the counts and the interval behind a rate: `24 of 60, 95 % 28.6 to 52.6`."""
    if not tally.evaluations:
        return "no attempt counts"
    return f"{tally.passes} of {tally.evaluations}, {numbers.interval(*share_interval(tally))}"


def score_of(label: str, rows: Sequence[AttemptRow]) -> Evaluation:
    """Score the attempts of one evaluation."""
    total = succeeded(rows)
    return Evaluation(
        label,
        total.passes,
        total.evaluations,
        len(rows) - total.evaluations,
        tallies([(row.domain, row.success) for row in rows]),
        tuple(tallies([(row.attempt, row.success) for row in rows]).values()),
        sum(row.skill_bytes for row in rows),
        judged(row.verdicts for row in rows),
        tallies([(row.task_type, row.success) for row in rows]),
        max((row.k for row in rows), default=0),
    )


def score(label: str, run: RunQueries) -> Evaluation:
    """Score an evaluation in a run's store."""
    return score_of(label, run.attempts(label))


def stored_evaluation(label: str, run: RunQueries, wanted: int) -> Evaluation | None:
    """Score attempts in the store; None unless all `wanted` of them are stored."""
    return score(label, run) if run.attempt_count(label) == wanted else None


def succeeded(rows: Iterable[AttemptRow]) -> Tally:
    """Count successes and attempts, without those that infrastructure ended."""
    known = [bool(row.success) for row in rows if row.success is not None]
    return Tally(sum(known), len(known))
