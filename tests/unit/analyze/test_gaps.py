"""Classes of behaviours, comparison of two sets, labels, and which quotes are kept."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from arise.analyze.against import Finding, compare
from arise.analyze.behaviours import AnalysedAttempt, Evidences, Sighting, evidence_of
from arise.analyze.found import Found, Triage, verdict
from arise.analyze.gaps import Kind, find_gaps
from arise.analyze.labels import agreement, read_labels
from arise.analyze.quotes import is_verified
from arise.compose.analyze import behaviours
from arise.errors import AriseError
from arise.types import Observation, StopReason, Task, ToolCall, Trajectory, Turn


def attempt(task: str, passed: bool | None, present: bool | None, n: int = 0, **more: object) -> AnalysedAttempt:
    seen = {} if present is None else {"P02": present}
    triage = Triage.MISSING if passed is None else Triage.VALID
    base = AnalysedAttempt(f"{task}/{n}", "x", task, "c", "", "m", triage, passed, None, "", 5, seen)
    return replace(base, **more)  # type: ignore[arg-type]


def kinds(attempts: list[AnalysedAttempt]) -> dict[str, Kind]:
    return {gap.behaviour.id: gap.kind for gap in find_gaps(attempts, behaviours())}


def test_a_behaviour_associated_with_failure_within_tasks_is_a_gap() -> None:
    attempts = [attempt(f"t{t}", n % 2 == 0, n % 2 == 1, n) for t in range(8) for n in range(4)]
    (gap,) = find_gaps(attempts, behaviours())
    assert (gap.kind, gap.strata, gap.informative, gap.tasks) == (Kind.ASSOCIATED, "task", 8, 8)
    assert gap.gain == pytest.approx(50.0)


def test_a_behaviour_as_frequent_in_passes_is_not_associated() -> None:
    attempts = [attempt(f"t{t}", n < 2, n % 2 == 0, n) for t in range(10) for n in range(4)]
    assert kinds(attempts) == {"P02": Kind.NOT_ASSOCIATED}


def test_a_behaviour_that_helps_is_not_associated_with_failure() -> None:
    attempts = [attempt(f"t{t}", n % 2 == 0, n % 2 == 0, n) for t in range(8) for n in range(4)]
    assert kinds(attempts) == {"P02": Kind.NOT_ASSOCIATED}


def test_two_tasks_are_an_anecdote_however_clear() -> None:
    attempts = [attempt(f"t{t}", n % 2 == 0, n % 2 == 1, n) for t in range(2) for n in range(20)]
    assert kinds(attempts) == {"P02": Kind.ANECDOTE}


def test_without_outcomes_there_is_no_contrast() -> None:
    assert kinds([attempt(f"t{t}", None, True) for t in range(5)]) == {"P02": Kind.NO_CONTRAST}
    assert kinds([attempt(f"t{t}", False, True) for t in range(5)]) == {"P02": Kind.NO_CONTRAST}


def test_a_difference_that_chance_explains_is_suspected_only() -> None:
    attempts = [attempt(f"t{t}", t % 2 == 0, t in (1, 3, 4), 0) for t in range(8)]
    assert kinds(attempts) == {"P02": Kind.SUSPECTED}


def test_time_limits_and_invalid_verdicts_take_no_part_in_the_contrast() -> None:
    clear = [attempt(f"t{t}", n % 2 == 0, n % 2 == 1, n) for t in range(8) for n in range(4)]
    late = [attempt(f"t{t}", False, False, 9, triage=Triage.TIME_LIMIT) for t in range(8)]
    missing = [attempt(f"t{t}", None, False, 10) for t in range(8)]
    (gap,) = find_gaps([*clear, *late, *missing], behaviours())
    assert (gap.failures.total, gap.passes.total, gap.overall.total) == (16, 16, 48)


def both(ours: Sequence[bool | None], theirs: Sequence[bool | None]) -> Finding:
    a = [attempt(f"t{t}", passed, None) for t, passed in enumerate(ours)]
    b = [attempt(f"t{t}", passed, None) for t, passed in enumerate(theirs)]
    return compare(a, b, behaviours()).finding


def test_comparison_answers_and_exit_codes() -> None:
    assert both([True] * 12, [False] * 12) is Finding.BETTER
    assert both([False] * 12, [True] * 12) is Finding.WORSE
    assert both([True, False] * 6, [True, False] * 6) is Finding.EQUAL
    assert both([True] * 11 + [False], [True] * 12) is Finding.UNKNOWN
    assert both([True] * 3, [False] * 3) is Finding.UNKNOWN
    assert [finding.exit_code for finding in Finding] == [0, 0, 1, 2]


def test_missing_is_never_a_failure_and_checksums_must_agree() -> None:
    ours = [attempt(f"t{t}", None, None) for t in range(10)] + [attempt(f"u{t}", True, None) for t in range(6)]
    theirs = [attempt(f"t{t}", True, None) for t in range(10)] + [attempt(f"u{t}", True, None) for t in range(5)]
    theirs.append(attempt("u5", False, None, checksum="other"))
    found = compare(ours, theirs, behaviours())
    assert (found.finding, found.passes.pairs) == (Finding.EQUAL, 5)
    assert found.left_out["attempts without a verdict in the first"] == 10
    assert found.left_out["tasks whose checksum differs"] == 1


def test_behaviours_of_both_sides_are_compared_on_shared_tasks() -> None:
    ours = [attempt(f"t{t}", True, False) for t in range(10)]
    theirs = [attempt(f"t{t}", True, True) for t in range(10)]
    (change,) = compare(ours, theirs, behaviours()).behaviours
    assert (change.behaviour.id, change.paired.worse, change.paired.difference) == ("P02", 10, -1.0)
    assert change.q < 0.01


def test_labels_give_kappa_precision_and_recall(tmp_path: Path) -> None:
    file = tmp_path / "labels.csv"
    file.write_text("source,behaviour,present\na/0,P02,1\nb/0,P02,0\nc/0,P02,yes\nd/0,P02,1\nnowhere,P02,1\n")
    attempts = [attempt("a", None, True), attempt("b", None, True), attempt("c", None, False), attempt("d", None, True)]
    found = agreement(attempts, read_labels(file))
    assert (found["all"].both, found["all"].ours, found["all"].theirs) == (2, 1, 1)
    assert found["P02"].precision == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    "text", ["a,b\n1,2\n", "source,behaviour,present\nx,P02,perhaps\n", "source,behaviour,present\n"]
)
def test_unusable_labels_are_refused_by_place(tmp_path: Path, text: str) -> None:
    (tmp_path / "l.csv").write_text(text)
    with pytest.raises(AriseError, match=r"l\.csv"):
        read_labels(tmp_path / "l.csv")


def found_with(command: str, output: str = "") -> Found:
    call = ToolCall("bash", {"command": command}, "c")
    turns = (Turn("First.", (), ()), Turn("Now.", (call,), (Observation(output, call_id="c"),)))
    return Found(Trajectory("x", "t", turns, StopReason.FINISHED), Task("t", "Do."), verdict(0.0), "x", "f")


def test_a_quote_is_an_exact_substring_of_its_turn() -> None:
    found = found_with("sort in.csv > out.csv\nsecond line", "3 lines")
    evidence = evidence_of(found, Sighting("P02", True, turn=2))
    assert evidence is not None
    assert (evidence.quote, evidence.turn) == ("sort in.csv > out.csv", 2)
    assert is_verified(evidence.quote, found.trajectory.turns[1])
    assert not is_verified("sort out.csv", found.trajectory.turns[1])
    assert not is_verified("sort in.csv > out.csv", found.trajectory.turns[0])
    assert not is_verified(" \n ", found.trajectory.turns[1])


def test_quotes_and_their_context_hold_no_key() -> None:
    key = "sk-" + "a" * 40
    found = found_with(f"curl -H 'Authorization: {key}' x", f"token {key}")
    evidence = evidence_of(found, Sighting("P02", True, turn=2))
    assert key not in repr(evidence)
    assert "[redacted]" in repr(evidence)


def test_quotes_do_not_depend_on_the_order_of_reading() -> None:
    attempts = [replace(found_with(f"cmd {n} run"), source=f"s{n}", task=Task(f"t{n}", "Do.")) for n in range(40)]
    chosen = []
    for order in (attempts, attempts[::-1]):
        kept = Evidences(seed=3)
        for found in order:
            kept.offer(found, [Sighting("P02", True, turn=2)])
        chosen.append([evidence.source for evidence in kept.of("P02", False, 3)])
    assert chosen[0] == chosen[1]
    assert len(set(chosen[0])) == 3
