"""The offline judge: absences with reasons, what no rubric covers, errors on purpose, and no look at the outcome."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.unit.analyst.cases import CASES, Case
from tests.unit.analyst.played import play, rollout, task

from arise.analyst import OfflineJudge
from arise.analyst.catalogue import pattern_of_item, pattern_of_rubric, wordings
from arise.analyst.judge import ITEMS_AT_MOST
from arise.ports import Judge
from arise.types import (
    Capability,
    Diagnostic,
    DiagnosticItem,
    DiagnosticKind,
    Judgment,
    Pair,
    Pool,
    Rollout,
    Rubric,
    Skill,
    Turn,
    Verdict,
)

WORK = task("Convert in.csv as described in spec.txt and write out.csv.")
RULE = "Pass if polite, fail if rude."
CARELESS = ("ls => check in.csv spec.txt", "conv in.csv > out.csv", "submit")
CAREFUL = (
    "ls => check in.csv spec.txt", "cat spec.txt => m", "head in.csv => a", "conv in.csv > out.csv",
    "./check out.csv => ok", "submit",
)  # fmt: skip


def rubric(pattern_id: str, name: str | None = None) -> Rubric:
    w = wordings()[pattern_id]
    return Rubric(name or f"r-{pattern_id}", w.criterion, w.pattern.issue_tag, w.pattern.capability, w.applies, w.rule)


def pool_of(*rubrics: Rubric) -> Pool:
    return Pool(tuple(Pair(r, Skill("s")) for r in rubrics), version=7)


def judged(pool: Pool, done: Rollout, judge: Judge | None = None) -> Judgment:
    return asyncio.run((judge or OfflineJudge()).judge(WORK, done, pool))


def diagnostic(judgment: Judgment) -> Diagnostic:
    assert judgment.diagnostic is not None
    return judgment.diagnostic


def patterns_in(items: Sequence[DiagnosticItem]) -> set[str | None]:
    return {pattern_of_item(item) for item in items}


def test_verdicts_follow_the_detectors() -> None:
    pool = pool_of(rubric("P12"), rubric("P16"))
    careless, careful = judged(pool, rollout(*CARELESS)), judged(pool, rollout(*CAREFUL))
    assert careless.verdicts == {"r-P12": Verdict.FAIL, "r-P16": Verdict.NOT_APPLICABLE}
    assert careful.verdicts["r-P12"] is Verdict.PASS
    assert careful.pool_version == 7
    assert not careful.absent


def test_a_rubric_without_a_detector_is_absent_and_never_fails() -> None:
    foreign = Rubric("r9", "Greets politely", "scope_and_safety", Capability.EXECUTION, "Chats.", RULE)
    judgment = judged(pool_of(foreign, rubric("P12")), rollout(*CARELESS))
    assert judgment.absent == {"r9": "no detector for this rubric"}
    assert "r9" not in judgment.verdicts


PAPER_RUBRICS = {
    "P02": (
        "When the agent has read an exact output specification, fail if the generated artifact deviates from "
        "it and no post-write inspection checks conformance. Pass if the artifact matches the specification "
        "or the agent reconciles it against the specification through a read-back or validation check."
    ),
    "P03": (
        "When a tool response lacks the expected data payload, fail if the agent creates placeholder or "
        "fabricated artifacts without inspecting the response. Pass if the agent recognizes the missing "
        "payload and investigates an alternative way to obtain the real output or reports that it cannot be "
        "produced."
    ),
    "P04": (
        "When a tool returns a schema, argument-validation, or format error, fail if the agent retries with "
        "identical or substantially similar invalid arguments without inspecting the concrete error. Pass if "
        "it inspects the error and corrects the argument structure on the next attempt, or does not retry the "
        "failed call."
    ),
    "P05": (
        "After information gathering begins, fail if the agent repeats reads or searches without obtaining "
        "new information or making progress on implementation. Pass if it proceeds to implementation or "
        "further inspection yields new information, including targeted rereading that resolves a specific "
        "uncertainty."
    ),
}


@pytest.mark.parametrize("pattern_id", PAPER_RUBRICS)
def test_the_papers_own_rubrics_find_their_detector(pattern_id: str) -> None:
    p = wordings()[pattern_id].pattern
    text = PAPER_RUBRICS[pattern_id]
    assert pattern_of_rubric(Rubric("r", text, p.issue_tag, p.capability, "", text)) == pattern_id


@pytest.mark.parametrize("pattern_id", list(wordings()))
def test_the_analysts_own_rubrics_find_their_detector(pattern_id: str) -> None:
    assert pattern_of_rubric(rubric(pattern_id)) == pattern_id


def test_initial_analysis_gives_diagnostics_and_no_verdicts() -> None:
    judgment = judged(Pool(), rollout(*CARELESS))
    seen = diagnostic(judgment)
    assert not judgment.verdicts
    assert not seen.covered_by_active_rubrics
    assert {"P12", "P08", "P06"} <= patterns_in(seen.uncovered_issues)
    assert patterns_in(diagnostic(judged(Pool(), rollout(*CAREFUL))).positive_uncovered_strategies) >= {
        "P12",
        "P08",
        "P06",
    }
    assert all(not item.related_rubric_ids for item in seen.uncovered_issues)


def test_an_empty_trace_is_not_called_covered_while_the_pool_is_empty() -> None:
    assert not diagnostic(judged(Pool(), rollout())).covered_by_active_rubrics
    assert diagnostic(judged(pool_of(rubric("P12")), rollout())).covered_by_active_rubrics


def test_what_a_rubric_covers_is_left_out_even_when_it_fails() -> None:
    seen = diagnostic(judged(pool_of(rubric("P12")), rollout(*CARELESS)))
    assert "P12" not in patterns_in(seen.uncovered_issues)
    assert "P08" in patterns_in(seen.uncovered_issues)
    related = [item for item in seen.uncovered_issues if item.issue_tag == "result_verification"]
    assert all(item.related_rubric_ids == ("r-P12",) for item in related)


def test_everything_covered_gives_empty_lists() -> None:
    seen = diagnostic(judged(pool_of(*map(rubric, wordings())), rollout(*CARELESS)))
    assert seen == Diagnostic(covered_by_active_rubrics=True)


@pytest.mark.parametrize("row", CASES, ids=lambda row: f"{row.pattern}-{row.why}".replace(" ", "_"))
def test_diagnostics_keep_the_contract(row: Case) -> None:
    done = Rollout(play(*row.steps, stop=row.stop), None)
    seen = diagnostic(asyncio.run(OfflineJudge().judge(task(row.instruction), done, Pool())))
    lists = {
        DiagnosticKind.FAILURE_GAP: seen.uncovered_issues,
        DiagnosticKind.POSITIVE_STRATEGY: seen.positive_uncovered_strategies,
    }
    for kind, items in lists.items():
        assert len(items) <= ITEMS_AT_MOST
        for item in items:
            verb = "failed to" if kind is DiagnosticKind.FAILURE_GAP else "should"
            assert item.kind is kind
            assert item.text.startswith("When ")
            assert f", the agent {verb} " in item.text
            assert ", observable via " in item.text
            assert 1 <= len(item.observable_signals) <= 8
            assert not any(word in item.text.lower() for word in ("reward", "verifier", "tests pass", "correct output"))
            pattern_id = pattern_of_item(item)
            assert pattern_id is not None
            assert wordings()[pattern_id].pattern.issue_tag == item.issue_tag


def test_reward_and_success_change_nothing() -> None:
    pool = pool_of(rubric("P12"), rubric("P08"))
    trajectory = play(*CARELESS)
    rollouts = [
        Rollout(trajectory, r, s, fault=f) for r, s, f in [(0.0, False, ""), (1.0, True, ""), (None, None, "lost")]
    ]
    first, *others = [judged(pool, done) for done in rollouts]
    assert all(other == first for other in others)


def test_shown_skills_change_nothing() -> None:
    pool = pool_of(rubric("P12"))
    skill = "Run ./check after the last write. Read notes.txt. Never finish without that run."
    plain, shown = judged(pool, rollout(*CARELESS)), judged(pool, rollout(*CARELESS, system_prompt=skill))
    assert plain == shown


def _verdicts(judge: OfflineJudge, count: int = 3000) -> list[Judgment]:
    pool, done = pool_of(rubric("P12")), rollout(*CARELESS)

    async def all_of_them() -> list[Judgment]:
        names = (f"j{n}" for n in range(count))
        return [await judge.judge(WORK, replace(done, trajectory=play(*CARELESS, name=name)), pool) for name in names]

    return asyncio.run(all_of_them())


def test_flip_and_miss_rates_are_what_they_say() -> None:
    judgments = _verdicts(OfflineJudge(seed=1, flip_rate=0.2, miss_rate=0.1))
    missed = sum(bool(j.absent) for j in judgments)
    flipped = sum(j.verdicts.get("r-P12") is Verdict.PASS for j in judgments)
    assert abs(missed / 3000 - 0.1) < 0.022  # four standard deviations
    assert abs(flipped / (3000 - missed) - 0.2) < 0.031
    assert all("miss_rate" in reason for j in judgments for reason in j.absent.values())


def test_errors_on_purpose_depend_on_names_only() -> None:
    once, again = (_verdicts(OfflineJudge(seed=3, flip_rate=0.5, miss_rate=0.2), 200) for _ in range(2))
    other = _verdicts(OfflineJudge(seed=4, flip_rate=0.5, miss_rate=0.2), 200)
    assert once == again
    assert [j.verdicts for j in once] != [j.verdicts for j in other]


def test_what_does_not_apply_is_never_flipped() -> None:
    judgment = judged(pool_of(rubric("P16")), rollout(*CARELESS), OfflineJudge(flip_rate=1.0))
    assert judgment.verdicts == {"r-P16": Verdict.NOT_APPLICABLE}


def test_identity_names_version_rates_and_seed() -> None:
    assert OfflineJudge(seed=5, flip_rate=0.25).identity == "offline-analyst/1 flip_rate=0.25 miss_rate=0 seed=5"


@pytest.mark.parametrize("rate", [-0.1, 1.1, float("nan")])
def test_rates_outside_zero_and_one_are_refused(rate: float) -> None:
    with pytest.raises(ValueError, match="flip_rate"):
        OfflineJudge(flip_rate=rate)


class _Unreadable(tuple[Turn, ...]):
    def __iter__(self) -> object:  # type: ignore[override]
        raise OSError("chunk is gone")


def test_its_own_fault_is_an_absence() -> None:
    broken = Rollout(replace(play(*CARELESS), turns=_Unreadable()), 0.0)
    judgment = judged(pool_of(rubric("P12")), broken)
    assert not judgment.verdicts
    assert "chunk is gone" in judgment.absent["r-P12"]
    assert "chunk is gone" in judgment.diagnostic_absent
    assert judgment.diagnostic is None
