"""Counts of verdicts: with and without the skill, of watched rubrics, and as the signal of the alarm."""

from dataclasses import replace

from arise.method.alarm import Signal
from arise.run.facts.alarms import signal_of
from arise.run.facts.verdicts import Guided, by_guidance, kinds_by_rubric, watched
from arise.types import Group, Judgment, Rollout, ShownSkill, StopReason, Tally, Task, Trajectory, Verdict
from tests.builders import a_rollout, a_task


def watching(*verdicts: Verdict) -> Group:
    """Return a group whose every rollout was judged by one retired rubric."""
    rollouts = [
        replace(a_rollout(n), judgment=Judgment(1, "fake", {"r002": Verdict.FAIL}, watched={"r001": verdict}))
        for n, verdict in enumerate(verdicts)
    ]
    return Group(a_task(), tuple(rollouts), len(rollouts))


def test_watched_verdicts_are_counted_apart_from_those_of_the_pool() -> None:
    groups = [watching(Verdict.PASS, Verdict.FAIL), watching(Verdict.PASS, Verdict.NOT_APPLICABLE)]
    assert watched(groups) == Tally(2, 3)


def test_without_a_watch_nothing_is_counted() -> None:
    assert watched([watching(Verdict.NOT_APPLICABLE)]) == Tally()
    assert watched([Group(a_task(), (a_rollout(0),), 1)]) == Tally()


def judged(verdict: Verdict | None, shown: bool) -> Rollout:
    """Return a rollout with one verdict of r001, or with none and a reason."""
    skills = (ShownSkill("r001", 0),) if shown else ()
    given, absent = ({"r001": verdict}, {}) if verdict else ({}, {"r001": "timeout"})
    return Rollout(
        Trajectory("t", "x", (), StopReason.FINISHED, shown_skills=skills), 1.0, True, Judgment(1, "j", given, absent)
    )


def test_verdicts_are_counted_by_rubric_and_by_whether_its_skill_was_shown() -> None:
    verdicts = (Verdict.PASS, Verdict.FAIL, Verdict.NOT_APPLICABLE, None)
    group = Group(a_task(), tuple(judged(v, shown) for v in verdicts for shown in (True, False, False)), 12)
    counts = kinds_by_rubric([group])
    assert counts == {("r001", True): (1, 1, 1, 1), ("r001", False): (2, 2, 2, 2)}
    assert by_guidance(counts) == Guided(Tally(1, 2), Tally(2, 4))
    assert by_guidance(counts).all == Tally(3, 6)


def test_signals_come_from_groups() -> None:
    def rollout(verdict: Verdict, success: bool | None) -> Rollout:
        judgment = Judgment(1, "j", {"r001": verdict})
        return Rollout(Trajectory("t", "x", (), StopReason.FINISHED), 1.0, success, judgment)

    group = Group(
        Task("x", "do"),
        (rollout(Verdict.PASS, True), rollout(Verdict.FAIL, None), rollout(Verdict.NOT_APPLICABLE, False)),
        3,
    )
    assert signal_of([group]) == Signal({"r001": Tally(1, 2)}, Tally(1, 2))
