"""B_k: what is recorded, what generation may see, and the stable random choice."""

from dataclasses import fields, replace

import pytest

from arise.method.evidence import for_generation, for_refinement, records_of, within_window
from arise.types import (
    EvidenceRecord,
    Feedback,
    GenerationRecord,
    Group,
    Observation,
    ShownSkill,
    SkillUse,
    StopReason,
    ToolCall,
    Turn,
    Verdict,
    VerifierOutcome,
)
from arise.types.codec import from_json, to_json
from tests.builders import FAIL, NA, PASS, a_diagnostic, a_rollout, a_task, the_record

REFINED = ["e0000-00-10", "e0000-00-00", "e0000-00-19", "e0000-00-16"]


def records(count: int, iteration: int = 0, issues: int = 1) -> list[EvidenceRecord]:
    rollouts = tuple(a_rollout(j, {"a": PASS}, diagnostic=a_diagnostic(issues)) for j in range(count))
    return records_of(iteration, [Group(a_task(), rollouts, count)])


def test_one_record_for_every_judged_rollout() -> None:
    shown = [ShownSkill("a", 2)]
    group = Group(
        a_task("x9", "d1", "d2"),
        (
            a_rollout(0, {"b": FAIL, "a": NA}, reward=0.5, diagnostic=a_diagnostic(1, 1), shown=shown),
            a_rollout(1, None),
            a_rollout(2, {}, reward=None, diagnostic=a_diagnostic(0)),
            a_rollout(3, {"a": PASS}, reward=0.0),
        ),
        4,
    )
    found = records_of(12, [Group(a_task(), (), 4), group])
    assert [record.view.evidence_id for record in found] == ["e0012-01-00", "e0012-01-02", "e0012-01-03"]
    first, second, third = found
    assert first.view == GenerationRecord(
        evidence_id="e0012-01-00",
        iteration=12,
        pool_version=1,
        task_types=("d1", "d2"),
        domain="data",
        uncovered_issues=a_diagnostic(1).uncovered_issues,
        positive_uncovered_strategies=a_diagnostic(0, 1).positive_uncovered_strategies,
        shown_skills=(ShownSkill("a", 2),),
        provided_skills=("csv",),
        group_size=4,
        attempts_with_diagnostics=1,
        skill_use=(SkillUse.NO_OCCASION,),
        feedback=Feedback(StopReason.FINISHED),
    )
    assert (first.task_id, first.trajectory_id) == ("x9", "tau0")
    assert first.verdicts == (("a", NA), ("b", FAIL)), "sorted by rubric id"
    assert first.outcome == VerifierOutcome(success=True, reward=0.5)
    assert second.outcome is None
    assert third.outcome == VerifierOutcome(success=False, reward=0.0)
    assert third.view.uncovered_issues == ()
    assert [record.has_diagnostics for record in found] == [True, False, False]


def test_a_reward_without_a_success_is_no_outcome() -> None:
    rollout = replace(a_rollout(0, {}, reward=1.0), success=None)
    (record,) = records_of(0, [Group(a_task(), (rollout,), 1)])
    assert record.outcome is None


def test_strategies_alone_are_diagnostics_too() -> None:
    rollout = a_rollout(0, {}, diagnostic=a_diagnostic(0, 1))
    (record,) = records_of(0, [Group(a_task(), (rollout,), 1)])
    assert record.has_diagnostics
    assert record.view.attempts_with_diagnostics == 1


def test_generation_has_no_place_for_an_outcome() -> None:
    names = " ".join(field.name for field in fields(GenerationRecord))
    for word in ("reward", "success", "score", "outcome", "verifier", "verdict", "task_id"):
        assert word not in names


def test_outcomes_do_not_change_what_generation_sees() -> None:
    def seen(reward: float | None) -> object:
        rollouts = tuple(a_rollout(j, {}, reward=reward, diagnostic=a_diagnostic()) for j in range(8))
        found = records_of(0, [Group(a_task(), rollouts, 8)])
        return for_generation(found, seed=0, update=1, round_number=1)

    assert seen(1.0) == seen(0.0) == seen(None)


