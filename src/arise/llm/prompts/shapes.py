"""The shape of a reply, for servers that can constrain a model's output to it.

A shape constrains form only. What a reply means is read by `wire`, the same way with and without a constraint.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from arise.llm.prompts.prompt_files import schema

_TEXT = {"type": "string"}
_LIST = {"type": "array", "items": _TEXT}


@dataclass(frozen=True)
class Shape:
    """The shape of a reply: `schema` for a server that takes a JSON schema, `lines` for one that takes a grammar.

    The schema is the same for all requests of a kind, so that a provider can cache prompts and compiled schemas. The
    lines belong to one request: they contain its ids and leave only the verdicts to the model.
    """

    name: str
    schema: Mapping[str, Any]
    lines: tuple[Mapping[str, Any], ...]


def verdict_lines(rubric_ids: Sequence[str], diagnostics: bool, reasons: bool = False) -> Shape:
    """Return the shape of a rubric evaluation, with or without a reason in each line."""
    lines = [_verdict({"const": rubric_id}, reasons) for rubric_id in rubric_ids]
    if diagnostics:
        lines.append(_object({"diagnostics": schema("diagnostics")}))
    return Shape("verdicts", _verdicts(diagnostics, reasons), tuple(lines))


def diagnostics_object() -> Shape:
    """Return the shape of an initial analysis."""
    return _one("diagnostics", _object({"diagnostics": schema("diagnostics")}))


def pair_items() -> Shape:
    """Return the shape of generated pairs."""
    return _one("pairs", schema("paired_items"))


def skill_rewrite() -> Shape:
    """Return the shape of a rewritten skill."""
    return _one("rewrite", schema("skill_rewrite"))


def same_lines(pair_ids: Sequence[str]) -> Shape:
    """Return the shape of duplicate decisions."""
    lines = tuple(_object({"pair_id": {"const": name}, "same": {"type": "boolean"}}) for name in pair_ids)
    listed = {"type": "array", "items": _object({"pair_id": _TEXT, "same": {"type": "boolean"}})}
    return Shape("same", _object({"lines": listed}), lines)


def finding_lines(behaviour_ids: Sequence[str]) -> Shape:
    """Return the shape of an analysis judge's findings."""
    listed = {"type": "array", "items": _finding(_TEXT)}
    lines = tuple(_finding({"const": name}) for name in behaviour_ids)
    return Shape("findings", _object({"lines": listed}), lines)


def annotations(task_keys: Sequence[str]) -> Shape:
    """Return the shape of task-type annotations, one judgment per task."""
    uncovered = _object(
        {
            "process_name": _TEXT,
            "definition": _TEXT,
            "observable_outcome": _TEXT,
            "nearest_tag_ids": _LIST,
            "distinction": _TEXT,
        }
    )
    judgment = {
        "matched_tag_ids": _LIST,
        "match_rationale": _TEXT,
        "uncovered": {"anyOf": [uncovered, {"type": "null"}]},
        "confidence": {"enum": ["high", "medium", "low"]},
    }
    listed = {"type": "array", "items": _object({"task_key": _TEXT} | judgment)}
    count = {"minItems": len(task_keys), "maxItems": len(task_keys)}
    line = _object({"judgments": listed | count})
    return Shape("annotations", _object({"judgments": listed}), (line,))


@cache
def _verdicts(diagnostics: bool, reasons: bool) -> Mapping[str, Any]:
    listed = {"lines": {"type": "array", "items": _verdict(_TEXT, reasons)}}
    return _object(listed | ({"diagnostics": schema("diagnostics")} if diagnostics else {}))


def _verdict(rubric_id: Mapping[str, Any], reasons: bool) -> Mapping[str, Any]:
    judged: dict[str, Any] = {"applicable": {"const": True}, "verdict": {"enum": ["pass", "fail"]}}
    not_applicable: dict[str, Any] = {"applicable": {"const": False}, "verdict": {"type": "null"}}
    if reasons:
        judged |= {"turn": {"type": "integer"}, "reason": _TEXT}
        not_applicable |= {"turn": {"type": "null"}, "reason": _TEXT}
    return {"anyOf": [_object({"rubric_id": rubric_id} | rest) for rest in (judged, not_applicable)]}


def _finding(behaviour_id: Mapping[str, Any]) -> Mapping[str, Any]:
    miss = {"turn": {"type": "integer"}, "quote": _TEXT}
    clean = {"turn": {"type": "null"}, "quote": {"type": "null"}}
    options = (
        {"applicable": {"const": True}, "verdict": {"const": "fail"}} | miss,
        {"applicable": {"const": True}, "verdict": {"const": "pass"}} | clean,
        {"applicable": {"const": False}, "verdict": {"type": "null"}} | clean,
    )
    return {"anyOf": [_object({"behaviour_id": behaviour_id} | option) for option in options]}


def _one(name: str, found: Mapping[str, Any]) -> Shape:
    return Shape(name, found, (found,))


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(properties),
        "properties": dict(properties),
    }
