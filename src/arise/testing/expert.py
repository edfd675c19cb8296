"""An expert behind HTTP: answers the paper's prompts with any judge and reflector, e.g. the offline analyst.

It reads only the request, as a model would. Only the rubric's tag and criterion, which the judge's prompt does not
contain, come from `known` or from pairs it wrote itself.
"""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from arise.llm.first_call.first_call import FIRST_CALL
from arise.llm.judge.canaries import known_answer
from arise.llm.reflection.evidence_view import item_view
from arise.ports import Judge, Reflector
from arise.testing.annotating import annotate
from arise.testing.fake_llm import Action, Ask, Say
from arise.types import (
    Capability,
    Diagnostic,
    DiagnosticItem,
    DiagnosticKind,
    GenerationRecord,
    Observation,
    Pair,
    Pool,
    Proposal,
    RefinementRecord,
    Rollout,
    Rubric,
    Selection,
    ShownSkill,
    Skill,
    StopReason,
    Task,
    ToolCall,
    Trajectory,
    Turn,
    Verdict,
    VerifierOutcome,
)


class Expert:
    """A script for `FakeLLM`: `FakeLLM(Expert(judge, reflector))`."""

    def __init__(self, judge: Judge, reflector: Reflector, known: Iterable[Rubric] = ()) -> None:
        self._judge, self._reflector = judge, reflector
        self._rubrics = {rubric.rule_text: rubric for rubric in known}

    async def __call__(self, ask: Ask) -> Action:
        data = ask.data
        if "rubrics" in data:
            text = await self._evaluate(data, "`reason`" in ask.system)
        elif FIRST_CALL in data:
            text = "ok"
        elif "sample_result" in data:
            text = await self._analyse(data)
        elif "max_items" in data:
            text = await self._generate(data)
        elif "previous_skill" in data:
            text = await self._refine(data)
        elif "pairs" in data:
            text = "\n".join(json.dumps({"pair_id": pair["pair_id"], "same": False}) for pair in data["pairs"])
        else:
            text = json.dumps(annotate(data))
        return Say(text, prompt_tokens=len(ask.system + ask.user) // 4, completion_tokens=len(text) // 4)

    async def _evaluate(self, data: dict[str, Any], reasons: bool) -> str:
        task, rollout = _rollout(data["sample_result"], data["call"])
        turns = len(rollout.trajectory.turns)
        asked = [self._rubric(entry) for entry in data["rubrics"]]
        known = {rubric.id: known_answer(rubric.rule_text, turns) for rubric in asked}
        rest = [self._rubric(entry) for entry in data.get("rest_of_pool", ())]
        pool = _pool([r for r in asked if known[r.id] is None] + rest)
        judgment = await self._judge.judge(task, rollout, pool)
        lines = []
        for rubric in asked:
            verdict = known[rubric.id] or judgment.verdicts.get(rubric.id)
            if verdict is not None:
                why = grounds(judgment.reasons.get(rubric.id, "")) if reasons else {}
                lines.append(verdict_line(rubric.id, verdict) | why)
        if "diagnostics_schema" in data:
            lines.append({"diagnostics": _diagnostics(judgment.diagnostic)})
        return "\n".join(json.dumps(line) for line in lines)

    async def _analyse(self, data: dict[str, Any]) -> str:
        task, rollout = _rollout(data["sample_result"], data["call"])
        judgment = await self._judge.judge(task, rollout, Pool())
        return json.dumps({"diagnostics": _diagnostics(judgment.diagnostic)})

    async def _generate(self, data: dict[str, Any]) -> str:
        avoid = [self._learn(_avoided(n, entry)) for n, entry in enumerate(data["avoid_criteria"])]
        selection = Selection(
            tuple(_record(entry) for entry in data["evidence"]),
            data["evidence_total_count"],
            data["evidence_with_generation_diagnostics_count"],
        )
        reflection = await self._reflector.propose(selection, avoid, data["max_items"], data["generation_round"] - 1)
        for proposal in reflection.proposals:
            self._learn(proposal.as_pair())
        # The contract requires contrast evidence, even for a criterion that only returns.
        back = [again.proposal for again in reflection.returns if again.proposal.contrast_refs]
        return json.dumps({"items": [_pair_item(proposal) for proposal in (*reflection.proposals, *back)]})

    async def _refine(self, data: dict[str, Any]) -> str:
        entry = {**data["rubric"], "rubric_id": "refined"}
        rubric = self._rubric(entry)
        before = data["previous_skill"]
        pair = Pair(
            rubric, Skill(before["skill_text"], True, before["revision"], earlier=tuple(before["earlier_skill_texts"]))
        )
        failures = []
        for shown in data["failing_evidence"]:
            context = shown["outcome_context"]
            outcome = VerifierOutcome(context["verifier_success"], context["score"]) if context else None
            failures.append(RefinementRecord(_record(shown), outcome))
        rewrite = await self._reflector.rewrite(pair, failures)
        return json.dumps({"skill_text": rewrite.text}) if rewrite.text is not None else f"no rewrite: {rewrite.reason}"

    def _rubric(self, entry: dict[str, Any]) -> Rubric:
        known = self._rubrics.get(entry["rule_text"])
        tag, capability = (known.issue_tag, known.capability) if known else ("", Capability.EXECUTION)
        criteria = known.criteria_text if known else ""
        condition = entry["applicability_condition"]
        return Rubric(entry["rubric_id"], criteria, tag, capability, condition, entry["rule_text"])

    def _learn(self, pair: Pair) -> Pair:
        self._rubrics[pair.rubric.rule_text] = pair.rubric
        return pair


def _rollout(sample: dict[str, Any], call: str) -> tuple[Task, Rollout]:
    task = Task("judged", sample["task_instruction"], (), sample["task_domain"], "", tuple(sample["task_skills"]))
    seen = [turn for turn in sample["llm_interaction_trajectory"] if "turn" in turn]
    turns = tuple(
        Turn(
            turn["agent"],
            tuple(ToolCall(c["name"], c["arguments"], c["id"]) for c in turn.get("calls", ())),
            tuple(
                Observation(o["text"], o["error"], o["truncated"], o["call_id"]) for o in turn.get("observations", ())
            ),
            turn.get("reasoning", ""),
        )
        for turn in seen
    )
    trajectory = Trajectory(call, task.id, turns, StopReason(sample["stop_reason"]), sample["system_prompt"])
    return task, Rollout(trajectory, sample.get("verifier_score"), sample.get("verifier_success"))


def _pool(rubrics: Sequence[Rubric]) -> Pool:
    return Pool(tuple(Pair(rubric, Skill("")) for rubric in rubrics), version=1, born=len(rubrics))


def grounds(reason: str) -> dict[str, Any]:
    """Return the turn and the text of a reason, as a judge that was asked for reasons adds them to its line."""
    turn = re.search(r"\bturn (\d+)", reason)
    return {"turn": int(turn[1]) if turn else None, "reason": reason}


def verdict_line(rubric_id: str, verdict: Verdict) -> dict[str, Any]:
    """Format a verdict as the contract requires."""
    applies = verdict is not Verdict.NOT_APPLICABLE
    return {"rubric_id": rubric_id, "applicable": applies, "verdict": verdict.value if applies else None}


def _diagnostics(diagnostic: Diagnostic | None) -> dict[str, Any]:
    if diagnostic is None:
        return {"unavailable": True}
    return {
        "covered_by_active_rubrics": diagnostic.covered_by_active_rubrics,
        "rubric_gap_summary": diagnostic.rubric_gap_summary,
        "uncovered_issues": [item_view(item) for item in diagnostic.uncovered_issues],
        "positive_uncovered_strategies": [item_view(item) for item in diagnostic.positive_uncovered_strategies],
    }


def _items(entries: Iterable[dict[str, Any]]) -> tuple[DiagnosticItem, ...]:
    return tuple(
        DiagnosticItem(
            DiagnosticKind(e["kind"]),
            e["issue_tag"],
            e["text"],
            tuple(e["observable_signals"]),
            tuple(e["related_rubric_ids"]),
        )
        for e in entries
    )


def _record(entry: dict[str, Any]) -> GenerationRecord:
    diagnostics, usage = entry["coevolution_rubric_diagnostics"], entry["skill_usage_summary"]
    return GenerationRecord(
        evidence_id=entry["evidence_id"],
        iteration=entry["step"],
        pool_version=entry["coevolution_pool_version"],
        task_types=tuple(entry["task"]["task_types"]),
        domain=entry["task"]["domain"],
        uncovered_issues=_items(diagnostics["uncovered_issues"]),
        positive_uncovered_strategies=_items(diagnostics["positive_uncovered_strategies"]),
        shown_skills=tuple(ShownSkill(s["skill_id"], s["revision"]) for s in usage["injected"]),
        provided_skills=tuple(usage["provided"]),
        group_size=entry["attempt_group_summary"]["group_size"],
        attempts_with_diagnostics=entry["attempt_group_summary"]["attempts_with_diagnostics"],
    )


def _avoided(number: int, entry: dict[str, Any]) -> Pair:
    capability = Capability(entry["capability_tag"])
    texts = (entry["applicability_condition"], entry["rubric_rule_text"])
    rubric = Rubric(f"avoided-{number}", entry["criteria_text"], entry["issue_tag"], capability, *texts)
    return Pair(rubric, Skill(""), entry.get("retired_before_step"))


def _pair_item(proposal: Proposal) -> dict[str, Any]:
    return {
        "criteria_text": proposal.criteria_text,
        "issue_tag": proposal.issue_tag,
        "capability_tag": proposal.capability.value,
        "abstraction_level": "global",
        "issue_evidence_refs": list(proposal.issue_refs),
        "contrast_evidence_refs": list(proposal.contrast_refs),
        "observable_signals": ["coevolution_rubric_diagnostics"],
        "applicability_condition": proposal.applicability_condition,
        "rubric_rule_text": proposal.rule_text,
        "skill_text": proposal.skill_text,
    }
