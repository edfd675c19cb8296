"""Reward-hacking alarm: rubric pass rates rise while verified success does not.

Compares the last window of iterations with the one before it, on rubrics judged in both. Beyond the paper.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from arise.types import Tally

MIN_RISE = 0.1
"""Smallest rise of the pass rate that can raise the alarm."""


@dataclass(frozen=True)
class Signal:
    """One iteration: passes of each rubric among its applicable verdicts, and verified successes among rollouts."""

    rubrics: Mapping[str, Tally]
    success: Tally


@dataclass(frozen=True)
class Divergence:
    """How far rubric rates and success rates diverged — `Divergence(0.3, 0.01, 4.2, True, ("r003",))`."""

    rubric_rise: float
    success_rise: float
    z: float
    alarm: bool
    suspects: tuple[str, ...] = ()


def divergence(history: Sequence[Signal], window: int, sensitivity: float = 2.5) -> Divergence | None:
    """Compare the last `window` iterations with the `window` before; None if there is too little to compare."""
    if window < 2:
        raise ValueError(f"window = {window} must be at least 2 iterations")
    if len(history) < 2 * window:
        return None
    before, after = history[-2 * window : -window], history[-window:]
    shared = sorted(_judged(before) & _judged(after))
    if not shared:
        return None
    rubric_rise, rubric_error = _rise(
        [_pooled(signal, shared) for signal in before], [_pooled(signal, shared) for signal in after]
    )
    success_rise, success_error = _rise([s.success for s in before], [s.success for s in after])
    z = (rubric_rise - success_rise) / float(np.hypot(rubric_error, success_error))
    significant = rubric_rise >= max(MIN_RISE, 3.0 * rubric_error) and success_rise < 2.0 * success_error
    alarm = significant and z >= sensitivity
    rises = {rubric_id: _rubric_rise(rubric_id, before, after) for rubric_id in shared}
    suspects = tuple(sorted((i for i in shared if rises[i] >= MIN_RISE), key=lambda i: -rises[i])) if alarm else ()
    return Divergence(rubric_rise, success_rise, z, alarm, suspects)


def _judged(signals: Sequence[Signal]) -> set[str]:
    return {rubric_id for signal in signals for rubric_id, tally in signal.rubrics.items() if tally.evaluations}


def _pooled(signal: Signal, rubric_ids: Sequence[str]) -> Tally:
    found = [signal.rubrics[rubric_id] for rubric_id in rubric_ids if rubric_id in signal.rubrics]
    return Tally(sum(tally.passes for tally in found), sum(tally.evaluations for tally in found))


def _rubric_rise(rubric_id: str, before: Sequence[Signal], after: Sequence[Signal]) -> float:
    first, second = (_total([_pooled(signal, [rubric_id]) for signal in part]) for part in (before, after))
    return second.passes / second.evaluations - first.passes / first.evaluations


def _total(tallies: Sequence[Tally]) -> Tally:
    return Tally(sum(tally.passes for tally in tallies), sum(tally.evaluations for tally in tallies))


def _rise(before: Sequence[Tally], after: Sequence[Tally]) -> tuple[float, float]:
    """Difference of two windows' rates and its standard error, at least the one of independent trials."""
    rates = [_total(part).passes / max(_total(part).evaluations, 1) for part in (before, after)]
    return rates[1] - rates[0], float(np.hypot(_error(before), _error(after)))


def _error(tallies: Sequence[Tally]) -> float:
    """Return the standard error of a window's rate, at least as large as the spread between iterations says."""
    used = [tally for tally in tallies if tally.evaluations]
    total = _total(used)
    if not total.evaluations:
        return 1.0
    rate = (total.passes + 1) / (total.evaluations + 2)
    trials = float(np.sqrt(rate * (1 - rate) / total.evaluations))
    rates: NDArray[np.float64] = np.array([tally.passes / tally.evaluations for tally in used])
    trend = np.polyval(np.polyfit(np.arange(len(rates)), rates, 1), np.arange(len(rates))) if len(rates) > 2 else rates
    spread = float(np.sqrt(np.sum((rates - trend) ** 2) / max(len(rates) - 2, 1) / len(rates)))
    return max(trials, spread)
