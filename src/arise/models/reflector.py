"""The reflection model G_ref behind an endpoint: new pairs from evidence (Eq. 4), skills rewritten (Eq. 8).

Each item is accepted or rejected by itself, and every rejection keeps its reason. Must never see or pass on an outcome
when it generates, and never let a text into a skill that the linter refuses.
"""

from collections.abc import Mapping, Sequence

from arise.config_models import ModelReflector
from arise.models.client import Client, Observe, Reply, Unanswered
from arise.models.evaluation import digest
from arise.models.evidence_view import fit, generation_view, refinement_view
from arise.models.near_duplicates import agreement, repeats, same_words, shortlist
from arise.models.prompt import Prompt, Template, render, to_json
from arise.models.stops import RunStop
from arise.models.wire import PairReply, parse_duplicates, parse_pairs, parse_rewrite
from arise.models.wire.pairs import PROVENANCE, evidence_text
from arise.types import Pair, Proposal, RefinementRecord, Reflection, Rejection, Rewrite, Selection

_EVIDENCE_SHARE = 0.6


class LanguageModelReflector:
    """`ports.Reflector` over a client; a call that fails gives no pairs and says why."""

    def __init__(
        self, client: Client, settings: ModelReflector, *, observe: Observe | None = None, salt: str = ""
    ) -> None:
        self._client, self._settings, self._salt = client, settings, salt
        self._observe = observe or (lambda _name, _fields: None)
        self._budget = int(settings.endpoint.context_tokens * settings.chars_per_token * _EVIDENCE_SHARE)

    async def propose(
        self, evidence: Selection, avoid: Sequence[Pair], max_items: int, round_number: int
    ) -> Reflection:
        """One round: at most `max_items` pairs that repeat nothing in `avoid`."""
        try:
            found = await self._generate(evidence, avoid, max_items, round_number)
            return await self._without_repeats(found, avoid, evidence)
        except RunStop:
            raise
        except Exception as error:  # the boundary: a fault of ours costs this round, not the run
            return self._nothing(f"internal: {type(error).__name__}: {str(error)[:200]}")

    async def rewrite(self, pair: Pair, failures: Sequence[RefinementRecord]) -> Rewrite:
        """A new text for a skill whose rubric still fails, or the reason to keep the old one."""
        try:
            return await self._rewrite(pair, failures)
        except RunStop:
            raise
        except Exception as error:  # the boundary, as above
            return Rewrite(None, f"internal: {type(error).__name__}: {str(error)[:200]}")

    async def _generate(
        self, evidence: Selection, avoid: Sequence[Pair], max_items: int, round_number: int
    ) -> PairReply:
        shown = fit(evidence.chosen, generation_view, self._budget)
        values: dict[str, object] = {
            "max_items": max_items,
            "evidence_total_count": evidence.total,
            "evidence_with_generation_diagnostics_count": evidence.with_diagnostics,
            "evidence_selected_count": len(shown),
            "evidence_omitted_count": evidence.with_diagnostics - len(shown),
            "generation_round": round_number + 1,
            "avoid_criteria_count": len(avoid),
            "avoid_criteria": [_criterion(pair) for pair in avoid],
            "evidence": shown,
        }
        ids = {str(view["evidence_id"]) for view in shown}
        found = PairReply(unreadable="not asked")
        for attempt in range(self._settings.calls.format_attempts):
            call = digest(to_json([self._salt, attempt, values]))
            prompt = render(Template.PAIR_GENERATION, values | {"call": call})
            reply = await self._client.ask(prompt)
            if isinstance(reply, Unanswered):
                return PairReply(unreadable=str(reply))
            found = parse_pairs(reply.text, ids, max_items)
            self._report(prompt, reply, len(found.proposals), [r.reason for r in found.rejections], found.unreadable)
            if not found.unreadable:
                break
        return found

    async def _without_repeats(self, found: PairReply, avoid: Sequence[Pair], evidence: Selection) -> Reflection:
        if found.unreadable:
            return self._nothing(found.unreadable)
        rejections = list(found.rejections)
        fresh: list[Proposal] = []
        for proposal in found.proposals:
            known = [(pair.rubric.criteria_text, pair.rubric.rule_text) for pair in avoid]
            known += [(earlier.criteria_text, earlier.rule_text) for earlier in fresh]
            if any(same_words(proposal, *texts) for texts in known):
                rejections.append(_rejected(proposal, "repeats a criterion word for word"))
            else:
                fresh.append(proposal)
        repeated = await self._repeated(fresh, avoid, evidence) if self._settings.near_duplicates == "model" else {}
        for index, reason in repeated.items():
            rejections.append(_rejected(fresh[index], reason))
        kept = tuple(proposal for index, proposal in enumerate(fresh) if index not in repeated)
        return Reflection(kept, tuple(rejections))

    async def _repeated(
        self, proposals: Sequence[Proposal], avoid: Sequence[Pair], evidence: Selection
    ) -> dict[int, str]:
        """Which proposals repeat a similar pair, by the model's word and by the verdicts on record."""
        similar = {
            f"{index}.{rank}": (index, pair)
            for index, proposal in enumerate(proposals)
            for rank, pair in enumerate(
                shortlist(proposal, [*avoid, *(p.as_pair() for p in proposals[:index])], self._settings.similarity)
            )
        }
        decided = await self._decide(proposals, similar) if similar else {}
        found = {}
        for key, (index, pair) in similar.items():
            agreed = agreement(proposals[index], pair.rubric.id, evidence.verdicts)
            says_same = decided.get(key)
            if repeats(says_same, agreed):
                word = "the model says so" if says_same else "the model does not say"
                found[index] = f"repeats {pair.rubric.criteria_text!r}: {word}, {agreed}"
            elif says_same:
                self._observe("reflection.refuted", {"reason": f"{pair.rubric.id} called the same, but {agreed}"})
        return found

    async def _decide(self, proposals: Sequence[Proposal], similar: Mapping[str, tuple[int, Pair]]) -> dict[str, bool]:
        """The model's word on each similar pair; one it does not settle is not there."""
        pairs = [
            {"pair_id": key, "first": _criterion(proposals[index].as_pair()), "second": _criterion(pair)}
            for key, (index, pair) in similar.items()
        ]
        call = digest(to_json([self._salt, pairs]))
        prompt = render(Template.DUPLICATE_CHECK, {"call": call, "pairs": pairs})
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
            "evidence_selected_count": len(shown),
            "failing_evidence": shown,
        }
        forbidden = [rubric.id, *(str(view["evidence_id"]) for view in shown)]
        reason = "not asked"
        for attempt in range(self._settings.calls.format_attempts):
            call = digest(to_json([self._salt, attempt, values]))
            prompt = render(Template.SKILL_REFINEMENT, values | {"call": call})
            reply = await self._client.ask(prompt)
            if isinstance(reply, Unanswered):
                return Rewrite(None, str(reply))
            text, reason = parse_rewrite(reply.text, forbidden)
            self._report(prompt, reply, int(text is not None), [], reason)
            if text is not None:
                same = text.strip() == skill.text.strip()
                return Rewrite(None, "the rewrite changes nothing") if same else Rewrite(text.strip())
        return Rewrite(None, reason)

    def _nothing(self, reason: str) -> Reflection:
        self._observe("reflection.nothing", {"reason": reason})
        return Reflection((), (Rejection("", reason),))

    def _report(self, prompt: Prompt, reply: Reply, accepted: int, rejected: list[str], unreadable: str) -> None:
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


def _rejected(proposal: Proposal, reason: str) -> Rejection:
    evidence = evidence_text(list(proposal.issue_refs), list(proposal.contrast_refs))
    return Rejection(proposal.criteria_text, f"{reason} ({evidence})")


def _criterion(pair: Pair) -> dict[str, str]:
    rubric = pair.rubric
    return {
        "criteria_text": rubric.criteria_text,
        "issue_tag": rubric.issue_tag,
        "capability_tag": rubric.capability.value,
        "applicability_condition": rubric.applicability_condition,
        "rubric_rule_text": rubric.rule_text,
    }
