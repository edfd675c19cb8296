"""The score of recorded attempts: pooled and by domain, its interval, its spread over runs, the faults beside it."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from arise.evaluation.metrics import mean_and_deviation, pooled_pass_rate, wilson_interval
from arise.types import Tally, Verdict

Query = Callable[..., list[tuple[Any, ...]]]


@dataclass(frozen=True)
class Evaluation:
    """`Evaluation("after", 12, 120, 0, {...})`; `faults` ended attempts before the agent could and are not counted.

    `runs` are the tallies of each attempt number over all tasks; `behaviours` those of each rubric, nothing shown.
    """

    label: str
    successes: int
    attempts: int
    faults: int
    by_domain: dict[str, Tally]
    runs: tuple[Tally, ...]
    skill_bytes: int
    behaviours: dict[str, Tally]

    @property
    def rate(self) -> float | None:
        return pooled_pass_rate(self.successes, self.attempts) if self.attempts else None

    @property
    def interval(self) -> tuple[float, float] | None:
        return _percent_interval(Tally(self.successes, self.attempts))

    @property
    def spread(self) -> tuple[float, float] | None:
        """Mean and sample standard deviation over the runs, from unrounded rates; None with fewer than two."""
        rates = [pooled_pass_rate(*run) for run in self.runs if run.evaluations]
        return mean_and_deviation(rates) if len(rates) > 1 else None

    @property
    def proof(self) -> str:
        return f"{self.skill_bytes} evolved-skill bytes in {self.attempts + self.faults} prompts"

    def line(self) -> str:
        """One line for a person."""
        if self.rate is None or self.interval is None:
            return f"{self.label}: no score, infrastructure ended all {self.faults} attempts; {self.proof}"
        low, high = self.interval
        spread = f", {self.spread[0]:.1f} +- {self.spread[1]:.1f} over {len(self.runs)} runs" if self.spread else ""
        return (
            f"{self.label}: {self.rate:.1f} % ({self.successes}/{self.attempts}, 95 % {low:.1f}-{high:.1f}){spread}; "
            f"{self.faults} infrastructure faults left out; {self.proof}"
        )

    def table(self) -> str:
        """The line, and one more for each domain."""
        width = max(map(len, self.by_domain), default=0)
        lines = [self.line()]
        for domain, tally in self.by_domain.items():
            low, high = _percent_interval(tally) or (0.0, 100.0)
            rate = f"{pooled_pass_rate(*tally):5.1f} %" if tally.evaluations else "  --   "
            lines.append(f"  {domain:{width}}  {rate}  ({tally.passes}/{tally.evaluations}, 95 % {low:.1f}-{high:.1f})")
        return "\n".join(lines)

    def facts(self) -> dict[str, Any]:
        """Everything as JSON values."""
        return asdict(self) | {
            "rate": self.rate,
            "interval": self.interval,
            "mean": self.spread and self.spread[0],
            "deviation": self.spread and self.spread[1],
            "proof": self.proof,
        }


def score(label: str, query: Query) -> Evaluation:
    """The score of an evaluation's attempts in a run's store."""
    rows = query("SELECT domain, attempt, success, verdicts, skill_bytes FROM attempts WHERE label=?", (label,))
    valid = [bool(success) for _, _, success, _, _ in rows if success is not None]
    verdicts = [item for row in rows for item in json.loads(row[3]).items() if item[1] != Verdict.NOT_APPLICABLE]
    return Evaluation(
        label,
        sum(valid),
        len(valid),
        len(rows) - len(valid),
        tallies([(domain, success) for domain, _, success, _, _ in rows]),
        tuple(tallies([(number, success) for _, number, success, _, _ in rows]).values()),
        sum(row[4] for row in rows),
        tallies([(rubric_id, verdict == Verdict.PASS) for rubric_id, verdict in verdicts]),
    )


def stored_evaluation(label: str, query: Query, wanted: int) -> Evaluation | None:
    """The score of attempts that are in the store; None unless all `wanted` of them are."""
    ((found,),) = query("SELECT COUNT(*) FROM attempts WHERE label=?", (label,))
    return score(label, query) if found == wanted else None


def tallies(outcomes: Sequence[tuple[Any, Any]]) -> dict[Any, Tally]:
    """Passes and evaluations by key; an outcome of None is no evaluation, but its key is kept."""
    found: dict[Any, Tally] = {}
    for key, passed in sorted(outcomes, key=lambda outcome: outcome[0]):
        passes, evaluations = found.get(key, Tally())
        found[key] = Tally(passes + bool(passed), evaluations + (passed is not None))
    return found


def _percent_interval(tally: Tally) -> tuple[float, float] | None:
    if not tally.evaluations:
        return None
    low, high = wilson_interval(*tally)
    return 100.0 * low, 100.0 * high
