"""The reflection model G_ref behind an endpoint: new pairs from evidence (Eq. 4), skills rewritten (Eq. 8).

Each item is accepted or rejected by itself. Items rejected for their form are requested again with the reason, a
bounded number of times per round; every rejection is kept. Generation must never see an outcome, and no text that the
linter refuses may enter a skill.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from arise.config.llm import ModelReflector
from arise.llm.client.client import Client, ModelReply, Observe, Unanswered
from arise.llm.client.stops import RunStop
from arise.llm.judge.evaluation import digest
from arise.llm.prompts.prompt import Prompt, Template, render, to_json
from arise.llm.prompts.shapes import pair_items, same_lines, skill_rewrite
from arise.llm.reflection.evidence_view import fit, generation_view, refinement_view
from arise.llm.reflection.near_duplicates import repeats, same_words, shortlist, verdict_match
from arise.llm.wire import PairReply, parse_duplicates, parse_pairs, parse_rewrite
from arise.llm.wire.pairs import PROVENANCE, evidence_text
from arise.types import Pair, Proposal, RefinementRecord, Reflection, Rejection, Return, Rewrite, Selection, Skill

_EVIDENCE_SHARE = 0.6
_QUOTED_CHARS = 4000
_RETIRED_NAMED = 64
"""Maximum number of retired pairs listed in a prompt, most recent first; repetitions of the others are detected too."""


@dataclass
class _Round:
    """Results of one round so far; `again` holds the refusals reported to the next request."""

    proposals: list[Proposal] = field(default_factory=list)
    rejections: list[Rejection] = field(default_factory=list)
    returns: dict[str, Return] = field(default_factory=dict)
    refused: int = 0
    again: list[dict[str, object]] = field(default_factory=list)

    def take(self, found: PairReply, avoid: Sequence[Pair], left: int) -> None:
        """Add a reply: proposals without literal repeats, rejections, and up to `left` items to retry."""
        self.rejections += found.rejections
        self.again = list(found.refused[:left])
        if found.unreadable:
            self.rejections.append(Rejection("", found.unreadable))
            self.again = [{"reason": f"the reply could not be read: {found.unreadable}"}]
        for proposal in found.proposals:
            known = [*avoid, *(earlier.as_pair() for earlier in self.proposals)]
            equal = [pair for pair in known if same_words(proposal, pair.rubric.criteria_text, pair.rubric.rule_text)]
            if equal:
                self.drop(proposal, min(equal, key=_away), "repeats a criterion word for word")
            else:
                self.proposals.append(proposal)
        self.refused += len(found.rejections)

    def drop(self, proposal: Proposal, repeated: Pair, reason: str) -> None:
        """Record a dropped proposal: as the return of a retired pair, else with the reason and its evidence."""
        if repeated.retired is not None:
            self.returns.setdefault(repeated.rubric.id, Return(repeated.rubric.id, proposal))
            return
        evidence = evidence_text(list(proposal.issue_refs), list(proposal.contrast_refs))
        self.rejections.append(Rejection(proposal.criteria_text, f"{reason} ({evidence})"))
        self.refused += 1


class LanguageModelReflector:
    """`ports.Reflector` over a client; a failed call returns no pairs and the reason."""

    def __init__(
        self, client: Client, settings: ModelReflector, *, observe: Observe | None = None, salt: str = ""
    ) -> None:
        self._client, self._settings, self._salt = client, settings, salt
        self._observe = observe or (lambda _name, _fields: None)
        self._budget = int(settings.endpoint.context_tokens * settings.chars_per_token * _EVIDENCE_SHARE)

    async def propose(
        self, evidence: Selection, avoid: Sequence[Pair], max_items: int, round_number: int
    ) -> Reflection:
        """Run one round: at most `max_items` pairs, none in `avoid`; repeating a retired pair is a return."""
        try:
            found = await self._generate(evidence, avoid, max_items, round_number)
            if self._settings.near_duplicates == "model":
                await self._drop_repeats(found, avoid, evidence)
            if not found.proposals and not found.refused and found.rejections:
                self._observe("reflection.nothing", {"reason": found.rejections[-1].reason})
            returns = tuple(found.returns.values())
            return Reflection(tuple(found.proposals), tuple(found.rejections), found.refused, returns)
        except RunStop:
            raise
        except Exception as error:  # boundary: an internal error costs this round, not the run
            reason = f"internal: {type(error).__name__}: {str(error)[:200]}"
            self._observe("reflection.nothing", {"reason": reason})
            return Reflection((), (Rejection("", reason),))

    async def rewrite(self, pair: Pair, failures: Sequence[RefinementRecord]) -> Rewrite:
        """Rewrite a skill whose rubric still fails, or return the reason to keep the old text."""
        try:
            return await self._rewrite(pair, failures)
        except RunStop:
            raise
        except Exception as error:  # boundary: an internal error keeps the old text
            return Rewrite(None, f"internal: {type(error).__name__}: {str(error)[:200]}")

    async def _generate(self, evidence: Selection, avoid: Sequence[Pair], max_items: int, round_number: int) -> _Round:
        shown = fit(evidence.chosen, generation_view, self._budget)
        ids = {str(view["evidence_id"]) for view in shown}
        found = _Round()
        for attempt in range(self._settings.calls.format_attempts):
            left = max_items - len(found.proposals) - len(found.returns)
            covered = [*avoid, *(proposal.as_pair() for proposal in found.proposals)]
            named = _named(covered)
            values: dict[str, object] = {
                "max_items": left,
                "evidence_total_count": evidence.total,
                "evidence_with_generation_diagnostics_count": evidence.with_diagnostics,
                "evidence_selected_count": len(shown),
                "evidence_omitted_count": evidence.with_diagnostics - len(shown),
                "generation_round": round_number + 1,
                "avoid_criteria_count": len(named),
                "avoid_criteria": [_criterion(pair) | _left(pair) for pair in named],
                "evidence": shown,
            }
            prompt = self._prompt(Template.PAIR_GENERATION, values, attempt, found.again)
            reply = await self._client.ask(prompt)
            if isinstance(reply, Unanswered):
                found.rejections.append(Rejection("", str(reply)))
                break
            parsed = parse_pairs(reply.text, ids, left)
            reasons = [rejection.reason for rejection in parsed.rejections]
            self._report(prompt, reply, len(parsed.proposals), reasons, parsed.unreadable)
            found.take(parsed, covered, left)
            if not found.again or len(found.proposals) + len(found.returns) >= max_items:
                break
        return found

    def _prompt(
        self, template: Template, values: Mapping[str, object], attempt: int, refused: Sequence[dict[str, object]]
    ) -> Prompt:
        """Build a request; a retry also lists the refused items with reasons."""
        if len(to_json(refused)) > self._budget // 6:
            refused = [{"reason": str(entry["reason"])[:300]} for entry in refused]
        told = {**values, "refused": list(refused)} if refused else dict(values)
        call = digest(to_json([self._salt, attempt, told]))
        shape = pair_items() if template is Template.PAIR_GENERATION else skill_rewrite()
        return render(template, told | {"call": call}, {"second_try": bool(refused)}, shape)

    async def _drop_repeats(self, found: _Round, avoid: Sequence[Pair], evidence: Selection) -> None:
        """Drop paraphrases of pairs in `avoid` and of earlier proposals."""
        proposals = found.proposals
        repeated = await self._repeated(proposals, avoid, evidence)
        for index, (pair, reason) in repeated.items():
            found.drop(proposals[index], pair, reason)
        found.proposals = [proposal for index, proposal in enumerate(proposals) if index not in repeated]

    async def _repeated(
        self, proposals: Sequence[Proposal], avoid: Sequence[Pair], evidence: Selection
    ) -> dict[int, tuple[Pair, str]]:
        """Return which proposals repeat which pair, by the model's decision and the recorded verdicts."""
        similar = {
            f"{index}.{rank}": (index, pair)
            for index, proposal in enumerate(proposals)
            for rank, pair in enumerate(
                shortlist(proposal, [*avoid, *(p.as_pair() for p in proposals[:index])], self._settings.similarity)
            )
        }
        decided = await self._decide(proposals, similar) if similar else {}
        found: dict[int, tuple[Pair, str]] = {}
        for key, (index, pair) in similar.items():
            agreed = verdict_match(proposals[index], pair.rubric.id, evidence.verdicts)
            says_same = decided.get(key)
            if repeats(says_same, agreed):
                word = "the model says so" if says_same else "the model does not say"
                reason = f"repeats {pair.rubric.criteria_text!r}: {word}, {agreed}"
                found[index] = min(found.get(index, (pair, reason)), (pair, reason), key=lambda known: _away(known[0]))
            elif says_same:
                self._observe("reflection.refuted", {"reason": f"{pair.rubric.id} called the same, but {agreed}"})
        return found

    async def _decide(self, proposals: Sequence[Proposal], similar: Mapping[str, tuple[int, Pair]]) -> dict[str, bool]:
        """Return the model's decision on each similar pair; undecided pairs are left out."""
        pairs = [
            {"pair_id": key, "first": _criterion(proposals[index].as_pair()), "second": _criterion(pair)}
            for key, (index, pair) in similar.items()
        ]
        call = digest(to_json([self._salt, pairs]))
        prompt = render(Template.DUPLICATE_CHECK, {"call": call, "pairs": pairs}, shape=same_lines(list(similar)))
        reply = await self._client.ask(prompt)
        if isinstance(reply, Unanswered):
            return {}
        decided = parse_duplicates(reply.text, list(similar))
        self._report(prompt, reply, len(decided), [], "")
        return decided

    async def _rewrite(self, pair: Pair, failures: Sequence[RefinementRecord]) -> Rewrite:
        shown = fit(failures, refinement_view, self._budget)
        rubric, skill = pair.rubric, pair.skill
        values: dict[str, object] = {
            "criteria_text": rubric.criteria_text,
            "observable_signals": [PROVENANCE],
            "applicability_condition": rubric.applicability_condition,
            "rule_text": rubric.rule_text,
            "skill_text": skill.text,
            "revision": skill.revision,
            "earlier_skill_texts": list(skill.earlier),
            "evidence_selected_count": len(shown),
            "failing_evidence": shown,
        }
        forbidden = [rubric.id, *(str(view["evidence_id"]) for view in shown)]
        rejections: list[Rejection] = []
        refused: list[dict[str, object]] = []
        for attempt in range(self._settings.calls.format_attempts):
            prompt = self._prompt(Template.SKILL_REFINEMENT, values, attempt, refused)
            reply = await self._client.ask(prompt)
            if isinstance(reply, Unanswered):
                return Rewrite(None, str(reply), tuple(rejections))
            text, reason = parse_rewrite(reply.text, forbidden)
            if text is not None and (repeated := _said_before(text.strip(), skill)):
                text, reason = None, repeated
            self._report(prompt, reply, int(text is not None), [], reason)
            if text is not None:
                return Rewrite(text.strip(), "", tuple(rejections))
            rejections.append(Rejection(reply.text[:300], f"rewrite of {rubric.id}: {reason}"))
            refused = [{"reply": reply.text[:_QUOTED_CHARS], "reason": reason}]
        return Rewrite(None, reason, tuple(rejections))

    def _report(self, prompt: Prompt, reply: ModelReply, accepted: int, rejected: list[str], unreadable: str) -> None:
        self._observe(
            "reflection.reply",
            {
                "template": prompt.template.value,
                "template_hash": reply.template_hash,
                "prompt_hash": prompt.hash,
                "model": reply.model,
                "cached": reply.cached,
                "nano_usd": reply.nano_usd,
                "seconds": reply.seconds,
                "accepted": accepted,
                "rejected": rejected,
                "unreadable": unreadable,
            },
        )


