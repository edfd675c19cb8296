"""The paper's cross-field rules for proposals and skill texts, as data: whoever wrote a text, the same reasons apply.

It judges form, never whether a behaviour is worth having; it repairs nothing.
"""

import re
from collections.abc import Collection
from typing import NamedTuple

from arise.taxonomy import issue_tags
from arise.types import Capability, Proposal

SKILL_LENGTH = (80, 4000)
EVERY_TASK = "This rubric applies to every task."


class Problem(NamedTuple):
    """One broken rule — `Problem("rule_text", "states no fail condition")`."""

    field: str
    reason: str


_FORBIDDEN_IN_RULES = re.compile(
    r"\b(verifier|verifier_score|reward|not[ _]applicable|inapplicable|n/a|uncovered_issues?|positive_uncovered\w*"
    r"|diagnostics?|coevolution\w*|tests pass|output is correct|correct output)\b",
    re.IGNORECASE,
)
_FORBIDDEN_IN_SKILLS = re.compile(
    r"\b(reward\w*|verifier\w*|grader|graded|scor(?:e|ed|ing)|hidden (?:tests?|state|checks?)|rubrics?"
    r"|evidence id|advantage)\b",
    re.IGNORECASE,
)
_COMPLIANCE = re.compile(r"\b(?:verifier|reward|passed|succeeded|hidden)\b", re.IGNORECASE)
_PASS, _FAIL = re.compile(r"\bpass(?:es)?\b", re.IGNORECASE), re.compile(r"\bfails?\b", re.IGNORECASE)
_TRIGGER = re.compile(r"\b(?:when|after|once|if|whenever)\b", re.IGNORECASE)
_SUFFICIENCY = re.compile(
    r"\b(?:sufficient|suffices|enough|is complete|no further|need not be repeated)\b", re.IGNORECASE
)
_ADDRESS = re.compile(r"\b(?:https?|ftp|file)://|\bwww\.", re.IGNORECASE)
_PLACE = re.compile(r"(?<![\w.])(?:~|\.{1,2})?/[\w.-]+/[\w./-]+")
_ID = re.compile(r"\be\d{4}-\d{2}-\d{2}\b|\br\d{3,}\b")
_ROLE = re.compile(
    r"<\|?/?(?:im_start|im_end|system|user|assistant|tool)\b|\[/?INST\]|^\s*(?:system|assistant|user):", re.I | re.M
)
_FILE_LITERAL = re.compile(
    r"\b[\w-]+\.(?:csv|tsv|json|jsonl|txt|md|py|sh|xml|ya?ml|toml|html?|pdf|xlsx?|docx?|sql|log)\b", re.I
)


def problems_of_proposal(proposal: Proposal, known_evidence: Collection[str]) -> tuple[Problem, ...]:
    """Every rule of the generation contract that a proposal breaks."""
    return (
        *_references(proposal, known_evidence),
        *_tags(proposal),
        *_criteria(proposal),
        *problems_of_rule(proposal.rule_text, proposal.capability),
        *problems_of_skill(proposal.skill_text),
    )


def _references(proposal: Proposal, known: Collection[str]) -> list[Problem]:
    found = []
    for field, refs in (("issue_refs", proposal.issue_refs), ("contrast_refs", proposal.contrast_refs)):
        if not refs:
            found.append(Problem(field, "needs at least one evidence id"))
        if len(set(refs)) < len(refs):
            found.append(Problem(field, "names an evidence id twice"))
        if unknown := [ref for ref in refs if ref not in known]:
            found.append(Problem(field, f"names unknown evidence {unknown[0]!r}"))
    if shared := set(proposal.issue_refs) & set(proposal.contrast_refs):
        found.append(Problem("contrast_refs", f"shares {min(shared)!r} with the issue evidence"))
    return found


def _tags(proposal: Proposal) -> list[Problem]:
    found = []
    if proposal.issue_tag not in {tag.id for tag in issue_tags()}:
        found.append(Problem("issue_tag", f"{proposal.issue_tag!r} is not in the taxonomy"))
    if proposal.capability not in tuple(Capability):
        found.append(Problem("capability", f"{proposal.capability!r} is not one of the five capabilities"))
    return found


def _criteria(proposal: Proposal) -> list[Problem]:
    found = []
    for field, text in (
        ("criteria_text", proposal.criteria_text),
        ("applicability_condition", proposal.applicability_condition),
    ):
        if not text.strip():
            found.append(Problem(field, "is empty"))
        if len(re.findall(r"[.!?](?:\s|$)", text.strip())) > 1:
            found.append(Problem(field, "is more than one sentence"))
        if literal := _FILE_LITERAL.search(text):
            found.append(Problem(field, f"names the file {literal.group()!r}"))
    if word := _COMPLIANCE.search(proposal.applicability_condition):
        found.append(Problem("applicability_condition", f"depends on {word.group()!r}"))
    return found


def problems_of_rule(rule: str, capability: Capability) -> tuple[Problem, ...]:
    """What keeps a rule from being a binary, task-visible pass/fail rule."""
    found = []
    if not _PASS.search(rule):
        found.append(Problem("rule_text", "states no pass condition"))
    if not _FAIL.search(rule):
        found.append(Problem("rule_text", "states no fail condition"))
    if word := _FORBIDDEN_IN_RULES.search(rule):
        found.append(Problem("rule_text", f"mentions {word.group()!r}"))
    if literal := _FILE_LITERAL.search(rule):
        found.append(Problem("rule_text", f"names the file {literal.group()!r}"))
    if capability is Capability.VERIFICATION:
        if not _TRIGGER.search(rule):
            found.append(Problem("rule_text", "is about verification and states no trigger"))
        if not _SUFFICIENCY.search(rule):
            found.append(Problem("rule_text", "is about verification and does not say when it is sufficient"))
    return tuple(found)


def problems_of_skill(text: str) -> tuple[Problem, ...]:
    """What keeps a text from being a reusable skill that an agent may read."""
    low, high = SKILL_LENGTH
    found = []
    if not low <= len(text.strip()) <= high:
        found.append(Problem("skill_text", f"has {len(text.strip())} characters, must have {low} to {high}"))
    for pattern, what in (
        (_ADDRESS, "an address"),
        (_PLACE, "a path"),
        (_ID, "an internal id"),
        (_ROLE, "a role tag"),
        (_FORBIDDEN_IN_SKILLS, "scoring"),
        (_FILE_LITERAL, "one task's file"),
    ):
        if match := pattern.search(text):
            found.append(Problem("skill_text", f"mentions {what}: {match.group().strip()!r}"))
    return tuple(found)
