"""Ready-made scripts: constant, in order, with faults, an honest judge, and one that obeys the trajectory."""

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

from arise.llm.first_call.first_call import FIRST_CALL
from arise.llm.judge.canaries import known_answer
from arise.testing.expert import verdict_line
from arise.testing.fake_llm import Action, Ask, Say, Script
from arise.types import Verdict

NOTHING_UNCOVERED: dict[str, Any] = {
    "covered_by_active_rubrics": True,
    "rubric_gap_summary": "",
    "uncovered_issues": [],
    "positive_uncovered_strategies": [],
}


def always(text: str) -> Script:
    """Answer every request with the same completion."""
    return lambda _ask: Say(text)


def in_order(actions: Sequence[Action], then: Action | None = None) -> Script:
    """Play the actions in order, then repeat the last (or `then`) forever."""
    last = then or actions[-1]
    return lambda ask: actions[ask.number] if ask.number < len(actions) else last


def sometimes(script: Script, fault: Action, share: float, seed: int = 0) -> Script:
    """Play the script, with `fault` instead for this share of requests."""
    rng = random.Random(seed)  # noqa: S311 - scripted faults
    return lambda ask: fault if rng.random() < share else script(ask)


def honest(verdict_of: Callable[[str, Ask], Verdict], diagnostics: dict[str, Any] | None = None) -> Script:
    """Return a judge that follows the contract: `verdict_of(rule, ask)` for each rubric, canaries by the trace."""

    def answer(ask: Ask) -> Action:
        if FIRST_CALL in ask.data and "rubrics" not in ask.data:
            return Say("ok", prompt_tokens=20, completion_tokens=1)
        turns = ask.data["sample_result"]["llm_interaction_trajectory"]
        body = NOTHING_UNCOVERED | (diagnostics or {})
        if "rubrics" not in ask.data:
            return Say(json.dumps({"diagnostics": body | {"covered_by_active_rubrics": False}}))
        lines: list[dict[str, Any]] = [
            verdict_line(r["rubric_id"], known_answer(r["rule_text"], len(turns)) or verdict_of(r["rule_text"], ask))
            for r in ask.data["rubrics"]
        ]
        if "diagnostics_schema" in ask.data:
            lines.append({"diagnostics": body})
        return Say("\n".join(json.dumps(line) for line in lines))

    return answer


def obeying(order: str, verdict: Verdict, otherwise: Script) -> Script:
    """Return a gullible judge: if the data contains `order`, every rubric receives `verdict`."""

    def answer(ask: Ask) -> Any:
        if order not in ask.user:
            return otherwise(ask)
        return Say("\n".join(json.dumps(verdict_line(r["rubric_id"], verdict)) for r in ask.data["rubrics"]))

    return answer