def test_window_is_the_last_iterations() -> None:
    everything = [record for k in range(25) for record in records(1, k)]
    inside = within_window(everything, iteration=19)
    assert [record.view.iteration for record in inside] == list(range(10, 20))
    assert [record.view.iteration for record in within_window(everything, 19, window=1)] == [19]


@pytest.mark.parametrize("window", [0, -1])
def test_window_must_hold_an_iteration(window: int) -> None:
    with pytest.raises(ValueError, match=rf"^window = {window} must be at least 1 iteration$"):
        within_window([], 0, window)


def test_generation_takes_records_with_diagnostics_only() -> None:
    mixed = records(3) + records(4, iteration=1, issues=0)
    selection = for_generation(mixed, seed=0, update=1, round_number=1, limit=2)
    assert len(for_generation(mixed, seed=0, update=1, round_number=1, limit=1).chosen) == 1
    assert (len(selection.chosen), selection.total, selection.with_diagnostics, selection.omitted) == (2, 7, 3, 1)
    assert all(view.iteration == 0 for view in selection.chosen)


def test_at_most_256_by_default() -> None:
    assert len(for_generation(records(300), seed=0, update=1, round_number=1).chosen) == 256


def test_choice_is_stable_under_reordering_and_changes_with_seed_update_and_round() -> None:
    found = records(40)

    def chosen(of: list[EvidenceRecord], seed: int, update: int, round_number: int) -> list[str]:
        selection = for_generation(of, seed=seed, update=update, round_number=round_number, limit=10)
        return [view.evidence_id for view in selection.chosen]

    reference = chosen(found, 0, 1, 1)
    assert chosen(found[::-1], 0, 1, 1) == reference
    others = [chosen(found, 1, 1, 1), chosen(found, 0, 2, 1), chosen(found, 0, 1, 2)]
    assert all(other != reference for other in others)
    assert reference != sorted(reference)
    assert reference[:4] == ["e0000-00-12", "e0000-00-20", "e0000-00-02", "e0000-00-10"], "the same on every machine"


def test_refinement_takes_failures_under_this_revision_failed_tasks_first() -> None:
    skill = ShownSkill("a", 1)
    cases = {
        "task passed": a_rollout(0, {"a": FAIL}, reward=1.0, shown=[skill]),
        "task failed": a_rollout(1, {"a": FAIL}, reward=0.0, shown=[skill]),
        "unknown outcome": a_rollout(2, {"a": FAIL}, reward=None, shown=[skill]),
        "rubric passed": a_rollout(3, {"a": PASS}, shown=[skill]),
        "old revision": a_rollout(4, {"a": FAIL}, shown=[ShownSkill("a", 0)]),
        "not shown": a_rollout(5, {"a": FAIL}),
        "other rubric": a_rollout(6, {"b": FAIL}, shown=[skill]),
    }
    found = records_of(0, [Group(a_task(), tuple(cases.values()), 7)])
    chosen = for_refinement(found, skill, seed=0, update=1)
    assert chosen[0].view == the_record(found, "e0000-00-01").view
    assert chosen[0].outcome == VerifierOutcome(success=False, reward=0.0)
    assert {record.view.evidence_id for record in chosen} == {"e0000-00-00", "e0000-00-01", "e0000-00-02"}
    assert len(for_refinement(found, skill, seed=0, update=1, limit=2)) == 2


def test_refinement_takes_32_by_default_in_stable_order() -> None:
    skill = ShownSkill("a", 0)
    rollouts = tuple(a_rollout(j, {"a": FAIL}, shown=[skill]) for j in range(40))
    found = records_of(0, [Group(a_task(), rollouts, 40)])
    chosen = for_refinement(found, skill, seed=0, update=1)
    assert len(chosen) == 32
    assert for_refinement(found[::-1], skill, seed=0, update=1) == chosen
    assert for_refinement(found, skill, seed=1, update=1) != chosen
    assert for_refinement(found, skill, seed=0, update=2) != chosen
    order = [record.view.evidence_id for record in chosen]
    assert order[:4] == REFINED, "the same on every machine"


