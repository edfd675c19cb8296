"""Whether the rubrics of a run can still be trusted, and what its judge costs: seen from outside, changing nothing."""

import json
from collections.abc import Mapping, Sequence

from arise.config import Config
from arise.llm.meter import Meter
from arise.llm.spend import Budget
from arise.method.alarm import Divergence, Signal, divergence, signal_of
from arise.run.store import RunStore
from arise.types import Group, Tally

SUSPECT = "suspect "
ALIKE, ENOUGH_SHARED = 0.97, 30


class Trust:
    """The alarm over a run's own record, at every pool update; a resumed run knows what came before it."""

    def __init__(
        self, config: Config, store: RunStore, iteration: int, budget: Budget | None = None, meter: Meter | None = None
    ) -> None:
        self._every, self._iterations = config.pool.update_every, config.train.iterations
        self._window = max(2, self._every)
        self._budget, self._meter = budget, meter
        self._signals = recorded_signals(store, iteration - 2 * self._window, iteration)

    def numbers(self, iteration: int, groups: Sequence[Group]) -> dict[str, float]:
        """What the record of the iteration that ended as number `iteration` keeps."""
        self._signals[iteration - 1] = signal_of(groups)
        judgments = [r.judgment for group in groups for r in group.rollouts if r.judgment]
        had = sum(len(judgment.verdicts) for judgment in judgments)
        asked = had + sum(len(judgment.absent) for judgment in judgments)
        found = self._divergence(iteration) if iteration % self._every == 0 else None
        return {"verdicts": had, "verdicts_absent": asked - had} | (_as_numbers(found) if found else {})

    def judge(self, metrics: Mapping[str, float]) -> str:
        """The judge in a few words: verdicts that could be had, and for a model its calls."""
        asked = metrics["verdicts"] + metrics["verdicts_absent"]
        valid = f"{100 * metrics['verdicts'] / asked:.1f} % of {asked:.0f} verdicts valid" if asked else "no verdict"
        return f"{valid}; {self._meter}" if self._meter else valid

    def money(self, iteration: int) -> str:
        """Spend so far and where it is heading; empty where no call costs anything because there is none."""
        return str(self._budget.forecast(iteration, self._iterations)) if self._budget else ""

    def costs(self) -> dict[str, float]:
        """How long the judge took in the iteration that just ended, and what calls have cost up to its end."""
        return (self._meter.lap() if self._meter else {}) | (self._budget.so_far() if self._budget else {})

    def summary(self, store: RunStore) -> list[str]:
        """What a person should know at the end: how many verdicts could be had, what they cost, every alarm."""
        rows = [(k, json.loads(metrics)) for k, metrics in store.query("SELECT k, metrics FROM iterations ORDER BY k")]
        totals = {name: sum(metrics.get(name, 0.0) for _, metrics in rows) for name in ("verdicts", "verdicts_absent")}
        if not any(totals.values()):
            return []
        money = self.money(len(rows))
        alarms = [text for k, metrics in rows if (text := alarm_text(k + 1, metrics))]
        compared = sum("alarm" in metrics for _, metrics in rows)
        return [
            f"judge: {self.judge(totals)}" + (f"; {money}" if money else ""),
            *(alarms or [f"no alarm in {compared} comparisons of rubric pass rates with verified success"]),
            *alike(store, len(rows) - self._window),
        ]

    def _divergence(self, iteration: int) -> Divergence | None:
        numbers = range(iteration - 2 * self._window, iteration)
        return divergence([self._signals[k] for k in numbers if k in self._signals], self._window)


def alarm_text(iteration: int, metrics: Mapping[str, float]) -> str:
    """The alarm of an iteration in words, or an empty string."""
    if not metrics.get("alarm"):
        return ""
    suspects = [name.removeprefix(SUSPECT) for name in metrics if name.startswith(SUSPECT)]
    return (
        f"alarm at iteration {iteration}: rubric pass rates rose by {100 * metrics['rubric_rise']:.0f} points while "
        f"verified success moved by {100 * metrics['success_rise']:+z.0f}; look at {', '.join(suspects)}"
    )


def recorded_signals(store: RunStore, first: int, end: int) -> dict[int, Signal]:
    """Signals of the committed iterations from `first` up to `end`, as `signal_of` would give them."""
    between = (max(0, first), end)
    rows = store.query(
        "SELECT k, COALESCE(SUM(success), 0), COUNT(success) FROM rollouts WHERE k >= ? AND k < ? GROUP BY k", between
    )
    found = {k: Signal({}, Tally(successes, rollouts)) for k, successes, rollouts in rows}
    rows = store.query(
        "SELECT k, rubric_id, SUM(verdict = 'pass'), COUNT(*) FROM verdicts "
        "WHERE verdict IN ('pass', 'fail') AND k >= ? AND k < ? GROUP BY k, rubric_id",
        between,
    )
    for k, rubric_id, passes, evaluations in rows:
        found[k] = Signal({**found[k].rubrics, rubric_id: Tally(passes, evaluations)}, found[k].success)
    return found


def alike(store: RunStore, first: int) -> list[str]:
    """Rubrics that hardly ever differed from iteration `first` on: a hint that they measure the same behaviour."""
    rows = store.query(
        "SELECT a.rubric_id, b.rubric_id, SUM(a.verdict = b.verdict), COUNT(*), SUM(a.verdict = 'pass') "
        "FROM verdicts a JOIN verdicts b ON a.rollout_id = b.rollout_id AND a.rubric_id < b.rubric_id "
        "WHERE a.k >= ? AND a.verdict IN ('pass', 'fail') AND b.verdict IN ('pass', 'fail') "
        "GROUP BY a.rubric_id, b.rubric_id",
        (first,),
    )
    return [
        f"{one} and {other} gave the same verdict on {same} of {shared} rollouts: they may measure the same"
        for one, other, same, shared, passes in rows
        if shared >= ENOUGH_SHARED and same >= ALIKE * shared and min(passes, shared - passes) >= shared / 10
    ]


def _as_numbers(found: Divergence) -> dict[str, float]:
    return {
        "rubric_rise": found.rubric_rise,
        "success_rise": found.success_rise,
        "divergence": found.z,
        "alarm": float(found.alarm),
    } | {f"{SUSPECT}{rubric_id}": 1.0 for rubric_id in found.suspects}
