"""G_ref without a language model: pairs compiled from a window's diagnostics (Eq. 4), skills rewritten (Eq. 8).

It sees the input of a generation call, no outcome and no trajectory, and reports why it omitted something.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from arise.analyst.catalogue import Wording, miss_of_item, pattern_of_item, pattern_of_rubric, wordings
from arise.analyst.detectors import DETECTORS
from arise.text.rules import proposal_problems, skill_problems
from arise.types import (
    GenerationRecord,
    Pair,
    Proposal,
    RefinementRecord,
    Reflection,
    Rejection,
    Return,
    Rewrite,
    Selection,
    Skill,
)

REFERENCES_AT_MOST = 32
RARE = 0.1
"""A behaviour that is missing in a smaller share of its records is not a weakness."""
FALLEN = 0.3
"""A retired one comes back only where it is missing in this share of its records since then, as for the watch."""
_OPENERS = ("Do this {point}.", "Always {point}:", "Remember {point}.", "Every time, {point}:")


@dataclass
class _Support:
    """Evidence of a window about one pattern: which records fail, in which way, and which pass."""

    misses: dict[str, str] = field(default_factory=dict)
    contrasts: dict[str, None] = field(default_factory=dict)

    @property
    def issue_refs(self) -> tuple[str, ...]:
        return tuple(ref for ref in self.misses if ref not in self.contrasts)

    @property
    def contrast_refs(self) -> tuple[str, ...]:
        return tuple(ref for ref in self.contrasts if ref not in self.misses)

    @property
    def missing_share(self) -> float:
        return len(self.misses) / (len(self.misses) + len(self.contrasts))

    @property
    def usual_miss(self) -> str:
        """Return the most frequent way to fail; the first one seen among equals."""
        counts = Counter(miss for miss in self.misses.values() if miss)
        return counts.most_common(1)[0][0] if counts else ""


class OfflineReflector:
    """Compile pairs from evidence only: a pattern without issue and contrast evidence in the window yields no pair."""

    async def propose(
        self, evidence: Selection, avoid: Sequence[Pair], max_items: int, round_number: int
    ) -> Reflection:
        """Return at most `max_items` pairs, most failures first; rounds differ only by their evidence."""
        del round_number
        supports, unmatched = _gather(evidence.chosen)
        covered = {pattern_of_rubric(pair.rubric): pair for pair in sorted(avoid, key=_retired_first)}
        known = {record.evidence_id for record in evidence.chosen}
        proposals: list[Proposal] = []
        rejections: list[Rejection] = []
        returns: list[Return] = []
        for pattern_id, support in _ranked(supports):
            wording, pair = wordings()[pattern_id], covered.get(pattern_id)
            full = len(proposals) + len(returns) >= max_items
            if pair is not None and pair.retired is not None:
                since = _since(evidence.chosen, pattern_id, pair.retired)
                if reason := _why_not_back(pair, since, full=full):
                    rejections.append(Rejection(wording.criterion, reason))
                else:
                    returns.append(Return(pair.rubric.id, _compile(wording, since)))
                continue
            reason = _why_not(support, pair.rubric.id if pair else None, full=full)
            if not reason:
                proposal = _compile(wording, support)
                reason = "; ".join(map(str, proposal_problems(proposal, known)))
                if not reason:
                    proposals.append(proposal)
                    continue
            rejections.append(Rejection(wording.criterion, reason))
        if unmatched:
            rejections.append(
                Rejection(unmatched[0], f"{len(unmatched)} diagnostic items match no pattern of the catalogue")
            )
        return Reflection(tuple(proposals), tuple(rejections), returns=tuple(returns))

    async def rewrite(self, pair: Pair, failures: Sequence[RefinementRecord]) -> Rewrite:
        """Rewrite the skill closer to the missed decision, with text that no revision has used."""
        if not failures:
            return Rewrite(None, "no failure evidence under this skill")
        pattern_id = pattern_of_rubric(pair.rubric)
        if pattern_id is None:
            return Rewrite(None, "no pattern of the catalogue matches this rubric")
        wording = wordings()[pattern_id]
        shown = Counter(_misses_shown(pattern_id, failures)).most_common(1)
        text = _rewritten(wording, shown[0][0] if shown else "", pair.skill)
        if text is None:
            return Rewrite(None, "every wording of the catalogue was tried")
        if problems := skill_problems(text):
            return Rewrite(None, "; ".join(map(str, problems)))
        signal = wording.misses[shown[0][0]].signal if shown else "the behaviour is still absent"
        return Rewrite(text, f"{len(failures)} failures under revision {pair.skill.revision}: {signal}")


def _gather(evidence: Sequence[GenerationRecord]) -> tuple[dict[str, _Support], list[str]]:
    """Return the support by pattern, and the texts of items that match none."""
    supports: dict[str, _Support] = {}
    unmatched: list[str] = []
    for record in evidence:
        for item in (*record.uncovered_issues, *record.positive_uncovered_strategies):
            pattern_id = pattern_of_item(item)
            if pattern_id is None:
                unmatched.append(item.text)
                continue
            support = supports.setdefault(pattern_id, _Support())
            if item in record.uncovered_issues:
                support.misses.setdefault(record.evidence_id, miss_of_item(item, pattern_id))
            else:
                support.contrasts[record.evidence_id] = None
    return supports, unmatched


def _ranked(supports: Mapping[str, _Support]) -> list[tuple[str, _Support]]:
    """Sort by most failures, where a pair helps most; then most contrasts, then the more specific pattern."""
    rank = {pattern_id: place for place, pattern_id in enumerate(DETECTORS)}
    return sorted(supports.items(), key=lambda kv: (-len(kv[1].issue_refs), -len(kv[1].contrast_refs), rank[kv[0]]))


def _retired_first(pair: Pair) -> tuple[bool, int]:
    """Sort key: of several pairs for one pattern the active one comes last and counts, else the last retired."""
    return pair.retired is None, pair.retired or 0


def _since(evidence: Sequence[GenerationRecord], pattern_id: str, iteration: int) -> _Support:
    """Return the evidence about a pattern in records from `iteration` on."""
    supports, _ = _gather([record for record in evidence if record.iteration >= iteration])
    return supports.get(pattern_id, _Support())


def _why_not_back(pair: Pair, since: _Support, *, full: bool) -> str:
    """Return why a retired pair does not return; it needs no new contrasts, since it keeps its original ones."""
    records = len(since.misses) + len(since.contrasts)
    if not since.issue_refs or len(since.misses) < FALLEN * records:
        return (
            f"mastered: {pair.rubric.id} retired after iteration {pair.retired}, "
            f"missing in {len(since.misses)} of {records} records since then"
        )
    return "more supported behaviours came first" if full else ""


def _why_not(support: _Support, covered_by: str | None, *, full: bool) -> str:
    if covered_by is not None:
        return f"already covered by rubric {covered_by}"
    if not support.issue_refs:
        return f"records that show it done: {len(support.contrast_refs)}; none shows it missing"
    if not support.contrast_refs:
        return f"records that show it missing: {len(support.issue_refs)}; none shows it done"
    if support.missing_share < RARE:
        return f"missing in {len(support.misses)} of {len(support.misses) + len(support.contrasts)} records only"
    return "more supported behaviours came first" if full else ""


def _compile(wording: Wording, support: _Support) -> Proposal:
    return Proposal(
        criteria_text=wording.criterion,
        issue_tag=wording.pattern.issue_tag,
        capability=wording.pattern.capability,
        applicability_condition=wording.applies,
        rule_text=wording.rule,
        skill_text=first_skill(wording, support.usual_miss),
        issue_refs=support.issue_refs[:REFERENCES_AT_MOST],
        contrast_refs=support.contrast_refs[:REFERENCES_AT_MOST],
    )


def first_skill(wording: Wording, miss: str) -> str:
    """Return the initial skill: the behaviour, and advice for the most frequent way to miss it."""
    return f"{wording.skill} {_advice(wording, miss)[0]}"


def _advice(wording: Wording, miss: str) -> list[str]:
    """Return advice for every way to fail, the observed one first."""
    ordered = sorted(wording.misses, key=lambda key: key != miss)
    return [wording.misses[key].advice for key in ordered]


def _misses_shown(pattern_id: str, failures: Sequence[RefinementRecord]) -> list[str]:
    items = [item for record in failures for item in record.view.uncovered_issues]
    return [miss for item in items if pattern_of_item(item) == pattern_id and (miss := miss_of_item(item, pattern_id))]


def _rewritten(wording: Wording, miss: str, skill: Skill) -> str | None:
    """Return the next unused pair of sentences after an opener for the deciding moment; None if all were used.

    The same sentences in another order or after another opener do not count as new.
    """
    said = (*skill.earlier, skill.text)
    bodies = [(first, advice) for advice in _advice(wording, miss) for first in (wording.again, wording.skill)]
    for body in (*bodies, (wording.again, wording.skill)):
        if not any(all(sentence in text for sentence in body) for text in said):
            opener = _OPENERS[skill.revision % len(_OPENERS)].format(point=wording.point)
            return f"{opener} {body[0]} {body[1]}"
    return None
