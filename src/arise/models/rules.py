"""Rules on the texts a reflection model writes: what a diagnostic, a rubric rule and a skill may not say.

Pure functions from text to a list of problems; an empty list means acceptable. Skill texts end up in the policy's
system prompt, so `skill_problems` is the gate against injection by way of reflection.
"""

import re
import tomllib
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from arise.types import Capability, Proposal

MIN_SKILL, MAX_SKILL = 80, 4000

_OUTCOME_REASON = re.compile(
    r"verifier_score|verifier_success|\breward|\btests? pass|\bpassed the tests?|\bcorrect output"
    r"|\boutput (?:is|was) correct",
    re.IGNORECASE,
)
_HIDDEN_MIND = re.compile(
    r"\bcareless|\blazy\b|\blaziness|\bmotivat|\bintended to\b|\bdid not understand|\bunderstood\b", re.IGNORECASE
)
_INTERNAL = re.compile(
    r"coevolution_|uncovered_issue|positive_uncovered|\bdiagnostics?\b|sample_result|evidence_id|_refs\b", re.IGNORECASE
)
_OUTCOME = re.compile(
    r"verifier|\breward|\bground truth\b|\bhidden\b|\b(?:output|answer|result) (?:is|was|are) correct"
    r"|\bcorrect (?:output|answer)\b|\btask (?:succeeds|succeeded|success)\b|\bverifier_score",
    re.IGNORECASE,
)
_TESTS_PASS = re.compile(r"\b(?:tests?|checks?|suite) pass(?:es|ed)?\b", re.IGNORECASE)
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
    r"\bone\b|\bonce\b|\bsingle\b|\benough\b|\bsuffic\w+|\bat least (?:one|once)\b"
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


def item_problem(text: str) -> str:
    """Why a diagnostic's text may not stand, or an empty string."""
    if _OUTCOME_REASON.search(text):
        return "text gives an outcome as the reason"
    if _HIDDEN_MIND.search(text):
        return "text speaks of intent or understanding"
    return ""


def proposal_problems(proposal: Proposal, evidence_ids: Collection[str] = ()) -> list[str]:
    """Every cross-field rule that a proposed pair breaks."""
    problems = []
    if _sentences(proposal.criteria_text) > 1:
        problems.append("criteria_text is more than one sentence")
    if _sentences(proposal.applicability_condition) > 1:
        problems.append("applicability_condition is more than one sentence")
    if _OUTCOME.search(proposal.applicability_condition) or _INTERNAL.search(proposal.applicability_condition):
        problems.append("applicability_condition refers to an outcome or an internal field")
    if _COMPLIANCE.search(proposal.applicability_condition):
        problems.append("applicability_condition depends on what the agent did about the behaviour")
    for name in ("criteria_text", "rule_text"):
        text = getattr(proposal, name)
        if _FILE.search(text) or _QUOTED.search(text) or _CELL.search(text):
            problems.append(f"{name} contains a literal of one task")
    problems += rule_problems(proposal.rule_text)
    if proposal.capability is Capability.VERIFICATION or proposal.issue_tag == "result_verification":
        problems += _verification_problems(proposal)
    problems += skill_problems(proposal.skill_text, evidence_ids)
    return problems


def rule_problems(rule: str) -> list[str]:
    """What a binary rule may not say or may not leave out."""
    problems = []
    if not re.search(r"\bfail", rule, re.IGNORECASE) or not re.search(r"\bpass", rule, re.IGNORECASE):
        problems.append("rule_text lacks a fail or a pass condition")
    if _INTERNAL.search(rule):
        problems.append("rule_text names an internal field")
    if _OUTCOME.search(rule) or (_TESTS_PASS.search(rule) and not _ACTION.search(rule)):
        problems.append("rule_text decides by an outcome")
    if _NOT_APPLICABLE.search(rule):
        problems.append("rule_text has a branch for applicability")
    return problems


def skill_problems(text: str, forbidden_ids: Collection[str] = ()) -> list[str]:
    """What keeps a skill text out of a system prompt."""
    problems = []
    if len(text.strip()) < MIN_SKILL or len(text) > MAX_SKILL:
        problems.append(f"skill_text has {len(text)} characters, allowed are {MIN_SKILL} to {MAX_SKILL}")
    if _FILE.search(text):
        problems.append("skill_text contains a file name")
    if _INVISIBLE.search(text):
        problems.append("skill_text contains invisible characters")
    if _LONG_TOKEN.search(text):
        problems.append("skill_text contains an unbroken run of 60 characters")
    problems += [f"skill_text contains {kind.reason}" for kind in _forbidden() if kind.found(text)]
    if any(known in text for known in forbidden_ids):
        problems.append("skill_text contains an id of the evidence or of a rubric")
    return problems


@dataclass(frozen=True)
class _Forbidden:
    """A kind of text that may not stand in a skill, but for `allowed` ways of saying not to do it."""

    reason: str
    pattern: re.Pattern[str]
    allowed: re.Pattern[str] | None

    def found(self, text: str) -> bool:
        return bool(self.pattern.search(self.allowed.sub("", text) if self.allowed else text))


@cache
def _forbidden() -> tuple[_Forbidden, ...]:
    rows = tomllib.loads(files(__package__).joinpath("skill_lint.toml").read_text(encoding="utf-8"))["forbidden"]
    flags = re.IGNORECASE | re.MULTILINE
    return tuple(
        _Forbidden(
            row["reason"],
            re.compile("|".join(row["patterns"]), flags),
            re.compile(row["allowed"], flags) if "allowed" in row else None,
        )
        for row in rows
    )


def _verification_problems(proposal: Proposal) -> list[str]:
    problems = []
    if not _TRIGGER.search(f"{proposal.applicability_condition} {proposal.rule_text}"):
        problems.append("a verification rule must name what makes a check necessary")
    if not _ENOUGH.search(proposal.rule_text):
        problems.append("a verification rule must say which check is enough")
    if _EXCESS.search(proposal.rule_text):
        problems.append("a verification rule must not demand checks without end")
    return problems


def _sentences(text: str) -> int:
    return len(re.findall(r"[.!?](?=\s+[A-Z]|\s*$)", text.strip()))