def test_refinement_prefers_records_with_diagnostics() -> None:
    skill = ShownSkill("a", 0)
    rollouts = tuple(
        a_rollout(j, {"a": FAIL}, shown=[skill], diagnostic=a_diagnostic(int(j % 4 == 0))) for j in range(40)
    )
    found = records_of(0, [Group(a_task(), rollouts, 40)])
    chosen = for_refinement(found, skill, seed=0, update=1, limit=10)
    assert all(record.view.uncovered_issues for record in chosen)
    assert len(for_refinement(found, skill, seed=0, update=1)) == 32, "the others fill up what is left"


def a_turn(command: str, output: str, error: bool = False) -> Turn:
    return Turn(f"I say $ {command}", (ToolCall("bash", {"command": command}),), (Observation(output, error),))


TURNS = (
    a_turn("cat /skills/csv/guide", "read me"),
    a_turn("make", "long\n" * 5000 + "make: no rule for x1\n", error=True),
    a_turn("make", "long\nmake: no rule for x1\n", error=True),
    a_turn("make all", "\x1b[31mmake: \u202efailed", error=True),
    a_turn("ls", "a\nb"),
    a_turn("cat a", "y" * 10_000_000),
    Turn("I am done."),
)


def failed_under(skill: ShownSkill, **verdicts: Verdict) -> EvidenceRecord:
    rollout = a_rollout(0, verdicts, shown=[skill], diagnostic=a_diagnostic())
    trajectory = replace(rollout.trajectory, turns=TURNS, stop=StopReason.TURN_LIMIT)
    (record,) = records_of(3, [Group(a_task("x1"), (replace(rollout, trajectory=trajectory),), 1)])
    return record


def test_a_record_holds_environment_feedback_and_the_use_of_skills() -> None:
    view = failed_under(ShownSkill("a", 1), a=FAIL, b=PASS).view
    assert view.feedback == Feedback(StopReason.TURN_LIMIT, 7, 3, ("make: no rule for [task]", "[31mmake: failed"))
    assert view.opened_skills == ("csv",)
    assert view.skill_use == (SkillUse.NOT_FOLLOWED,)
    uses = {PASS: SkillUse.FOLLOWED, FAIL: SkillUse.NOT_FOLLOWED, NA: SkillUse.NO_OCCASION}
    for verdict, use in uses.items():
        assert failed_under(ShownSkill("a", 1), a=verdict).view.skill_use == (use,)
    assert failed_under(ShownSkill("a", 1), b=FAIL).view.skill_use == (SkillUse.NOT_JUDGED,)


def test_refinement_gets_a_bounded_excerpt_of_the_failing_turns() -> None:
    skill = ShownSkill("a", 1)
    (chosen,) = for_refinement([failed_under(skill, a=FAIL)], skill, seed=0, update=1)
    assert [turn.turn for turn in chosen.excerpt] == [3, 4, 6, 7]
    assert [turn.error for turn in chosen.excerpt] == [True, True, False, False]
    assert chosen.excerpt[0].action == "bash: make"
    assert chosen.excerpt[0].observation == "long make: no rule for [task]"
    assert chosen.excerpt[3].action == "I am done."
    sizes = [len(turn.action) + len(turn.observation) for turn in chosen.excerpt]
    assert max(sizes) < 2 * 260
    assert " [cut] " in chosen.excerpt[2].observation
    assert failed_under(skill, a=PASS).excerpt == (), "kept only where it can be of use"


def test_a_record_of_an_older_run_is_still_read() -> None:
    record = failed_under(ShownSkill("a", 1), a=FAIL)
    assert from_json(EvidenceRecord, to_json(record)) == record
    saved = to_json(record)
    del saved["excerpt"]
    for name in ("skill_use", "opened_skills", "feedback"):
        del saved["view"][name]
    older = from_json(EvidenceRecord, saved)
    assert (older.excerpt, older.view.feedback, older.view.skill_use) == ((), Feedback(), ())


def test_limits_must_be_positive() -> None:
    with pytest.raises(ValueError, match=r"^limit = 0 must be at least 1 record$"):
        for_generation([], seed=0, update=0, round_number=0, limit=0)
    with pytest.raises(ValueError, match=r"^limit = -1 must be at least 1 record$"):
        for_refinement([], ShownSkill("a", 0), seed=0, update=0, limit=-1)
