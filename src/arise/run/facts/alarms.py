"""Alarms: behaviours that got worse, stuck skills, gamed rubrics, no signal, a failing judge, faults."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from arise.method.alarm import Signal, divergence
from arise.run.facts.judging import unusable_text
from arise.run.facts.verdicts import kinds_by_rubric
from arise.run.pool_rows import VerdictCount
from arise.run.queries import RunQueries
from arise.run.rows import GroupSums, Iteration
from arise.text import numbers
from arise.types import Group, Tally

NO_SIGNAL_AFTER = 5
VALID_VERDICTS = 0.95
ONE_SIDED_AFTER = 64
"""This many equal verdicts in a row, over rollouts of which some succeed and some fail, are not chance."""
SUSPECT = "suspect "


@dataclass(frozen=True)
class Alarm:
    """`Alarm("serious", "Rubrics rise, success does not", "...")`; the level is serious or note."""

    level: str
    title: str
    text: str
    rubrics: tuple[str, ...] = ()


def training_alarms(run: RunQueries) -> list[Alarm]:
    """Return the training alarms that apply at the last committed iteration."""
    iterations, groups, counts, window = run.iterations(), run.group_sums(), run.verdict_counts(), run.update_every
    if not iterations:
        return []
    last = iterations[-1].k
    recent = [group for group in groups if group.k > last - window]
    found = [
        _divergence(groups, counts, last, max(2, window)),
        _no_signal(groups, last),
        _judge(judged := [count for count in counts if count.k > last - window], iterations[-window:]),
        _one_sided(judged, recent),
        _incomplete(recent, window),
        _set_aside(iterations[-1]),
        _skipped(iterations[-window:]),
    ]
    return [alarm for alarm in found if alarm]


def signal_of(groups: Sequence[Group]) -> Signal:
    """Return the signal in one iteration's groups; rollouts without an outcome are not counted."""
    outcomes = [r.success for group in groups for r in group.rollouts if r.success is not None]
    rubrics: dict[str, Tally] = {}
    for (rubric_id, _), kinds in kinds_by_rubric(groups).items():
        if kinds.tally.evaluations:
            rubrics[rubric_id] = rubrics.get(rubric_id, Tally()).plus(kinds.tally)
    return Signal(rubrics, Tally(sum(outcomes), len(outcomes)))


def recorded_signals(run: RunQueries, first: int, end: int) -> dict[int, Signal]:
    """Return the signals of committed iterations k = first to end - 1, as computed by `signal_of`."""
    return _signals(run.group_sums(), run.verdict_counts(), max(0, first), end)


def _signals(groups: Sequence[GroupSums], counts: Sequence[VerdictCount], first: int, end: int) -> dict[int, Signal]:
    rubrics: dict[int, dict[str, Tally]] = defaultdict(dict)
    for count in counts:
        if first <= count.k < end and count.evaluations:
            before = rubrics[count.k].get(count.rubric_id, Tally())
            rubrics[count.k][count.rubric_id] = before.plus(Tally(count.passes, count.evaluations))
    inside = [group for group in groups if first <= group.k < end]
    return {group.k: Signal(rubrics[group.k], Tally(group.successes, group.rewarded)) for group in inside}


def alarm_text(iteration: int, metrics: Mapping[str, float]) -> str:
    """Return the text of the alarm that an iteration recorded, or an empty string."""
    if not metrics.get("alarm"):
        return ""
    suspects = [name.removeprefix(SUSPECT) for name in metrics if name.startswith(SUSPECT)]
    return (
        f"alarm at iteration {iteration}: rubric pass rates moved by {numbers.difference(metrics['rubric_rise'])} "
        f"points while verified success moved by {numbers.difference(metrics['success_rise'])}; "
        f"look at {', '.join(suspects)}"
    )


def _divergence(groups: Sequence[GroupSums], counts: Sequence[VerdictCount], last: int, window: int) -> Alarm | None:
    first = max(0, last - 2 * window + 1)
    signals = _signals(groups, counts, first, last + 1)
    none = Signal({}, Tally())
    found = divergence([signals.get(k, none) for k in range(first, last + 1)], window)
    if found is None or not found.alarm:
        return None
    return Alarm(
        "serious",
        "Rubric reward rises, verified success does not",
        f"Over {window} iterations rubrics rose by {numbers.difference(found.rubric_rise)} points, success by "
        f"{numbers.difference(found.success_rise)} (z = {numbers.decimal(found.z, 1)}). Read these rubrics and some of "
        "their rollouts.",
        found.suspects,
    )


def _no_signal(groups: Sequence[GroupSums], last: int) -> Alarm | None:
    mixed = max((group.k for group in groups if group.mixed), default=-1)
    if last - mixed < NO_SIGNAL_AFTER:
        return None
    return Alarm(
        "serious",
        "No group with both successes and failures",
        f"For {last - mixed} iterations every group was all-fail or all-pass: only rubrics teach, success does not.",
    )


def _judge(recent: Sequence[VerdictCount], window: Sequence[Iteration]) -> Alarm | None:
    if wrong := unusable_text([iteration.metrics for iteration in window]):
        return Alarm("serious", "The judge is not usable", f"In the last {len(window)} iterations {wrong}.")
    absent = sum(count.absent for count in recent)
    total = absent + sum(count.evaluations + count.not_applicable for count in recent)
    if not total or absent <= (1.0 - VALID_VERDICTS) * total:
        return None
    return Alarm("serious", "The judge gives too few verdicts", f"{absent} of {total} recent verdicts are missing.")


def _one_sided(judged: Sequence[VerdictCount], recent: Sequence[GroupSums]) -> Alarm | None:
    """Return an alarm if every verdict is the same although outcomes differ."""
    passes, total = sum(count.passes for count in judged), sum(count.evaluations for count in judged)
    successes, rewarded = sum(group.successes for group in recent), sum(group.rewarded for group in recent)
    if total < ONE_SIDED_AFTER or 0 < passes < total or not 0 < successes < rewarded:
        return None
    return Alarm(
        "note",
        "One verdict for everything",
        f"All {total} recent verdicts are {'passes' if passes else 'fails'}, while {successes} of {rewarded} rollouts "
        "succeed: the judge may not tell good from bad. `arise judge check` measures it.",
    )


def _incomplete(recent: Sequence[GroupSums], window: int) -> Alarm | None:
    incomplete, total = sum(group.incomplete for group in recent), sum(group.groups for group in recent)
    if not incomplete:
        return None
    return Alarm(
        "note",
        "Groups that infrastructure left incomplete",
        f"{incomplete} of {total} groups in the last {window} iterations taught nothing; Health has the faults.",
    )


def _set_aside(last: Iteration) -> Alarm | None:
    away = last.metrics.get("set_aside", 0)
    if not away:
        return None
    text = f"{away:.0f} tasks are not drawn for now: faults left their groups incomplete; see Health."
    return Alarm("note", "Tasks set aside", text)


def _skipped(recent: Sequence[Iteration]) -> Alarm | None:
    skipped = [iteration.number for iteration in recent if iteration.metrics.get("skipped")]
    if not skipped:
        return None
    return Alarm("note", "Skipped updates", f"No update of the policy at iteration {', '.join(map(str, skipped))}.")
