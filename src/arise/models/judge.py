"""The judge J behind an endpoint: verdicts by rubric and what no rubric covers, for one rollout (App. "Prompts").

Rubrics go in batches; one request sees the whole pool and gives the diagnostics. What a model gets wrong becomes an
absence with its reason. Must never turn a missing answer into a verdict.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b

from arise.config_models import ModelJudge
from arise.models.canaries import EVERY_TASK, Canary, canaries
from arise.models.client import Client, Observe, Reply, Unanswered
from arise.models.prompt import Prompt, Template, render, template_hash, to_json
from arise.models.stops import RunStop
from arise.models.trace import Trace, render_trace
from arise.models.wire import DiagnosticReply, VerdictReply, parse_diagnostics, parse_verdicts
from arise.types import Diagnostic, DiagnosticItem, Judgment, Pool, Rollout, Rubric, Task, Verdict

NO_DIAGNOSTICS = "not asked for"


@dataclass
class _Part:
    """What has been learned about one batch so far."""

    verdicts: dict[str, Verdict] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    diagnostic: Diagnostic | None = None
    diagnostic_absent: str = NO_DIAGNOSTICS
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Question:
    """One evaluation request: aliases that only this request knows, and its canaries."""

    prompt: Prompt
    aliases: dict[str, str]
    canaries: tuple[Canary, ...]
    pool_aliases: dict[str, str]


class LanguageModelJudge:
    """`ports.Judge` over a client; raises only what stops a run (budget, changed or unusable judge)."""

    def __init__(self, client: Client, settings: ModelJudge, *, observe: Observe | None = None, salt: str = "") -> None:
        self._client, self._settings, self._salt = client, settings, salt
        self._observe = observe or (lambda _name, _fields: None)
        endpoint = settings.endpoint
        self._trace_budget = int(endpoint.context_tokens * settings.chars_per_token * settings.trace_share)

    @property
    def identity(self) -> str:
        """The model and the contract of its prompts, e.g. `deepseek-v4-flash/9ab34c0d`."""
        contract = template_hash(Template.RUBRIC_EVALUATION) + template_hash(Template.INITIAL_ANALYSIS)
        return f"{self._settings.endpoint.model}/{_digest(contract)[:8]}"

    async def judge(self, task: Task, rollout: Rollout, pool: Pool) -> Judgment:
        """Verdicts for the whole pool and diagnostics; on an empty pool the initial analysis only."""
        try:
            return await self._judge(task, rollout, pool)
        except RunStop:
            raise
        except Exception as error:  # the boundary: a fault of ours is an absence too, and counted
            reason = f"internal: {type(error).__name__}: {str(error)[:200]}"
            self._observe("judge.internal", {"reason": reason, "trajectory": rollout.trajectory.id})
            return self._nothing(pool, reason)

    async def _judge(self, task: Task, rollout: Rollout, pool: Pool) -> Judgment:
        trace = render_trace(task, rollout, pool, self._trace_budget)
        if isinstance(trace, str):
            return self._nothing(pool, f"refused: {trace}")
        turns = len(rollout.trajectory.turns)
        if not pool.pairs:
            parts = [await self._analyse(trace, rollout.trajectory.id, pool)]
        else:
            size = self._settings.rubrics_per_call
            batches = [pool.rubrics[i : i + size] for i in range(0, len(pool), size)]
            parts = await asyncio.gather(
                *(self._evaluate(trace, turns, batch, pool, index == 0) for index, batch in enumerate(batches))
            )
        merged = _Part(notes=list(trace.notes))
        for part in parts:
            merged.verdicts |= part.verdicts
            merged.absent |= part.absent
            merged.notes += part.notes
        return Judgment(
            pool_version=pool.version,
            judge=self.identity,
            verdicts=merged.verdicts,
            absent=merged.absent,
            diagnostic=parts[0].diagnostic,
            diagnostic_absent=parts[0].diagnostic_absent,
            notes=tuple(merged.notes),
        )

    def _nothing(self, pool: Pool, reason: str) -> Judgment:
        absent = {rubric.id: reason for rubric in pool.rubrics}
        return Judgment(pool.version, self.identity, absent=absent, diagnostic_absent=reason)

    async def _analyse(self, trace: Trace, trajectory_id: str, pool: Pool) -> _Part:
        """The initial analysis; an unreadable reply is asked for again under another call number."""
        part = _Part()
        for attempt in range(self._settings.calls.format_attempts):
            call = self._nonce(trajectory_id, attempt, to_json(trace.sample))
            prompt = render(Template.INITIAL_ANALYSIS, {"call": call, "sample_result": trace.sample})
            reply = await self._client.ask(prompt, window=pool.version)
            if isinstance(reply, Unanswered):
                part.diagnostic_absent = str(reply)
                break
            parsed = parse_diagnostics(reply.text)
            self._report(prompt, reply, VerdictReply({}, {}, parsed))
            part.diagnostic, part.diagnostic_absent = parsed.diagnostic, parsed.absent
            part.notes += [f"diagnostics: {reason}" for reason in parsed.dropped]
            if parsed.diagnostic is not None:
                break
        return part

    async def _evaluate(
        self, trace: Trace, turns: int, batch: Sequence[Rubric], pool: Pool, diagnostics: bool
    ) -> _Part:
        """One batch; what is missing from a reply is asked for again, in a smaller request."""
        part = _Part(diagnostic_absent="" if diagnostics else NO_DIAGNOSTICS)
        missing, wanted = list(batch), diagnostics
        for attempt in range(self._settings.calls.format_attempts):
            question = self._question(trace, turns, missing, pool, wanted, attempt)
            reply = await self._client.ask(question.prompt, window=pool.version)
            if isinstance(reply, Unanswered):
                part.absent |= {rubric.id: str(reply) for rubric in missing}
                if wanted:
                    part.diagnostic_absent = str(reply)
                break
            parsed = self._read(question, reply, wanted)
            if _caught(question.canaries, parsed):
                self._quarantine(part, missing, wanted, reply)
                break
            _take(part, parsed, question, missing, wanted)
            missing = [rubric for rubric in missing if rubric.id not in part.verdicts]
            wanted = wanted and part.diagnostic is None
            if not missing and not wanted:
                break
        return part

    def _question(
        self, trace: Trace, turns: int, batch: Sequence[Rubric], pool: Pool, diagnostics: bool, attempt: int
    ) -> _Question:
        ids = [rubric.id for rubric in batch]
        nonce = self._nonce(pool.version, ids, attempt, diagnostics, to_json(trace.sample))
        pool_aliases = {f"{rubric.id}-{nonce[:6]}": rubric.id for rubric in pool.rubrics}
        entries = {f"{rubric.id}-{nonce[:6]}": (rubric.applicability_condition, rubric.rule_text) for rubric in batch}
        names = (f"r{pool.born + 1:03d}-{nonce[:6]}", f"r{pool.born + 2:03d}-{nonce[:6]}")
        birds = canaries(nonce, names, turns) if self._settings.canaries else ()
        entries |= {bird.id: (EVERY_TASK, bird.rule_text) for bird in birds}
        order = sorted(entries, key=lambda alias: _digest(nonce + alias))
        values: dict[str, object] = {
            "call": nonce,
            "pool_version": pool.version,
            "rubrics": [_entry(alias, *entries[alias]) for alias in order],
            "sample_result": trace.sample,
        }
        counts = {"rubric_count": str(len(order))}
        if diagnostics:
            rest = [rubric for rubric in pool.rubrics if rubric.id not in ids]
            values["rest_of_pool"] = [
                _entry(f"{rubric.id}-{nonce[:6]}", rubric.applicability_condition, rubric.rule_text) for rubric in rest
            ]
            counts["rubric_count_plus_one"] = str(len(order) + 1)
        prompt = render(Template.RUBRIC_EVALUATION, values, counts, {"diagnostics": diagnostics})
        aliases = {f"{rubric_id}-{nonce[:6]}": rubric_id for rubric_id in ids}
        return _Question(prompt, aliases, birds, pool_aliases)

    def _read(self, question: _Question, reply: Reply, diagnostics: bool) -> VerdictReply:
        asked = [*question.aliases, *(bird.id for bird in question.canaries)]
        parsed = parse_verdicts(reply.text, asked, diagnostics, question.pool_aliases)
        self._report(question.prompt, reply, parsed)
        return parsed

    def _quarantine(self, part: _Part, missing: Sequence[Rubric], diagnostics: bool, reply: Reply) -> None:
        reason = "quarantined: a control question with a known answer was answered wrongly"
        part.absent |= {rubric.id: reason for rubric in missing}
        if diagnostics:
            part.diagnostic_absent = reason
        self._observe("judge.quarantined", {"model": reply.model, "rubrics": len(missing)})

    def _report(self, prompt: Prompt, reply: Reply, parsed: VerdictReply) -> None:
        self._observe(
            "judge.reply",
            {
                "template": prompt.template.value,
                "template_hash": reply.template_hash,
                "prompt_hash": prompt.hash,
                "model": reply.model,
                "finish": reply.finish,
                "cached": reply.cached,
                "nano_usd": reply.nano_usd,
                "seconds": reply.seconds,
                "requests": reply.requests,
                "verdicts": len(parsed.verdicts),
                "absent": len(parsed.absent),
                "problems": [*parsed.problems, *parsed.diagnostics.dropped],
            },
        )

    def _nonce(self, *parts: object) -> str:
        """Names a call so that text inside a trajectory cannot: it depends on the whole trace and on the run's salt."""
        return _digest(to_json([self._salt, *parts]))[:16]


