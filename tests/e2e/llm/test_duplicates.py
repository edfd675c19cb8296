"""F35: planted paraphrases are blocked, distinct behaviours are not; the decider is a script that knows the truth."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from arise.compose.judges import analyst_rubrics
from arise.llm.client.client import Client
from arise.llm.client.spend import Budget
from arise.llm.reflection.reflector import LanguageModelReflector
from arise.run.calls import Store
from arise.testing import Action, Ask, FakeLLM, Say
from arise.types import GenerationRecord, Pair, Reflection, Rubric, Selection, Skill
from tests.unit.llm.builders import QUICK, reflector_settings
from tests.unit.llm.wire.test_objects import PAIR

PARAPHRASES = json.loads((Path(__file__).parents[2] / "golden/llm/paraphrases.json").read_text("utf-8"))
RUBRICS = {rubric.id: rubric for rubric in analyst_rubrics()}
PATTERN_OF = {rubric.rule_text: rubric.id for rubric in RUBRICS.values()}
PATTERN_OF |= {texts["rule_text"]: pattern_id for pattern_id, texts in PARAPHRASES.items()}


def item(rubric: Rubric, criteria_text: str, rule_text: str) -> dict[str, Any]:
    return PAIR | {
        "criteria_text": criteria_text,
        "rubric_rule_text": rule_text,
        "issue_tag": rubric.issue_tag,
        "capability_tag": rubric.capability.value,
        "applicability_condition": rubric.applicability_condition,
    }


def proposed(item: dict[str, Any], avoid: Sequence[Rubric]) -> Reflection:
    def script(ask: Ask) -> Action:
        if "pairs" not in ask.data:
            return Say(json.dumps({"items": [item]}))
        decisions = []
        for pair in ask.data["pairs"]:
            first, second = (PATTERN_OF[pair[side]["rubric_rule_text"]] for side in ("first", "second"))
            decisions.append(json.dumps({"pair_id": pair["pair_id"], "same": first == second}))
        return Say("\n".join(decisions))

    async def run() -> Reflection:
        async with FakeLLM(script) as fake:
            settings, store = reflector_settings(fake), Store()
            client = Client(settings.endpoint, QUICK, store, Budget(store), purpose="reflection")
            records = tuple(GenerationRecord(f"e{i}", 1, 1, (), "", (), (), (), (), 8, 1) for i in (1, 2))
            pairs = [Pair(rubric, Skill("")) for rubric in avoid]
            found = await LanguageModelReflector(client, settings).propose(Selection(records, 2, 2), pairs, 8, 0)
            await client.close()
        return found

    return asyncio.run(run())


def test_f35_twenty_paraphrases_are_blocked() -> None:
    blocked = 0
    for pattern_id, texts in PARAPHRASES.items():
        found = proposed(item(RUBRICS[pattern_id], **texts), list(RUBRICS.values()))
        blocked += any(rejection.reason.startswith("repeats") for rejection in found.rejections)
    assert len(PARAPHRASES) == 20
    assert blocked >= 18


def test_f35_twenty_distinct_behaviours_are_not() -> None:
    blocked = 0
    for rubric in RUBRICS.values():
        others = [other for other in RUBRICS.values() if other.id != rubric.id]
        found = proposed(item(rubric, rubric.criteria_text, rubric.rule_text), others)
        blocked += any(rejection.reason.startswith("repeats") for rejection in found.rejections)
        assert found.proposals or found.rejections
    assert blocked <= 1
