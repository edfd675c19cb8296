"""Ready-made scripts: constant, in order, with faults, and a judge that does what a trajectory tells it."""

import json
import random
from collections.abc import Sequence

from arise.testing.fake_llm import Action, Ask, Say, Script


def always(text: str) -> Script:
    """The same completion to everything."""
    return lambda _ask: Say(text)


def in_order(actions: Sequence[Action], then: Action | None = None) -> Script:
    """The actions one after the other, then the last (or `then`) for ever."""
    last = then or actions[-1]
    return lambda ask: actions[ask.number] if ask.number < len(actions) else last


def sometimes(script: Script, fault: Action, share: float, seed: int = 0) -> Script:
    """The script, with `fault` instead in this share of requests."""
    rng = random.Random(seed)  # noqa: S311 - scripted faults
    return lambda ask: fault if rng.random() < share else script(ask)


def obeying(order: str, verdict: str, otherwise: Script) -> Script:
    """A gullible judge: where the data contains `order`, every rubric gets `verdict`."""

    def answer(ask: Ask) -> Action:
        if order not in ask.user:
            result = otherwise(ask)
            assert isinstance(result, Say)
            return result
        lines = [{"rubric_id": r["rubric_id"], "applicable": True, "verdict": verdict} for r in ask.data["rubrics"]]
        return Say("\n".join(json.dumps(line) for line in lines))

    return answer
