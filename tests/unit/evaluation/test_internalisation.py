from dataclasses import replace

from arise.evaluation.internalisation import of_the_watch
from arise.types import Group, Judgment, Verdict
from tests.builders import a_rollout, a_task


def watched(*verdicts: Verdict) -> Group:
    """A group whose every rollout was judged by one retired rubric."""
    rollouts = [
        replace(a_rollout(n), judgment=Judgment(1, "fake", {"r002": Verdict.FAIL}, watched={"r001": verdict}))
        for n, verdict in enumerate(verdicts)
    ]
    return Group(a_task(), tuple(rollouts), len(rollouts))


def test_verdicts_of_the_watch_are_counted_apart_from_those_of_the_pool() -> None:
    groups = [watched(Verdict.PASS, Verdict.FAIL), watched(Verdict.PASS, Verdict.NOT_APPLICABLE)]
    assert of_the_watch(groups) == {"watched": 3, "watched_passes": 2}


def test_without_a_watch_nothing_is_recorded() -> None:
    assert of_the_watch([watched(Verdict.NOT_APPLICABLE)]) == {}
    assert of_the_watch([Group(a_task(), (a_rollout(0),), 1)]) == {}
