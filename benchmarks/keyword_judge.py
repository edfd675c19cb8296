"""A stand-in for a model judge: it reads only the request, and knows only words of trouble.

It shows that request, reply, control questions and quotes work on real traces; it says nothing about a real model.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from arise.analyze.found import Found
from arise.analyze.judging import question_of, settle
from arise.compose.analyze import behaviours
from arise.config.llm import EndpointConfig
from arise.llm.judge.canaries import known_answer
from arise.llm.wire.findings import parse_findings
from arise.types import Verdict

ENDPOINT = EndpointConfig(model="keyword-judge", max_tokens=4096)
_TROUBLE = re.compile(
    r"\b(?:error|exception|traceback|failed|not found|invalid|unable|cannot|could not|unfortunately|assum\w+|guess\w*"
    r"|incorrect|timed out|denied)\b",
    re.IGNORECASE,
)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _strings(item)


def _troubled(turns: list[dict[str, Any]]) -> list[tuple[int, str]]:
    """Return number and line of every shown turn that has a word of trouble."""
    found = []
    for turn in turns:
        lines = (line.strip() for text in _strings(turn) for line in text.split("\n"))
        hit = next((line for line in lines if 3 <= len(line) <= 200 and _TROUBLE.search(line)), "")
        if hit and "turn" in turn:
            found.append((int(turn["turn"]), hit))
    return found


def reply_to(request: str) -> str:
    """Answer a request: the n-th behaviour fails at the n-th turn with a word of trouble, the others pass."""
    asked = json.loads(request)
    turns = asked["sample_result"]["llm_interaction_trajectory"]
    troubled = iter(_troubled(turns))
    lines = []
    for entry in asked["behaviours"]:
        line: dict[str, Any] = {"behaviour_id": entry["behaviour_id"], "applicable": True, "turn": None, "quote": None}
        if known := known_answer(entry["rule"], len(turns)):
            line |= {"verdict": known.value} | ({"turn": 1, "quote": "x"} if known is Verdict.FAIL else {})
        elif place := next(troubled, None):
            line |= {"verdict": "fail", "turn": place[0], "quote": place[1]}
        else:
            line |= {"verdict": "pass"}
        lines.append(json.dumps(line))
    return "\n".join(lines)


def judged(found: Found) -> tuple[frozenset[int], int]:
    """Return the turns of the findings that stand, and how many were dropped for their quote."""
    question = question_of(found, behaviours(), ENDPOINT)
    if isinstance(question, str):
        return frozenset(), 0
    names = [*question.aliases, *question.controls]
    answered = settle(question, parse_findings(reply_to(question.user), names), found)
    return frozenset(sighting.turn for sighting in answered.sightings if sighting.present), answered.dropped
