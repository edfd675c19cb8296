"""Lint rules for diagnostics, proposed pairs and skills, whichever model wrote them.

Pure functions from text to problems; an empty result means acceptable. They check form only and
repair nothing. Skill texts enter the policy's system prompt, so `skill_problems` is the gate against injection by
reflection.
"""

import re
import tomllib
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from arise.taxonomy import issue_tags
from arise.types import Capability, Proposal

MIN_SKILL, MAX_SKILL = 80, 4000


class Problem(NamedTuple):
    """One broken rule — `Problem("rule_text", "lacks a fail condition")`."""

    field: str
    reason: str

    def __str__(self) -> str:
        return f"{self.field} {self.reason}"


_OUTCOME_REASON = re.compile(
    r"verifier_score|verifier_success|\breward|\btests? pass|\bpassed the tests?|\bcorrect output"
    r"|\boutput (?:is|was) correct",
    re.IGNORECASE,
)
_HIDDEN_MIND = re.compile(
    r"\bcareless|\blazy\b|\blaziness|\bmotivat|\bintended to\b|\bdid not understand|\bunderstood\b", re.IGNORECASE
)
_INTERNAL = re.compile(
    r"coevolution_|uncovered_issue|positive_uncovered|sample_result|evidence_id|_refs\b"
    r"|(?<!compiler )(?<!linter )(?<!error )(?<!tool )\bdiagnostics?\b(?! (?:message|output|command|log|tool)s?\b)",
    re.IGNORECASE,
)
_OUTCOME = re.compile(
    r"verifier(?! (?:script|command|tool|program)\b)|\breward|\bground truth\b"
    r"|\bhidden (?:\w+ )?(?:tests?|checks?|states?|solutions?|suites?|answers?)\b"
    r"|\b(?:output|answer|result) (?:is|was|are) correct"
    r"|\bcorrect (?:output|answer)\b|\btask (?:succeeds|succeeded|success)\b",
    re.IGNORECASE,
)
_TESTS_PASS = re.compile(r"\b(?:tests?|checks?|suite|script|command|program) pass(?:es|ed)?\b", re.IGNORECASE)
_ACTION = re.compile(
    r"\b(?:run|runs|rerun|reruns|re-runs?|ran|execut\w+|inspect\w*|read\w*|chang\w+|edit\w*|writ\w+|repeat\w*|call\w*)\b",
    re.IGNORECASE,
)
_NOT_APPLICABLE = re.compile(r"\bnot[ _]applicable\b|\binapplicable\b|\bN/A\b|\bdoes not apply\b", re.IGNORECASE)
_COMPLIANCE = re.compile(
    r"\bagent (?:failed to|did not|didn't|does not|has not|correctly|properly|complie[sd]|should)\b", re.IGNORECASE
)
_FILE = re.compile(
    r"\b[\w-]+\.(?:csv|tsv|json|jsonl|ya?ml|toml|xml|html?|md|txt|log|py|js|ts|c|cpp|rs|go|java|sh|sql|db|xlsx?|docx?|pptx?|pdf"
    r"|png|jpe?g|zip|tar|gz|parquet|ini|cfg|conf)\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"\"[^\"]{2,}\"|“[^”]{2,}”|`[^`]{2,}`")
_CELL = re.compile(r"\b(?:cell|column|row|slide|page)s? (?:[A-Z]{1,3}\d*|\d+)\b")
_TRIGGER = re.compile(r"\b(?:when|whenever|after|once|where|before|following|as soon as|until)\b", re.IGNORECASE)
_ENOUGH = re.compile(
    r"\bpass(?:es)? (?:only )?(?:if|when|once|as soon as|where)\b"
    r"|\bone\b|\bonce\b|\bsingle\b|\benough\b|\bsuffic\w+|\bis complete\b|\bno further\b"
    r"|\ba (?:\w+ ){0,3}(?:check|run|read|inspection|comparison)\b",
    re.IGNORECASE,
)
_EXCESS = re.compile(
    r"\bevery time\b|\brepeatedly (?:verif|check|re)|\bstrongest possible\b|\ball possible checks\b"
    r"|\balways re-?(?:read|comput|check)",
    re.IGNORECASE,
)

_INVISIBLE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    r"\ufe00-\ufe0f\ufeff\ufff0-\uffff\U000e0000-\U000e0fff\ud800-\udfff]"
)
_LONG_TOKEN = re.compile(r"\S{60,}")
_NEGATED = re.compile(
    r"\b(?:never|(?:do|does|must|should|may|can|will) not|don't|avoid|without|nor|instead of|rather than)[ \t]+"
    r"(?:\w+(?:,[ \t]+\w+)*,?[ \t]+n?or[ \t]+)?(?:(?:run|us|call|execut|invok|try)\w*[ \t]+)?$",
    re.IGNORECASE,
)
"""The text before a match that a skill advises against: `never `, `do not edit or `, `without using `."""


def item_problem(text: str) -> str:
    """Return why a diagnostic's text is rejected, or an empty string."""
    if _OUTCOME_REASON.search(text):
        return "text gives an outcome as the reason"
    if _HIDDEN_MIND.search(text):
        return "text speaks of intent or understanding"
    return ""


def proposal_problems(proposal: Proposal, evidence_ids: Collection[str]) -> list[Problem]:
    """Return every rule of the generation contract that a proposed pair breaks, given its evidence."""
    return [
        *_references(proposal, evidence_ids),
        *_tags(proposal),
        *_sentences(proposal),
        *_applicability(proposal.applicability_condition),
        *_rule(proposal.rule_text),
        *_verification(proposal),
        *skill_problems(proposal.skill_text, evidence_ids),
    ]


