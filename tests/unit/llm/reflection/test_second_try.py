"""What the reflection model wrote and the rules refuse is asked for again, with the reason and within bounds."""

import json

from arise.testing import Say, always, in_order
from tests.unit.llm.reflection.test_reflector import items, propose, rewrite
from tests.unit.llm.wire.test_objects import PAIR
from tests.unit.text.test_rules import SKILLS

OTHER = PAIR | {
    "criteria_text": "The agent lists the inputs before it designs a solution.",
    "rubric_rule_text": "Fail if the agent writes a solution before it has listed the inputs; pass in all other cases.",
}


def test_a_rejected_pair_is_asked_for_again_with_the_reason() -> None:
    broken = OTHER | {"skill_text": SKILLS["hostile"][17]}
    script = in_order([Say(json.dumps({"items": [PAIR, broken]})), Say(json.dumps({"items": [OTHER]}))])
    reflection, fake = propose(script, near_duplicates="off")
    assert [p.criteria_text for p in reflection.proposals] == [PAIR["criteria_text"], OTHER["criteria_text"]]
    assert [r.text for r in reflection.rejections] == [OTHER["criteria_text"]]
    assert "reward words: 'reward'" in reflection.rejections[0].reason
    first, second = fake.asks
    assert "refused" not in first.data
    assert "Second try" not in first.system
    (refused,) = second.data["refused"]
    assert refused["item"]["skill_text"] == broken["skill_text"]
    assert "reward words: 'reward'" in refused["reason"]
    assert "## Second try" in second.system
    assert [known["criteria_text"] for known in second.data["avoid_criteria"]] == [PAIR["criteria_text"]]
    assert (first.data["max_items"], second.data["max_items"]) == (8, 7)
    assert second.data["evidence"] == first.data["evidence"]


def test_second_tries_are_bounded_and_every_rejection_is_kept() -> None:
    reflection, fake = propose(items(PAIR | {"issue_tag": "laziness"}, PAIR | {"rubric_rule_text": "x" * 50}))
    assert reflection.proposals == ()
    assert len(fake.asks) == 3
    assert len(reflection.rejections) == reflection.refused == 6


def test_where_the_refused_texts_do_not_fit_their_reasons_are_given() -> None:
    broken = [OTHER | {"criteria_text": f"Criterion number {n}.", "skill_text": "y" * 3999} for n in range(8)]
    _, fake = propose(items(*broken), chars_per_token=0.2)
    assert [set(entry) for entry in fake.asks[1].data["refused"]] == [{"reason"}] * 8


def test_no_proposals_and_only_rejected_proposals_are_distinguished() -> None:
    reflection, fake = propose(items())
    assert (reflection.proposals, reflection.rejections, reflection.refused) == ((), (), 0)
    assert len(fake.asks) == 1


def test_a_refused_rewrite_is_asked_for_again_with_the_reason() -> None:
    hostile, better = SKILLS["hostile"][17], SKILLS["acceptable"][3]
    replies = [json.dumps({"skill_text": text}) for text in (hostile, "Keep habit 1." + " " * 80, better)]
    result, fake = rewrite(in_order([Say(text) for text in replies]))
    assert (result.text, result.reason) == (better, "")
    assert len(result.rejections) == 2
    assert "rewrite of r001: skill_text contains reward words" in result.rejections[0].reason
    assert "refused" not in fake.asks[0].data
    assert fake.asks[1].data["refused"][0]["reply"] == replies[0]
    assert "reward words" in fake.asks[1].data["refused"][0]["reason"]
    assert "## Second try" in fake.asks[2].system


def test_a_rewrite_that_is_refused_to_the_end_keeps_every_reason() -> None:
    result, fake = rewrite(always(json.dumps({"skill_text": SKILLS["hostile"][17]})))
    assert len(fake.asks) == len(result.rejections) == 3
    assert "reward words" in result.reason
