"""The judge J behind an endpoint: verdicts by rubric and what no rubric covers, for one rollout (App. "Prompts").

Rubrics go in batches; one request sees the whole pool and gives the diagnostics. Invalid output becomes
an absence with its reason. Must never turn a missing answer into a verdict.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from arise.config.llm import ModelJudge
from arise.llm.client.client import Client, ModelReply, Observe, Unanswered
from arise.llm.client.stops import RunStop
from arise.llm.judge.control import control_question, right
from arise.llm.judge.evaluation import Question, caught, digest, question, settled
from arise.llm.judge.trace import RenderedTrace, render_trace, trace_room
from arise.llm.prompts.prompt import Prompt, Template, render, template_hash, to_json
from arise.llm.prompts.shapes import diagnostics_object
from arise.llm.wire import VerdictReply, parse_diagnostics, parse_verdicts
from arise.types import Diagnostic, Judgment, Pool, Rollout, Rubric, Task, Verdict

NO_DIAGNOSTICS = "not asked for"
CONTROLS = 3
"""Wordings in which the control questions are repeated on a neutral trace for a judge that missed one."""
QUARANTINE_REASON = (
    "quarantined: a control question was answered wrongly here and rightly on a neutral trace: "
    "text in the trajectory may have steered the judge"
)
WEAK_REASON = "weak: the judge answers control questions wrongly on a neutral trace too"


@dataclass
class _Part:
    """Verdicts of one batch so far."""

    verdicts: dict[str, Verdict] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    diagnostic: Diagnostic | None = None
    diagnostic_absent: str = NO_DIAGNOSTICS
    notes: list[str] = field(default_factory=list)
    reasons: dict[str, str] = field(default_factory=dict)


class LanguageModelJudge:
    """`ports.Judge` over a client; raises only what stops a run (budget, changed or unusable judge)."""

    def __init__(self, client: Client, settings: ModelJudge, *, observe: Observe | None = None, salt: str = "") -> None:
        self._client, self._settings, self._salt = client, settings, salt
        self._observe = observe or (lambda _name, _fields: None)

    @property
    def identity(self) -> str:
        """The model and the contract of its prompts, e.g. `deepseek-v4-flash/9ab34c0d`, `... with reasons`."""
        contract = template_hash(Template.RUBRIC_EVALUATION) + template_hash(Template.INITIAL_ANALYSIS)
        return f"{self._settings.endpoint.model}/{digest(contract)[:8]}" + self._settings.reasons * " with reasons"

    async def judge(self, task: Task, rollout: Rollout, pool: Pool) -> Judgment:
        """Judge the whole pool and return diagnostics; an empty pool gets the initial analysis only."""
        try:
            return await self._judge(task, rollout, pool)
        except RunStop:
            raise
        except Exception as error:  # boundary: an internal error is an absence too, and counted
            reason = f"internal: {type(error).__name__}: {str(error)[:200]}"
            self._observe("judge.internal", {"reason": reason, "trajectory": rollout.trajectory.id})
            return self._nothing(pool, reason)

    async def _judge(self, task: Task, rollout: Rollout, pool: Pool) -> Judgment:
        if rollout.fault:
            return self._nothing(pool, f"not judged: {rollout.fault}")
        trace = render_trace(task, rollout, pool, self._room(pool))
        if isinstance(trace, str):
            return self._nothing(pool, f"refused: {trace}")
        turns = len(rollout.trajectory.turns)
        if not pool.pairs:
            parts = [await self._analyse(trace, pool)]
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
            merged.reasons |= part.reasons
        return Judgment(
            pool_version=pool.version,
            judge=self.identity,
            verdicts=merged.verdicts,
            absent=merged.absent,
            diagnostic=parts[0].diagnostic,
            diagnostic_absent=parts[0].diagnostic_absent,
            notes=tuple(merged.notes),
            reasons=merged.reasons,
        )

    def _room(self, pool: Pool) -> int:
        """Return the characters left for the trace after prompt, rubrics and reply."""
        rubrics = sum(len(rubric.rule_text) + len(rubric.applicability_condition) + 250 for rubric in pool.rubrics)
        return trace_room(self._settings.endpoint, self._settings.chars_per_token, rubrics)

    def _nothing(self, pool: Pool, reason: str) -> Judgment:
        absent = {rubric.id: reason for rubric in pool.rubrics}
        return Judgment(pool.version, self.identity, absent=absent, diagnostic_absent=reason)

    async def _analyse(self, trace: RenderedTrace, pool: Pool) -> _Part:
        """Run the initial analysis; retry an unreadable reply under another call number."""
        part = _Part()
        for attempt in range(self._settings.calls.format_attempts):
            call = digest(to_json([self._salt, attempt, trace.sample]))
            prompt = render(
                Template.INITIAL_ANALYSIS, {"call": call, "sample_result": trace.sample}, shape=diagnostics_object()
            )
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
        self, trace: RenderedTrace, turns: int, batch: Sequence[Rubric], pool: Pool, diagnostics: bool
    ) -> _Part:
        """Judge one batch; missing verdicts are requested again in a smaller request."""
        part = _Part(diagnostic_absent="" if diagnostics else NO_DIAGNOSTICS)
        missing, wanted = list(batch), diagnostics
        for attempt in range(self._settings.calls.format_attempts):
            asked = question(
                trace,
                turns,
                missing,
                pool,
                diagnostics=wanted,
                canary=self._settings.canaries,
                salt=f"{self._salt}/{attempt}",
                reasons=self._settings.reasons,
            )
            reply = await self._client.ask(asked.prompt, window=pool.version)
            if isinstance(reply, Unanswered):
                part.absent |= {rubric.id: str(reply) for rubric in missing}
                if wanted:
                    part.diagnostic_absent = str(reply)
                break
            parsed = self._read(asked, reply, wanted)
            if caught(asked.canaries, parsed):
                await self._quarantine(part, missing, wanted, reply, pool.version)
                break
            _take(part, asked, parsed, wanted)
            if reply.finish == "length":
                _mark_cut_off(part, self._settings.endpoint.max_tokens)
            missing = [rubric for rubric in missing if rubric.id not in part.verdicts]
            wanted = wanted and part.diagnostic is None
            if not missing and not wanted:
                break
        return part

    def _read(self, asked: Question, reply: ModelReply, diagnostics: bool) -> VerdictReply:
        ids = [*asked.aliases, *(bird.alias for bird in asked.canaries)]
        parsed = parse_verdicts(reply.text, ids, diagnostics, asked.pool_aliases, asked.turns)
        self._report(asked.prompt, reply, parsed)
        return parsed

    async def _quarantine(
        self, part: _Part, missing: Sequence[Rubric], diagnostics: bool, reply: ModelReply, window: int
    ) -> None:
        """Discard a reply; tell a weak judge from one that this trajectory steered."""
        weak = not await self._sound(reply.text, window)
        reason = WEAK_REASON if weak else QUARANTINE_REASON
        part.absent |= {rubric.id: reason for rubric in missing}
        if diagnostics:
            part.diagnostic_absent = reason
        name = "judge.weak" if weak else "judge.quarantined"
        self._observe(name, {"model": reply.model, "rubrics": len(missing), "reason": reason})

    async def _sound(self, said: str, window: int) -> bool:
        """Return whether the judge answers control questions correctly where nothing can steer it.

        The reply is recorded, so a run asks once in each wording; without an answer the judge counts as sound.
        """
        asked = control_question(f"{self._salt}/{int(digest(said), 16) % CONTROLS}")
        reply = await self._client.ask(asked.prompt, window=window)
        return isinstance(reply, Unanswered) or right(asked, reply.text) is True

    def _report(self, prompt: Prompt, reply: ModelReply, parsed: VerdictReply) -> None:
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


def _take(part: _Part, asked: Question, parsed: VerdictReply, diagnostics: bool) -> None:
    """Add a reply's verdicts to a part."""
    verdicts, absent, found = settled(asked, parsed)
    part.verdicts |= verdicts
    part.reasons |= {
        asked.aliases[name]: why for name, why in parsed.reasons.items() if asked.aliases.get(name) in verdicts
    }
    part.absent = {key: reason for key, reason in part.absent.items() if key not in verdicts} | absent
    part.notes += parsed.problems[:10]
    if diagnostics:
        part.diagnostic, part.diagnostic_absent = found.diagnostic, found.absent
        part.notes += [f"diagnostics: {reason}" for reason in found.dropped]


def _mark_cut_off(part: _Part, limit: int) -> None:
    """Add to the reason of each missing verdict that the reply was cut off."""
    reason = f"cut off: the reply reached max_tokens = {limit:,}"
    part.absent = dict.fromkeys(part.absent, reason)
    if part.diagnostic is None and part.diagnostic_absent not in ("", NO_DIAGNOSTICS):
        part.diagnostic_absent = reason