def _entry(alias: str, condition: str, rule: str) -> dict[str, object]:
    return {
        "rubric_id": alias,
        "rubric_version": 1,
        "source_criteria_id": f"criteria-{alias}",
        "scope": "global",
        "applicability_condition": condition,
        "rule_text": rule,
        "rubric_weight": 1.0,
    }


def _caught(birds: Sequence[Canary], parsed: VerdictReply) -> bool:
    """Whether a canary was answered, and answered wrongly; an unanswered one is a matter of format."""
    return any(parsed.verdicts.get(bird.id, bird.answer) is not bird.answer for bird in birds)


def _take(part: _Part, parsed: VerdictReply, question: _Question, missing: Sequence[Rubric], wanted: bool) -> None:
    """Adds what a reply settles to a part; without its canaries a reply settles nothing."""
    unchecked = [bird.id for bird in question.canaries if bird.id not in parsed.verdicts]
    for alias, rubric_id in question.aliases.items():
        part.absent.pop(rubric_id, None)
        if unchecked:
            part.absent[rubric_id] = f"control question: {parsed.absent[unchecked[0]]}"
        elif alias in parsed.verdicts:
            part.verdicts[rubric_id] = parsed.verdicts[alias]
        else:
            part.absent[rubric_id] = parsed.absent[alias]
    part.notes += list(parsed.problems[:10])
    if wanted and not unchecked:
        found = _with_real_ids(parsed.diagnostics, question.pool_aliases)
        part.diagnostic, part.diagnostic_absent = found.diagnostic, found.absent
        part.notes += [f"diagnostics: {reason}" for reason in found.dropped]
    elif wanted:
        part.diagnostic_absent = f"control question: {parsed.absent[unchecked[0]]}"
    assert len(missing) == len(question.aliases), "every rubric asked about has its alias"


def _with_real_ids(found: DiagnosticReply, names: dict[str, str]) -> DiagnosticReply:
    if found.diagnostic is None:
        return found

    def real(items: tuple[DiagnosticItem, ...]) -> tuple[DiagnosticItem, ...]:
        return tuple(
            replace(item, related_rubric_ids=tuple(names[i] for i in item.related_rubric_ids if i in names))
            for item in items
        )

    diagnostic = found.diagnostic
    issues, strategies = real(diagnostic.uncovered_issues), real(diagnostic.positive_uncovered_strategies)
    mapped = replace(diagnostic, uncovered_issues=issues, positive_uncovered_strategies=strategies)
    return replace(found, diagnostic=mapped)


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=16).hexdigest()
