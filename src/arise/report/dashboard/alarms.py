"""What deserves a look: rubrics that may be gamed, no learning signal, a judge that fails, faults, skipped updates."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from arise.method.alarm import Signal, divergence
from arise.run.rows import GroupSums, Iteration, VerdictCount
from arise.types import Tally

NO_SIGNAL_AFTER = 5
VALID_VERDICTS = 0.95


@dataclass(frozen=True)
class Alarm:
    """`Alarm("serious", "Rubrics rise, success does not", "...")`; level is serious or note."""

    level: str
    title: str
    text: str
    rubrics: tuple[str, ...] = ()


def alarms(
    iterations: Sequence[Iteration], groups: Sequence[GroupSums], counts: Sequence[VerdictCount], window: int
) -> list[Alarm]:
    """Everything that holds at the last committed iteration."""
    if not iterations:
        return []
    last = iterations[-1].k
    recent = [group for group in groups if group.k > last - window]
    found = [
        _divergence(groups, counts, last, max(2, window)),
        _no_signal(groups, last),
        _judge([count for count in counts if count.k > last - window]),
        _incomplete(recent, window),
        _set_aside(iterations[-1]),
        _skipped(iterations[-window:]),
    ]
    return [alarm for alarm in found if alarm]


def _divergence(groups: Sequence[GroupSums], counts: Sequence[VerdictCount], last: int, window: int) -> Alarm | None:
    first = max(0, last - 2 * window + 1)
    rubrics: dict[int, dict[str, Tally]] = defaultdict(dict)
    for count in counts:
        if count.k >= first:
            before = rubrics[count.k].get(count.rubric_id, Tally())
            tally = Tally(before.passes + count.passes, before.evaluations + count.evaluations)
            rubrics[count.k][count.rubric_id] = tally
    success: dict[int, Tally] = defaultdict(Tally)
    for group in groups:
        if group.k >= first:
            success[group.k] = Tally(group.successes, group.rewarded)
    found = divergence([Signal(rubrics[k], success[k]) for k in range(first, last + 1)], window)
    if found is None or not found.alarm:
        return None
    return Alarm(
        "serious",
        "Rubric reward rises, verified success does not",
        f"Over {window} iterations rubrics rose by {100 * found.rubric_rise:.0f} points, success by "
        f"{100 * found.success_rise:.0f} (z = {found.z:.1f}). Read these rubrics and some of their rollouts.",
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


def _judge(recent: Sequence[VerdictCount]) -> Alarm | None:
    absent = sum(count.absent for count in recent)
    total = absent + sum(count.evaluations + count.not_applicable for count in recent)
    if not total or absent <= (1.0 - VALID_VERDICTS) * total:
        return None
    return Alarm(
        "serious", "The judge gives too few verdicts", f"{absent} of {total} recent verdicts could not be had."
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
    said = f"{away:.0f} tasks are not drawn for now: faults left group after group of theirs incomplete; see Health."
    return Alarm("note", "Tasks set aside", said)


def _skipped(recent: Sequence[Iteration]) -> Alarm | None:
    skipped = [iteration.number for iteration in recent if iteration.metrics.get("skipped")]
    if not skipped:
        return None
    return Alarm("note", "Skipped updates", f"No update of the policy at iteration {', '.join(map(str, skipped))}.")
