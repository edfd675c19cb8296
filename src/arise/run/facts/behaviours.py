"""Behaviours of a run: their rates with and without the skill, in training and on held-out tasks."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from arise.method.pass_rate import pass_rate
from arise.method.standing import Standing
from arise.run.facts.held_out import AFTER, BEFORE, HeldOut, RateChange, held_out
from arise.run.facts.verdicts import Guided, counts_by_rubric, guided_counts
from arise.run.facts.windows import latest, pair_windows
from arise.run.pool_rows import PairLife, VerdictCount
from arise.run.queries import RunQueries
from arise.text.numbers import FEW
from arise.types import Rubric, Tally

HELD_OUT, TRAINING = "held out", "training"


@dataclass(frozen=True)
class Behaviour:
    """One criterion, over all pairs with the same text, oldest pair first.

    Training verdicts: `guided` are those of rollouts that saw the skill, `beside` those of other rollouts in the same
    iterations, `alone` those of iterations that did not show it. `first` holds the unguided verdicts of the first
    window, `last` those of the last window, together with earlier ones if it has too few for a rate. `before` and
    `after` are held-out attempts, which never see a skill.
    """

    pairs: tuple[PairLife, ...]
    guided: Tally
    beside: Tally
    alone: Tally
    recent: Guided
    first: Tally
    last: Tally
    before: Tally
    after: Tally

    @property
    def pair(self) -> PairLife:
        return self.pairs[-1]

    @property
    def rubric(self) -> Rubric:
        return self.pair.rubric

    @property
    def standing(self) -> Standing:
        return self.pair.standing

    @property
    def unguided(self) -> Tally:
        """Return the current unguided verdicts: on held-out tasks, or in training if those were not judged."""
        return self.after if self.after.evaluations else self.last

    @property
    def source(self) -> str:
        return HELD_OUT if self.after.evaluations else TRAINING

    @property
    def change(self) -> RateChange | None:
        """Return the unguided change on held-out tasks, or from the first to the last window of training."""
        first, last = (self.before, self.after) if self.after.evaluations else (self.first, self.last)
        return RateChange(first, last) if first.evaluations and last.evaluations else None


def behaviours(run: RunQueries, evaluated: HeldOut | None = None) -> list[Behaviour]:
    """Return every behaviour of a run in order of birth; identical criteria are one behaviour."""
    evaluated = evaluated or held_out(run)
    counts, size, committed = counts_by_rubric(run.verdict_counts()), run.update_every, run.committed()
    same: dict[str, list[PairLife]] = defaultdict(list)
    for pair in run.pairs():
        same[same_words(pair.rubric.criteria_text)].append(pair)
    return [_behaviour(pairs, counts, evaluated, size, committed) for pairs in same.values()]


def same_words(text: str) -> str:
    """Return the key that identical criteria share."""
    return " ".join(text.casefold().split())


def _behaviour(
    pairs: Sequence[PairLife], counts: Mapping[str, list[VerdictCount]], evaluated: HeldOut, size: int, committed: int
) -> Behaviour:
    rows = [row for pair in pairs for row in counts.get(pair.rubric.id, ())]
    shown_in = {(row.rubric_id, row.k) for row in rows if row.shown}
    beside = [row for row in rows if not row.shown and (row.rubric_id, row.k) in shown_in]
    alone = [row for row in rows if (row.rubric_id, row.k) not in shown_in]
    split = guided_counts(rows)
    windows = [w for pair in pairs for w in pair_windows(pair, counts.get(pair.rubric.id, ()), size, committed)]
    judged = [window for window in windows if window.evaluations]
    on_its_own = [window.unguided for window in judged if window.unguided.evaluations]
    recent = [row for row in rows if judged and row.k >= judged[-1].first]
    before, after = (_newest(pairs, evaluated, label) for label in (BEFORE, AFTER))
    return Behaviour(
        tuple(pairs),
        split.guided,
        guided_counts(beside).unguided,
        guided_counts(alone).unguided,
        guided_counts(recent),
        on_its_own[0] if on_its_own else Tally(),
        latest(on_its_own),
        before,
        after,
    )


def _newest(pairs: Sequence[PairLife], evaluated: HeldOut, label: str) -> Tally:
    """Return the verdicts of the newest pair that has any; identical criteria judge the same attempts."""
    evaluation = evaluated.before if label == BEFORE else evaluated.after
    found = [evaluation.behaviours.get(pair.rubric.id, Tally()) for pair in pairs] if evaluation else []
    return next((tally for tally in reversed(found) if tally.evaluations), Tally())


def weakest(found: Iterable[Behaviour], below: float = 1.0) -> list[Behaviour]:
    """Return the behaviours whose unguided rate is below a bound, weakest first, those with few verdicts last."""
    judged = [behaviour for behaviour in found if behaviour.unguided.evaluations]
    weak = [behaviour for behaviour in judged if (pass_rate(behaviour.unguided) or 0.0) < below]
    return sorted(weak, key=weakness)


def weakness(behaviour: Behaviour) -> tuple[bool, float, int, str]:
    """Return the sort key from the weakest unguided behaviour to the strongest, those with few verdicts last."""
    tally = behaviour.unguided
    return tally.evaluations < FEW, pass_rate(tally) or 0.0, -tally.evaluations, behaviour.rubric.id


def contrasts(run: RunQueries) -> dict[int, Guided]:
    """Return verdicts on rubrics whose skill was shown, by k: of rollouts that saw it, and of others."""
    counts = run.verdict_counts()
    shown_in = {(count.rubric_id, count.k) for count in counts if count.shown}
    by_k: dict[int, list[VerdictCount]] = defaultdict(list)
    for count in counts:
        if (count.rubric_id, count.k) in shown_in:
            by_k[count.k].append(count)
    return {k: guided_counts(rows) for k, rows in by_k.items()}


def as_json(behaviour: Behaviour) -> dict[str, Any]:
    """Return a behaviour as JSON values: each rate with its number of verdicts."""
    tallies = {name: getattr(behaviour, name) for name in ("guided", "beside", "alone", "before", "after")}
    rates = {name: [pass_rate(tally), tally.evaluations] for name, tally in tallies.items()}
    return {"rubric": behaviour.rubric.id, "criterion": behaviour.rubric.criteria_text} | rates
