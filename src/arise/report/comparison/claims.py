"""Test the paper's claims against the measured runs: supported, contradicted or undecided."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean, median

from arise.report.comparison.measures import STAGES, RunMeasures, Study
from arise.report.comparison.statistics import Interval, Outcomes, Reach, compare, reach, student_interval
from arise.report.comparison.tables import interval_text, label, p_text
from arise.text.numbers import decimal
from arise.types import Tally

HOLDS, FAILS, UNKNOWN = "holds", "does not hold", "cannot tell"
OURS, REFERENCE, WITHOUT_SKILLS = "arise", "outcome-only", "no-skill-injection"
RETAINED = 0.9


@dataclass(frozen=True)
class Claim:
    """A claim, the verdict of the runs, and the numbers behind it."""

    text: str
    verdict: str
    numbers: str


def decide(interval: Interval | None, bound: float, *, want_above: bool) -> str:
    """Decide a claim only if the whole interval is on one side of the bound."""
    if interval is None:
        return UNKNOWN
    above, below = interval.above(bound), interval.below(bound)
    if above or below:
        return HOLDS if above == want_above else FAILS
    return UNKNOWN


def claims(study: Study) -> list[Claim]:
    """Evaluate every claim that the methods in the study can test."""
    makers: list[Callable[[Study], Iterator[Claim]]] = [
        _learns,
        _reaches,
        _beats_the_others,
        _sampler_order,
        _fewer_all_failures,
        _turns_over,
        _retains,
    ]
    return [claim for make in makers for claim in make(study)]


def outcomes(study: Study, method: str, evaluation: str = "after") -> Outcomes:
    """Return every held-out attempt of a method."""
    found: dict[tuple[int, str, int], bool] = {}
    for run in study.get(method, []):
        found |= run.outcomes(evaluation)
    return found


def _learns(study: Study) -> Iterator[Claim]:
    if OURS in study:
        gains = [run.score("after").rate - run.score("before").rate for run in study[OURS] if run.score("before").tried]
        if gains:
            gain = student_interval(gains)
            text = "ARISE's held-out pass rate rises above that of the start it was trained from"
            yield Claim(text, decide(gain, 0.0, want_above=True), f"{interval_text(gain, signed=True)} points")


def reaching(study: Study, method: str) -> Reach | None:
    """Return when a method first reaches outcome-only's final pass rate."""
    target_of = {run.seed: run.score("after").rate for run in study.get(REFERENCE, [])}
    return reach({run.seed: run.curve() for run in study.get(method, [])}, target_of)


def _reaches(study: Study) -> Iterator[Claim]:
    found = reaching(study, OURS)
    if found is None:
        return
    total = study[REFERENCE][0].planned
    itself = reaching(study, REFERENCE)
    own = f"; outcome-only itself first stands there at {_when(itself.first)}" if itself else ""
    empty = itself is not None and itself.first == 0.0
    if empty:
        own = "; outcome-only ends no higher than it began, so this says nothing"
    for share, words in ((1 / 3, "a third"), (1 / 4, "a quarter")):
        text = f"ARISE reaches outcome-only's final pass rate in {words} of the iterations or fewer"
        interval = (
            f" (95 % {_when(found.low)} to {_when(found.high)})" if found.seeds > 1 else " (one seed: no interval)"
        )
        verdict = UNKNOWN if empty else _soon_enough(found, share * total)
        yield Claim(text, verdict, f"{_when(found.first)} of {total}{interval}{own}")


def _soon_enough(found: Reach, limit: float) -> str:
    """Decide whether the target was reached within the limit; never reaching it counts as later."""
    if found.seeds < 2:
        return UNKNOWN
    if found.high is not None and found.high <= limit:
        return HOLDS
    return FAILS if found.low is None or found.low > limit else UNKNOWN


def _when(iteration: float | None) -> str:
    return "never" if iteration is None else f"iteration {iteration:.0f}"


