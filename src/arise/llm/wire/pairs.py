"""Proposed pairs, skill rewrites and duplicate decisions of the reflection model."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import FailFast, Field, ValidationError

from arise.llm.wire.answer import read_lines
from arise.llm.wire.envelope import answer_object
from arise.llm.wire.strict_json import Strict, Texts, Unreadable, problem_of, read_object, too_long
from arise.text.rules import proposal_problems, skill_problems
from arise.types import Capability, Proposal, Rejection

PROVENANCE = "coevolution_rubric_diagnostics"

MAX_READ = 100
"""Most items of a reply that are read: no request asks for nearly as many."""

_Refs = Annotated[Texts, Field(min_length=1)]


class _Pair(Strict):
    criteria_text: Annotated[str, Field(min_length=20, max_length=600)]
    issue_tag: str
    capability_tag: str
    abstraction_level: Literal["global"]
    issue_evidence_refs: _Refs
    contrast_evidence_refs: _Refs
    observable_signals: Annotated[
        list[
            Literal[
                "coevolution_rubric_diagnostics",
                "coevolution_pool_version",
                "skill_usage_summary",
                "attempt_group_summary",
            ]
        ],
        FailFast(),
    ]
    applicability_condition: Annotated[str, Field(min_length=15, max_length=600)]
    rubric_rule_text: Annotated[str, Field(min_length=40, max_length=2000)]
    skill_text: Annotated[str, Field(min_length=80, max_length=4000)]


class _Items(Strict):
    items: list[Any]


class _Rewrite(Strict):
    skill_text: Annotated[str, Field(min_length=80, max_length=4000)]


class _Same(Strict):
    pair_id: str
    same: bool


@dataclass(frozen=True)
class PairReply:
    """Valid proposals, the dropped ones with their reason, and why the reply as a whole could not be read, if so.

    `refused` holds the dropped items that another wording could save; they are sent to the model again.
    """

    proposals: tuple[Proposal, ...] = ()
    rejections: tuple[Rejection, ...] = ()
    unreadable: str = ""
    refused: tuple[dict[str, object], ...] = ()


def parse_pairs(text: str, evidence_ids: Collection[str], max_items: int) -> PairReply:
    """Parse a reply to pair generation: `{"items": [...]}`, each item valid by itself or dropped."""
    value = read_object(answer_object(text))
    if isinstance(value, Unreadable):
        return PairReply(unreadable=value.reason)
    try:
        items = _Items.model_validate(value).items
    except ValidationError as error:
        return PairReply(unreadable=problem_of(error))
    proposals: list[Proposal] = []
    rejections: list[Rejection] = []
    refused: list[dict[str, object]] = []
    for item in items[:MAX_READ]:
        found = _proposal(item, evidence_ids)
        if isinstance(found, str):
            rejections.append(_rejected(item, found))
            refused.append({"item": _quoted(item), "reason": found})
        elif len(proposals) >= max_items:
            rejections.append(_rejected(item, f"more than max_items = {max_items}"))
        else:
            proposals.append(found)
    if len(items) > MAX_READ:
        rejections.append(Rejection("", f"{len(items) - MAX_READ:,} more items were not read"))
    return PairReply(tuple(proposals), tuple(rejections), refused=tuple(refused))


def parse_rewrite(text: str, forbidden_ids: Collection[str] = ()) -> tuple[str | None, str]:
    """Parse a reply to skill refinement: the new text, or None with the reason."""
    value = read_object(answer_object(text))
    if isinstance(value, Unreadable):
        return None, value.reason
    try:
        skill_text = _Rewrite.model_validate(value).skill_text
    except ValidationError as error:
        return None, problem_of(error)
    problems = skill_problems(skill_text, forbidden_ids)
    return (None, "; ".join(map(str, problems))) if problems else (skill_text, "")


def parse_duplicates(text: str, pair_ids: Sequence[str]) -> dict[str, bool]:
    """Parse decisions by pair id; a pair mentioned other than once has no decision."""
    found: dict[str, list[bool | None]] = {pair_id: [] for pair_id in pair_ids}
    for line in read_lines(text, pair_ids, "pair_id") if not too_long(text) else ():
        try:
            decision = _Same.model_validate(line.value)
        except ValidationError:
            continue
        if decision.pair_id in found:
            found[decision.pair_id].append(None if line.aside else decision.same)
    decided = {pair_id: decisions[0] for pair_id, decisions in found.items() if len(decisions) == 1}
    return {pair_id: same for pair_id, same in decided.items() if same is not None}


def _proposal(raw: object, evidence_ids: Collection[str]) -> Proposal | str:
    try:
        item = _Pair.model_validate(raw)
    except ValidationError as error:
        return problem_of(error)
    if item.capability_tag not in set(Capability):
        return f"capability_tag {item.capability_tag[:40]!r} is not one of the five capabilities"
    if PROVENANCE not in item.observable_signals:
        return f"observable_signals lacks {PROVENANCE}"
    proposal = Proposal(
        criteria_text=item.criteria_text.strip(),
        issue_tag=item.issue_tag,
        capability=Capability(item.capability_tag),
        applicability_condition=item.applicability_condition.strip(),
        rule_text=item.rubric_rule_text.strip(),
        skill_text=item.skill_text.strip(),
        issue_refs=tuple(item.issue_evidence_refs),
        contrast_refs=tuple(item.contrast_evidence_refs),
    )
    return "; ".join(map(str, proposal_problems(proposal, evidence_ids))) or proposal


def _quoted(item: object) -> object:
    """Render a refused item for the retry: its own fields, long texts clipped."""
    if not isinstance(item, dict):
        return str(item)[:300]
    return {name: str(item[name])[:4000] for name in _Pair.model_fields if name in item}


def _rejected(item: object, reason: str) -> Rejection:
    """Return a rejection: title, reason and the evidence it named."""
    if not isinstance(item, dict):
        return Rejection(str(item)[:300], reason)
    issue, contrast = item.get("issue_evidence_refs"), item.get("contrast_evidence_refs")
    return Rejection(str(item.get("criteria_text"))[:300], f"{reason} ({evidence_text(issue, contrast)})")


def evidence_text(issue: object, contrast: object) -> str:
    """Describe a proposal's references for the rejection record."""
    return f"evidence {str(issue)[:400]} against {str(contrast)[:400]}"
