"""The reflection model: rounds, repeats, rewrites, and a reason for whatever was not taken."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from arise.config.llm import ModelReflector
from arise.llm.client.client import Client
from arise.llm.client.spend import Budget
from arise.llm.reflection.near_duplicates import shortlist, similarity
from arise.llm.reflection.reflector import LanguageModelReflector
from arise.run.calls import Store
from arise.testing import Action, Ask, FakeLLM, Say, Script, Status, always, in_order
from arise.types import (
    DiagnosticItem,
    DiagnosticKind,
    GenerationRecord,
    Pair,
    RefinementRecord,
    Rubric,
    Selection,
    ShownSkill,
    Skill,
    Verdict,
    VerifierOutcome,
)
from tests.builders import a_pair
from tests.unit.llm.builders import QUICK, pool, reflector_settings
from tests.unit.llm.wire.test_objects import PAIR
from tests.unit.text.test_rules import PROPOSAL, SKILLS

ITEM = DiagnosticItem(DiagnosticKind.FAILURE_GAP, "error_response", "When a call fails, ...", ("equal next call",))


def record(number: int, text: str = "When a call fails, ...") -> GenerationRecord:
    item = replace(ITEM, text=text)
    return GenerationRecord(f"e{number}", 3, 1, ("t",), "data", (item,), (), (ShownSkill("r001", 2),), ("csv",), 8, 4)


def reflected(script: Script, act: Callable[[LanguageModelReflector], Any], **change: Any) -> tuple[Any, FakeLLM]:
    async def run() -> tuple[Any, FakeLLM]:
        async with FakeLLM(script) as fake:
            settings: ModelReflector = reflector_settings(fake).model_copy(update=change)
            store = Store()
            asks = Client(settings.endpoint, QUICK, store, Budget(store), purpose="reflection")
            result = await act(LanguageModelReflector(asks, settings))
            await asks.close()
        return result, fake

    return asyncio.run(run())


def propose(
    script: Script, avoid: Sequence[Pair] = (), counts: Selection | None = None, **change: Any
) -> tuple[Any, FakeLLM]:
    evidence = tuple(record(i) for i in range(1, 4))
    return reflected(script, lambda r: r.propose(counts or Selection(evidence, 3, 3), avoid, 8, 0), **change)


def items(*entries: dict[str, Any]) -> Script:
    def answer(ask: Ask) -> Action:
        if "pairs" in ask.data:
            return Say("\n".join(json.dumps({"pair_id": p["pair_id"], "same": True}) for p in ask.data["pairs"]))
        return Say(json.dumps({"items": list(entries)}))

    return answer


def test_a_round_gives_valid_pairs_and_reasons() -> None:
    reflection, fake = propose(items(PAIR, PAIR | {"issue_tag": "laziness"}))
    assert len(reflection.proposals) == 1
    assert "taxonomy" in reflection.rejections[0].reason
    data = fake.asks[0].data
    assert data["generation_round"] == 1
    assert data["evidence_selected_count"] == 3
    assert data["evidence_selection_policy"] == "diagnostics_required_stable_random_unstratified"


def test_a_pair_that_repeats_itself_or_the_pool_is_rejected() -> None:
    known = Pair(replace(pool(1).pairs[0].rubric, rule_text=PAIR["rubric_rule_text"].upper()), Skill(""))
    reflection, _ = propose(items(PAIR), avoid=[known])
    assert reflection.proposals == ()
    assert "word for word" in reflection.rejections[0].reason
    reflection, _ = propose(items(PAIR, PAIR))
    assert len(reflection.proposals) == 1


def paraphrase() -> Pair:
    rule = "Fail when the agent repeats a failed call and made no related change before; pass in all other cases."
    rubric = Rubric("r001", "The agent changes something before repeating a call that failed.", "error_response",
                    PROPOSAL.capability, "A tool call failed.", rule)  # fmt: skip
    return Pair(rubric, Skill(""))


@pytest.mark.parametrize(
    ("says_same", "verdict", "taken"),
    [
        ("true", Verdict.FAIL, False),  # the model and the record agree
        ("true", Verdict.PASS, True),  # called the same, but it passes where the new one would fail
        ("false", Verdict.FAIL, True),  # the model's word stands
        ("", Verdict.FAIL, False),  # the model does not say, the record does
        ("", Verdict.PASS, True),
        ("", None, True),  # nobody says anything: a proposal is not dropped by silence
    ],
)
def test_the_model_and_the_record_decide_on_a_paraphrase(says_same: str, verdict: Verdict | None, taken: bool) -> None:
    issues, contrasts = [f"e{i}" for i in range(5)], [f"e{i}" for i in range(5, 10)]
    item = PAIR | {"issue_evidence_refs": issues, "contrast_evidence_refs": contrasts}
    records = tuple(replace(record(1), evidence_id=name) for name in (*issues, *contrasts))
    opposite = {Verdict.FAIL: Verdict.PASS, Verdict.PASS: Verdict.FAIL, None: None}[verdict]
    given = dict.fromkeys(issues, verdict) | dict.fromkeys(contrasts, opposite)
    verdicts = {name: {"r001": one} for name, one in given.items() if one is not None}

    def script(ask: Ask) -> Action:
        if "pairs" not in ask.data:
            return Say(json.dumps({"items": [item]}))
        return Say(f'{{"pair_id": "0.0", "same": {says_same}}}' if says_same else "I cannot say.")

    found, _ = propose(script, [paraphrase()], Selection(records, 10, 10, verdicts))
    assert len(found.proposals) == taken
    if not taken:
        assert "10 of 10 rollouts" in found.rejections[0].reason
        assert "evidence ['e0'" in found.rejections[0].reason


def test_a_paraphrase_within_one_reply_is_put_to_the_model_too() -> None:
    other = paraphrase().rubric
    item = PAIR | {"criteria_text": other.criteria_text, "rubric_rule_text": other.rule_text}
    found, fake = propose(items(PAIR, item))
    assert [p.criteria_text for p in found.proposals] == [PAIR["criteria_text"]]
    assert len(fake.asks) == 2


def test_a_paraphrase_is_put_to_the_model() -> None:
    reflection, fake = propose(items(PAIR), avoid=[paraphrase()])
    assert reflection.proposals == ()
    assert reflection.rejections[0].reason.startswith("repeats 'The agent changes something before")
    assert len(fake.asks) == 2
    reflection, fake = propose(items(PAIR), avoid=[paraphrase()], near_duplicates="off")
    assert len(reflection.proposals) == 1
    assert len(fake.asks) == 1


def test_without_a_decision_a_proposal_stays() -> None:
    reflection, _ = propose(in_order([Say(json.dumps({"items": [PAIR]})), Say("unsure")]), avoid=[paraphrase()])
    assert len(reflection.proposals) == 1


def test_similarity_distinguishes_a_paraphrase_from_another_behaviour() -> None:
    assert shortlist(PROPOSAL, [paraphrase()], 0.45)
    assert not shortlist(PROPOSAL, list(pool(5).pairs), 0.45)
    assert similarity("a b c d", "a b c d") > 0.999
    assert similarity("", "words") == 0.0


def test_an_unreadable_reply_is_asked_for_again_twice() -> None:
    reflection, fake = propose(in_order([Say("hm"), Say("{}"), Say(json.dumps({"items": [PAIR]}))]))
    assert len(reflection.proposals) == 1
    assert len(fake.asks) == 3
    reflection, fake = propose(always("hm"))
    assert reflection.proposals == ()
    assert reflection.rejections[0].reason == "not JSON"
    assert len(fake.asks) == 3


def test_a_dead_endpoint_costs_the_round_only() -> None:
    reflection, _ = propose(lambda _: Status(503))
    assert reflection.proposals == ()
    assert reflection.rejections[0].reason.startswith("unavailable")


def repeated_pair(rubric_id: str, retired: int | None) -> Pair:
    """A pair with the words of the proposal, in the pool or retired."""
    return Pair(replace(PROPOSAL.as_pair(rubric_id).rubric), Skill(""), retired)


def test_a_proposal_that_repeats_a_retired_pair_is_a_return_and_no_new_pair() -> None:
    away = repeated_pair("r007", 3)
    reflection, fake = propose(items(PAIR), [*pool(1).pairs, away])
    assert (reflection.proposals, reflection.rejections) == ((), ())
    (back,) = reflection.returns
    assert (back.rubric_id, back.proposal.issue_refs) == ("r007", tuple(PAIR["issue_evidence_refs"]))
    told = fake.asks[0].data["avoid_criteria"]
    assert ["retired_before_step" in entry for entry in told] == [False, True]
    assert told[1]["retired_before_step"] == 3


@pytest.mark.parametrize("order", [1, -1])
def test_a_repetition_of_the_pool_counts_before_that_of_a_retired_pair(order: int) -> None:
    avoid = [repeated_pair("r007", 3), repeated_pair("r009", None)][::order]
    reflection, _ = propose(items(PAIR), avoid)
    assert (reflection.proposals, reflection.returns) == ((), ())
    assert "word for word" in reflection.rejections[0].reason


def test_a_paraphrase_of_a_retired_pair_is_a_return_too() -> None:
    away = repeated_pair("r007", 3)
    near = replace(away, rubric=replace(away.rubric, criteria_text=f"{away.rubric.criteria_text} Always."))
    near = replace(near, rubric=replace(near.rubric, rule_text=f"{near.rubric.rule_text} Nothing else counts."))
    reflection, _ = propose(items(PAIR), [near])
    assert [back.rubric_id for back in reflection.returns] == ["r007"]
    assert reflection.proposals == ()


def test_a_prompt_names_the_pairs_that_retired_last_and_a_repetition_of_an_older_one_is_found() -> None:
    oldest = repeated_pair("r000", 1)
    others = [replace(a_pair(f"r{n:03d}"), retired=n) for n in range(2, 80)]
    reflection, fake = propose(items(PAIR), [*others, oldest])
    told = [entry["retired_before_step"] for entry in fake.asks[0].data["avoid_criteria"]]
    assert told == list(range(16, 80))
    assert [back.rubric_id for back in reflection.returns] == ["r000"]


def rewrite(script: Script, text: str = "Keep habit 1.", earlier: tuple[str, ...] = ()) -> tuple[Any, FakeLLM]:
    pair = Pair(pool(1).pairs[0].rubric, Skill(text, True, 2, earlier=earlier))
    failures = [RefinementRecord(record(i), VerifierOutcome(False, 0.0)) for i in range(1, 3)]
    return reflected(script, lambda r: r.rewrite(pair, failures))


def test_a_rewrite_sees_the_old_skill_and_the_outcome() -> None:
    better = SKILLS["acceptable"][3]
    result, fake = rewrite(always(json.dumps({"skill_text": better})), earlier=("Have a habit.", "Keep a habit."))
    assert result.text == better
    data = fake.asks[0].data
    earlier = ["Have a habit.", "Keep a habit."]
    assert data["previous_skill"] == {"skill_text": "Keep habit 1.", "revision": 2, "earlier_skill_texts": earlier}
    assert data["failing_evidence"][0]["outcome_context"] == {"verifier_success": False, "score": 0.0}
    assert data["rubric"]["scoring_spec"]["type"] == "binary"
    assert data["evidence_selection_policy"] == "stable_random_failed_rollouts"


def test_a_hostile_or_unchanged_rewrite_keeps_the_old_skill() -> None:
    for text in SKILLS["hostile"][:5]:
        result, _ = rewrite(always(json.dumps({"skill_text": text})))
        assert result.text is None
        assert result.reason
    same = SKILLS["acceptable"][0]
    result, _ = rewrite(always(json.dumps({"skill_text": same})), same)
    assert (result.text, result.reason) == (None, "the rewrite changes nothing")
    result, _ = rewrite(always(json.dumps({"skill_text": same})), earlier=("Have a habit.", same))
    assert (result.text, result.reason) == (None, "the rewrite is revision 1 again")
    result, _ = rewrite(lambda _: Status(503))
    assert result.text is None