def _beats_the_others(study: Study) -> Iterator[Claim]:
    for method in study:
        found = compare(outcomes(study, OURS), outcomes(study, method)) if method != OURS else None
        if found:
            yield Claim(
                f"ARISE's final held-out pass rate is above that of {label(method)}",
                decide(found.by_seed, 0.0, want_above=True),
                f"{interval_text(found.by_seed, signed=True)} points; exact p by seed {p_text(found.p_by_seed)}",
            )


def _sampler_order(study: Study) -> Iterator[Claim]:
    found = compare(outcomes(study, "vade-sampling"), outcomes(study, "no-adaptive-sampling"))
    if found:
        verdict = decide(found.by_seed, 0.0, want_above=True)
        text = "VADE sampling improves on sampling that does not adapt"
        yield Claim(text, verdict, f"{interval_text(found.by_seed, signed=True)} points")


def all_failure_differences(ours: RunMeasures, theirs: RunMeasures) -> list[float | None]:
    """Return all-fail rates (%) by third of the run, ours minus theirs, with equal weight for each shared task."""
    found: list[float | None] = []
    for mine, other in zip(ours.all_failure_by_stage(), theirs.all_failure_by_stage(), strict=True):
        shared = mine.keys() & other.keys()
        found.append(_mean_rate(mine, shared) - _mean_rate(other, shared) if shared else None)
    return found


def _mean_rate(counts: Mapping[str, tuple[int, int]], tasks: set[str]) -> float:
    return 100.0 * fmean(counts[task][0] / counts[task][1] for task in tasks)


def _fewer_all_failures(study: Study) -> Iterator[Claim]:
    others = {run.seed: run for run in study.get(WITHOUT_SKILLS, [])}
    pairs = [(run, others[run.seed]) for run in study.get(OURS, []) if run.seed in others]
    by_seed = [all_failure_differences(*pair) for pair in pairs]
    for stage, name in enumerate(STAGES):
        values = [value for differences in by_seed if (value := differences[stage]) is not None]
        if values:
            interval = student_interval(values)
            text = f"ARISE has fewer all-failure groups than without skill injection, {name} third"
            verdict = decide(interval, 0.0, want_above=False)
            yield Claim(text, verdict, f"{interval_text(interval, signed=True)} points, tasks that both drew")


def _turns_over(study: Study) -> Iterator[Claim]:
    runs = study.get(OURS, [])
    if runs:
        born, retired = ([run.words_of(kind) for run in runs] for kind in ("born", "retire"))
        again = fmean(len(words) - len(set(words)) for words in born)
        numbers = (
            f"{decimal(fmean(map(len, born)), 1)} born a run, "
            f"{decimal(again, 1)} of them in the words of one that had gone; "
            f"{interval_text(student_interval([float(len(words)) for words in retired]))} retired, "
            f"{decimal(fmean(len(set(words)) for words in retired), 1)} different ones"
        )
        verdict = UNKNOWN if len(runs) < 2 else HOLDS if all(retired) else FAILS
        yield Claim("Rubrics are replaced, not only added: some are retired in every run", verdict, numbers)


def _retains(study: Study) -> Iterator[Claim]:
    later = [run.later_tallies() for run in study.get(OURS, [])]
    seen = [tally for tallies in later for tally in tallies if tally.evaluations]
    totals = [Tally(*map(sum, zip(*tallies, strict=True))) for tallies in later if tallies]
    rates = [total.passes / total.evaluations for total in totals if total.evaluations]
    if rates:
        interval = student_interval(rates).within(0.0, 1.0)
        text = "On average, retired behaviours stay above 0.9 at later checkpoints without guidance"
        above = sum(tally.passes > RETAINED * tally.evaluations for tally in seen)
        silent = sum(map(len, later)) - len(seen)
        numbers = (
            f"{_share(interval)} of verdicts; {above} of {len(seen)} later evaluations above 0.9, by "
            f"{median(tally.evaluations for tally in seen):.0f} verdicts in the middle case; {silent} without a verdict"
        )
        yield Claim(text, decide(interval, RETAINED, want_above=True), numbers)


def _share(interval: Interval) -> str:
    if interval.low is None or interval.high is None:
        return f"{decimal(interval.estimate)} (one seed: no interval)"
    return f"{decimal(interval.estimate)} (95 % {decimal(interval.low)} to {decimal(interval.high)})"
