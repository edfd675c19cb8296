"""The offline reflector: pairs from evidence only, reasons for what it leaves out, rewrites that say something new."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.unit.analyst.played import rollout, task

from arise.analyst import OfflineJudge, OfflineReflector
from arise.analyst.catalogue import pattern_of_rubric, wordings
from arise.analyst.reflector import first_skill
from arise.method.lifecycle import refined
from arise.text.rules import proposal_problems, skill_problems
from arise.types import (
    DiagnosticItem,
    DiagnosticKind,
    GenerationRecord,
    Pair,
    Pool,
    Proposal,
    RefinementRecord,
    Reflection,
    Rewrite,
    Rubric,
    Selection,
    Skill,
    VerifierOutcome,
)

WORK = task("Convert in.csv as described in spec.txt and write out.csv.")
RULE = "Pass if polite, fail if rude."
LS = "ls => check in.csv spec.txt"
READ_ALL = (LS, "cat spec.txt => m", "head in.csv => a")
NO_CHECK = (*READ_ALL, "conv in.csv > out.csv", "submit")
CHECKED = (*READ_ALL, "conv in.csv > out.csv", "./check out.csv => ok", "submit")
STALE = (*CHECKED[:-1], "conv -x in.csv > out.csv", "submit")
BLIND = (LS, "cat spec.txt => m", "conv in.csv > out.csv", "./check out.csv => ok", "submit")


def record(evidence_id: str, *steps: str) -> GenerationRecord:
    seen = asyncio.run(OfflineJudge().judge(WORK, rollout(*steps), Pool())).diagnostic
    assert seen is not None
    return GenerationRecord(
        evidence_id, 1, 0, (), "", seen.uncovered_issues, seen.positive_uncovered_strategies, (), (), 8, 8
    )


def propose(evidence: Sequence[GenerationRecord], avoid: Sequence[Pair] = (), max_items: int = 8) -> Reflection:
    return asyncio.run(
        OfflineReflector().propose(Selection(tuple(evidence), len(evidence), len(evidence)), avoid, max_items, 1)
    )


def pair_of(proposal: Proposal, revision: int = 0, text: str = "") -> Pair:
    p = proposal
    rubric = Rubric("r001", p.criteria_text, p.issue_tag, p.capability, p.applicability_condition, p.rule_text)
    return Pair(rubric, Skill(text or p.skill_text, active=True, revision=revision))


def pattern_of(proposal: Proposal) -> str | None:
    return pattern_of_rubric(pair_of(proposal).rubric)


EVIDENCE = [record("e1", *NO_CHECK), record("e2", *NO_CHECK), record("e3", *CHECKED), record("e4", *BLIND)]


def test_pairs_come_from_issue_and_contrast_evidence() -> None:
    found = {pattern_of(p): p for p in propose(EVIDENCE).proposals}
    assert set(found) == {"P12", "P02", "P06"}
    assert found["P12"].issue_refs == ("e1", "e2")
    assert found["P12"].contrast_refs == ("e3", "e4")
    assert found["P06"].issue_refs == ("e4",)


def test_most_failures_come_first() -> None:
    failures = [len(p.issue_refs) for p in propose(EVIDENCE).proposals]
    assert failures == sorted(failures, reverse=True)


def test_without_contrast_there_is_no_pair_but_a_reason() -> None:
    reflection = propose(EVIDENCE[:2])
    assert not reflection.proposals
    reasons = {r.text: r.reason for r in reflection.rejections}
    assert reasons[wordings()["P12"].criterion] == "records that show it missing: 2; none shows it done"
    assert reasons[wordings()["P08"].criterion] == "records that show it done: 2; none shows it missing"


def test_no_evidence_no_pairs() -> None:
    assert propose([]) == Reflection()


def test_covered_behaviour_is_not_proposed_again() -> None:
    covered = pair_of(propose(EVIDENCE).proposals[0])
    again = propose(EVIDENCE, [covered])
    assert pattern_of_rubric(covered.rubric) not in {pattern_of(p) for p in again.proposals}
    assert any(r.reason == "already covered by rubric r001" for r in again.rejections)


def test_a_retired_pair_is_not_written_again_and_the_pool_counts_before_it() -> None:
    first = propose(EVIDENCE).proposals[0]
    away, present = replace(pair_of(first), retired=1), pair_of(first)
    back = propose(EVIDENCE, [away])
    (found,) = back.returns
    assert (found.rubric_id, found.proposal.issue_refs) == ("r001", first.issue_refs)
    assert pattern_of(first) not in {pattern_of(p) for p in back.proposals}
    for avoid in ([away, present], [present, away]):
        again = propose(EVIDENCE, avoid)
        assert again.returns == ()
        assert any(r.reason == "already covered by rubric r001" for r in again.rejections)


def test_of_several_retired_pairs_the_one_that_left_last_comes_back() -> None:
    first = propose(EVIDENCE).proposals[0]
    older, newer = replace(pair_of(first), retired=0), replace(pair_of(first), retired=1)
    newer = replace(newer, rubric=replace(newer.rubric, id="r007"))
    for avoid in ([older, newer], [newer, older]):
        assert [back.rubric_id for back in propose(EVIDENCE, avoid).returns] == ["r007"]


def test_a_behaviour_that_is_gone_altogether_comes_back_without_contrasts() -> None:
    check = next(p for p in propose(EVIDENCE).proposals if pattern_of(p) == "P12")
    away = replace(pair_of(check), retired=1)
    (back,) = propose(EVIDENCE[:2], [away]).returns
    assert (back.proposal.issue_refs, back.proposal.contrast_refs) == (("e1", "e2"), ())
    assert propose(EVIDENCE[:2], [away], max_items=0).returns == ()


@pytest.mark.parametrize("max_items", [0, 1, 2])
def test_max_items_is_kept(max_items: int) -> None:
    reflection = propose(EVIDENCE, max_items=max_items)
    assert len(reflection.proposals) == max_items
    assert sum(r.reason == "more supported behaviours came first" for r in reflection.rejections) == 3 - max_items


def test_a_record_that_shows_both_supports_neither() -> None:
    issue, contrast = record("e1", *NO_CHECK), record("e1", *CHECKED)
    both = GenerationRecord(
        "e1", 1, 0, (), "", issue.uncovered_issues, contrast.positive_uncovered_strategies, (), (), 8, 8
    )
    assert not propose([both]).proposals


def test_items_that_match_no_pattern_are_counted() -> None:
    odd = DiagnosticItem(DiagnosticKind.FAILURE_GAP, "scope_and_safety", "When chatting, be polite.", ("rude words",))
    strange = GenerationRecord("e9", 1, 0, (), "", (odd,), (), (), (), 8, 1)
    (rejection,) = propose([strange]).rejections
    assert rejection.reason == "1 diagnostic items match no pattern of the catalogue"


def test_the_skill_speaks_of_the_way_it_was_missed() -> None:
    def skill(*issues: GenerationRecord) -> str:
        found = {pattern_of(p): p.skill_text for p in propose([*issues, EVIDENCE[2]]).proposals}
        return found["P12"]

    assert wordings()["P12"].misses["never"].advice in skill(record("e1", *NO_CHECK))
    assert wordings()["P12"].misses["stale"].advice in skill(record("e1", *STALE))
    most = skill(record("e1", *NO_CHECK), record("e2", *STALE), record("e5", *STALE))
    assert wordings()["P12"].misses["stale"].advice in most


@pytest.mark.parametrize("pattern_id", list(wordings()))
def test_every_text_obeys_the_papers_rules_and_stays_short(pattern_id: str) -> None:
    w = wordings()[pattern_id]
    for miss in ("", *w.misses):
        skill = first_skill(w, miss)
        p = w.pattern
        proposal = Proposal(w.criterion, p.issue_tag, p.capability, w.applies, w.rule, skill, ("e1",), ("e2",))
        assert proposal_problems(proposal, {"e1", "e2"}) == []
        assert 14 <= len(skill.split()) <= 32


def rewrite(pair: Pair, *failures: GenerationRecord) -> Rewrite:
    records = [RefinementRecord(view, VerifierOutcome(False, 0.0)) for view in failures]
    return asyncio.run(OfflineReflector().rewrite(pair, records))


def sentences(text: str, pattern_id: str) -> frozenset[str]:
    """Which sentences of the catalogue a text holds."""
    w = wordings()[pattern_id]
    known = (w.skill, w.again, *(miss.advice for miss in w.misses.values()))
    return frozenset(sentence for sentence in known if sentence in text)


@pytest.mark.parametrize("pattern_id", list(wordings()))
def test_every_rewrite_says_something_that_no_revision_said_until_all_is_said(pattern_id: str) -> None:
    w = wordings()[pattern_id]
    p = w.pattern
    skill = Skill(first_skill(w, ""), active=True)
    texts = [skill.text]
    rubric = Rubric("r001", w.criterion, p.issue_tag, p.capability, w.applies, w.rule)
    while (written := rewrite(Pair(rubric, skill), EVIDENCE[0])).text is not None:
        texts.append(written.text)
        assert len(written.text.split()) <= 50
        assert skill_problems(written.text) == []
        assert w.point in written.text
        assert "1 failures under revision" in written.reason
        skill = refined(skill, written.text)
    assert written == Rewrite(None, "every wording of the catalogue was tried")
    said = [sentences(text, pattern_id) for text in texts]
    assert len(set(said)) == len(said) == 2 * len(w.misses) + 1
    assert all(len(found) == 2 for found in said)


def test_the_first_rewrite_repeats_the_advice_in_other_words() -> None:
    w = wordings()["P01"]
    rubric = Rubric("r001", w.criterion, w.pattern.issue_tag, w.pattern.capability, w.applies, w.rule)
    (miss,) = w.misses.values()
    written = rewrite(Pair(rubric, Skill(first_skill(w, ""), active=True)), EVIDENCE[0])
    assert written.text == f"Do this {w.point}. {w.again} {miss.advice}"


def test_a_rewrite_speaks_of_the_failures_it_was_shown() -> None:
    pair = next(pair_of(p) for p in propose(EVIDENCE).proposals if pattern_of(p) == "P12")
    written = rewrite(pair, record("e1", *STALE), record("e2", *STALE))
    assert written.text is not None
    assert wordings()["P12"].misses["stale"].advice in written.text
    assert wordings()["P12"].misses["stale"].signal in written.reason


def test_no_failures_no_rewrite() -> None:
    assert rewrite(pair_of(propose(EVIDENCE).proposals[0])) == Rewrite(None, "no failure evidence under this skill")


def test_a_foreign_rubric_is_not_rewritten() -> None:
    p = propose(EVIDENCE).proposals[0]
    foreign = Rubric("r9", "Greets politely", "scope_and_safety", p.capability, "Chats.", RULE)
    assert rewrite(Pair(foreign, Skill("s")), EVIDENCE[0]).text is None