def skill_problems(text: str, forbidden_ids: Collection[str] = ()) -> list[Problem]:
    """Return why a skill text may not enter a system prompt."""
    found = []
    if len(text.strip()) < MIN_SKILL or len(text) > MAX_SKILL:
        found.append(f"has {len(text)} characters, allowed are {MIN_SKILL} to {MAX_SKILL}")
    if literal := _FILE.search(text):
        found.append(f"names the file {literal.group()!r}")
    if _INVISIBLE.search(text):
        found.append("contains invisible characters")
    if _LONG_TOKEN.search(text):
        found.append("contains an unbroken run of 60 characters")
    found += [f"contains {kind.reason}: {words[:60]!r}" for kind in _forbidden() if (words := kind.found(text))]
    if any(known in text for known in forbidden_ids):
        found.append("contains an id of the evidence or of a rubric")
    return [Problem("skill_text", reason) for reason in found]


def _references(proposal: Proposal, known: Collection[str]) -> list[Problem]:
    found = []
    for field, refs in (("issue_refs", proposal.issue_refs), ("contrast_refs", proposal.contrast_refs)):
        if not refs:
            found.append(Problem(field, "needs at least one evidence id"))
        if len(set(refs)) < len(refs):
            found.append(Problem(field, "names an evidence id twice"))
        if unknown := [ref for ref in refs if ref not in known]:
            found.append(Problem(field, f"names unknown evidence {unknown[0][:40]!r}"))
    if shared := set(proposal.issue_refs) & set(proposal.contrast_refs):
        found.append(Problem("contrast_refs", f"shares {min(shared)!r} with the issue evidence"))
    return found


def _tags(proposal: Proposal) -> list[Problem]:
    known = {tag.id for tag in issue_tags()}
    unknown = proposal.issue_tag not in known
    return [Problem("issue_tag", f"{proposal.issue_tag[:40]!r} is not in the taxonomy")] if unknown else []


def _sentences(proposal: Proposal) -> list[Problem]:
    """Criterion and condition are one sentence each; neither they nor the rule name a literal of one task."""
    found = []
    for field in ("criteria_text", "applicability_condition", "rule_text"):
        text = getattr(proposal, field).strip()
        if not text:
            found.append(Problem(field, "is empty"))
        if field != "rule_text" and len(re.findall(r"[.!?](?=\s+[A-Z]|\s*$)", text)) > 1:
            found.append(Problem(field, "is more than one sentence"))
        if literal := _FILE.search(text) or _QUOTED.search(text) or _CELL.search(text):
            found.append(Problem(field, f"names {literal.group()[:40]!r}, a literal of one task"))
    return found


def _applicability(condition: str) -> list[Problem]:
    found = []
    if word := _OUTCOME.search(condition) or _INTERNAL.search(condition):
        found.append(f"depends on {word.group()!r}, an outcome or an internal field")
    if _COMPLIANCE.search(condition):
        found.append("depends on what the agent did about the behaviour")
    return [Problem("applicability_condition", reason) for reason in found]


def _rule(rule: str) -> list[Problem]:
    """Check that a rule is binary and decidable from the trace."""
    missing = [word for word in ("fail", "pass") if not re.search(rf"\b{word}", rule, re.IGNORECASE)]
    found = [f"lacks a {word} condition" for word in missing]
    if field := _INTERNAL.search(rule):
        found.append(f"names the internal field {field.group()!r}")
    if _OUTCOME.search(rule) or (_TESTS_PASS.search(rule) and not _ACTION.search(rule)):
        found.append("decides by an outcome")
    if _NOT_APPLICABLE.search(rule):
        found.append("has a branch for applicability")
    return [Problem("rule_text", reason) for reason in found]


def _verification(proposal: Proposal) -> list[Problem]:
    """Require that a verification rule says when a check is due and which check suffices."""
    if proposal.capability is not Capability.VERIFICATION and proposal.issue_tag != "result_verification":
        return []
    found = []
    if not _TRIGGER.search(f"{proposal.applicability_condition} {proposal.rule_text}"):
        found.append("is about verification and does not name what makes a check necessary")
    if not _ENOUGH.search(proposal.rule_text):
        found.append("is about verification and does not say which check is enough")
    if _EXCESS.search(proposal.rule_text):
        found.append("demands checks without end")
    return [Problem("rule_text", reason) for reason in found]


@dataclass(frozen=True)
class _Forbidden:
    """A forbidden kind of text in a skill; some kinds are allowed where the text advises against them."""

    reason: str
    pattern: re.Pattern[str]
    unless_negated: bool

    def found(self, text: str) -> str:
        """Return the first offending words, or an empty string."""
        start = 0
        while match := self.pattern.search(text, start):
            if not (self.unless_negated and _NEGATED.search(text[max(0, match.start() - 80) : match.start()])):
                return match.group()
            start = match.start() + 1  # not its end: a negated match must not hide another one inside it
        return ""


@cache
def _forbidden() -> tuple[_Forbidden, ...]:
    rows = tomllib.loads(files(__package__).joinpath("skill_lint.toml").read_text(encoding="utf-8"))["forbidden"]
    flags = re.IGNORECASE | re.MULTILINE
    return tuple(
        _Forbidden(row["reason"], re.compile("|".join(row["patterns"]), flags), row.get("unless_negated", False))
        for row in rows
    )