def _said_before(text: str, skill: Skill) -> str:
    """Return why a rewrite repeats this or an earlier revision; empty for new text."""
    if text == skill.text.strip():
        return "the rewrite changes nothing"
    return f"the rewrite is revision {skill.earlier.index(text)} again" if text in skill.earlier else ""


def _away(pair: Pair) -> bool:
    """Sort key: pairs in the pool before retired ones."""
    return pair.retired is not None


def _named(covered: Sequence[Pair]) -> list[Pair]:
    """Return the pairs to list in a prompt: the pool, and the most recently retired."""
    away = sorted((pair for pair in covered if _away(pair)), key=lambda pair: pair.retired or 0)
    return [*(pair for pair in covered if not _away(pair)), *away[-_RETIRED_NAMED:]]


def _left(pair: Pair) -> dict[str, int]:
    """Return the iteration after which a retired pair left."""
    return {} if pair.retired is None else {"retired_before_step": pair.retired}


def _criterion(pair: Pair) -> dict[str, str]:
    rubric = pair.rubric
    return {
        "criteria_text": rubric.criteria_text,
        "issue_tag": rubric.issue_tag,
        "capability_tag": rubric.capability.value,
        "applicability_condition": rubric.applicability_condition,
        "rubric_rule_text": rubric.rule_text,
    }
