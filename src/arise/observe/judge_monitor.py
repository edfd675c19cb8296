"""Check whether the rubrics of a run can be trusted, and report the cost of its judge; observes only."""

from collections.abc import Mapping, Sequence

from arise.config import Config
from arise.llm.client.spend import Budget
from arise.llm.judge.meter import Meter
from arise.method.alarm import Divergence, divergence
from arise.observe.summary import weak_line
from arise.run.facts.alarms import SUSPECT, alarm_text, recorded_signals, signal_of
from arise.run.facts.judging import judging_metrics, missing_by_kind, unusable_text
from arise.run.facts.story import run_facts
from arise.run.numbering import k_of
from arise.run.queries import RunQueries
from arise.text import numbers
from arise.types import Group

ALIKE, ENOUGH_SHARED = 0.97, 30


class JudgeMonitor:
    """Compare rubric pass rates with verified success at every pool update; a resumed run reads its history."""

    def __init__(
        self,
        config: Config,
        run: RunQueries,
        iteration: int,
        budget: Budget | None = None,
        meter: Meter | None = None,
    ) -> None:
        self._every, self._iterations = config.pool.update_every, config.train.iterations
        self._window = max(2, self._every)
        self._budget, self._meter = budget, meter
        self._run = run
        self._signals = recorded_signals(run, iteration - 2 * self._window, iteration)

    def numbers(self, iteration: int, groups: Sequence[Group]) -> dict[str, float]:
        """Return the judge's metrics for the record of an iteration, numbered from 1."""
        self._signals[k_of(iteration)] = signal_of(groups)
        found = self._divergence(iteration) if iteration % self._every == 0 else None
        return judging_metrics(groups) | (_as_numbers(found) if found else {})

    def judge(self, metrics: Mapping[str, float]) -> str:
        """Summarise the judge: the share of valid verdicts, and the number of model calls."""
        asked = metrics["verdicts"] + metrics["verdicts_absent"]
        share = metrics["verdicts"] / asked if asked else None
        valid = f"{numbers.percent(share)} of {numbers.amount(asked)} verdicts valid" if asked else "no verdict"
        return f"{valid}; {self._meter}" if self._meter else valid

    def money(self, iteration: int) -> str:
        """Return spend so far and the forecast; empty for a judge without calls."""
        return str(self._budget.forecast(iteration, self._iterations)) if self._budget else ""

    def costs(self) -> dict[str, float]:
        """Return the judge's seconds in the last iteration, and the cost of all calls so far."""
        return (self._meter.lap() if self._meter else {}) | (self._budget.so_far() if self._budget else {})

    def still_wrong(self, most: int) -> list[str]:
        """Return the weakest unguided behaviours of the committed run and what is being done about them."""
        facts = run_facts(self._run)
        return [weak_line(behaviour, facts) for behaviour in facts.still_wrong[:most]]

    def summary(self, run: RunQueries) -> list[str]:
        """Return the final lines: valid verdicts, their cost, every recorded alarm, and rubrics that agree."""
        rows = run.iterations()
        totals = {name: sum(row.metrics.get(name, 0.0) for row in rows) for name in ("verdicts", "verdicts_absent")}
        missing = missing_by_kind(row.metrics for row in rows)
        if not any(totals.values()) and not missing:
            return []
        money = self.money(len(rows))
        alarms = [text for row in rows if (text := alarm_text(row.number, row.metrics))]
        compared = sum("alarm" in row.metrics for row in rows)
        wrong = unusable_text([row.metrics for row in rows])
        counts = f"missing {', '.join(f'{n:,} {kind}' for kind, n in missing.items())}" if missing else ""
        return [
            f"judge: {self.judge(totals)}" + (f"; {money}" if money else ""),
            *([f"judge, whole run: {wrong or counts}"] if wrong or counts else []),
            *(alarms or [f"no alarm in {compared} comparisons of rubric pass rates with verified success"]),
            *alike(run, len(rows) - self._window),
        ]

    def _divergence(self, iteration: int) -> Divergence | None:
        numbers = range(iteration - 2 * self._window, iteration)
        return divergence([self._signals[k] for k in numbers if k in self._signals], self._window)


def alike(run: RunQueries, first: int) -> list[str]:
    """Return rubrics that almost always agreed from k = `first` on and may measure the same behaviour."""
    return [
        f"{one} and {other} gave the same verdict on {same} of {shared} rollouts: they may measure the same"
        for one, other, same, shared, passes in run.agreements(first)
        if shared >= ENOUGH_SHARED and same >= ALIKE * shared and min(passes, shared - passes) >= shared / 10
    ]


def _as_numbers(found: Divergence) -> dict[str, float]:
    return {
        "rubric_rise": found.rubric_rise,
        "success_rise": found.success_rise,
        "divergence": found.z,
        "alarm": float(found.alarm),
    } | {f"{SUSPECT}{rubric_id}": 1.0 for rubric_id in found.suspects}
