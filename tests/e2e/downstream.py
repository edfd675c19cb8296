"""A downstream project's own parts, written with the public API only; copied into a separate package by the test."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from arise import (
    Advantages,
    AgentConfig,
    Capability,
    Diagnostic,
    DiagnosticItem,
    DiagnosticKind,
    Draw,
    DrawPath,
    Engine,
    Group,
    Judgment,
    Observation,
    Pair,
    Pool,
    Proposal,
    RefinementRecord,
    Reflection,
    Rewrite,
    Rollout,
    SamplingConfig,
    SamplingParams,
    Sandbox,
    Selection,
    ShownSkill,
    StopReason,
    Task,
    TokenRecord,
    ToolCall,
    Trajectory,
    Turn,
    Verdict,
    combined_advantages,
)


class Frontier:
    """Draws in proportion to p (1 - p) of each task's smoothed success rate."""

    def __init__(self, *, tasks: Sequence[Task], random: np.random.Generator, prior: int) -> None:
        self.random = random
        self.counts = {task.id: [1, prior] for task in tasks}

    def draw(self, count: int, version: int, unavailable: Collection[str] = ()) -> list[Draw]:  # noqa: ARG002
        ids = [task_id for task_id in self.counts if task_id not in unavailable]
        rate = np.array([passed / tried for passed, tried in (self.counts[task_id] for task_id in ids)])
        chance = rate * (1 - rate) / (rate * (1 - rate)).sum()
        chosen = self.random.choice(len(ids), min(count, len(ids)), replace=False, p=chance)
        return [Draw(ids[x], DrawPath.ADAPTIVE, float(chance[x])) for x in chosen]

    def observe(self, groups: Sequence[Group], pool: Pool, version: int) -> None:  # noqa: ARG002
        for group in groups:
            if group.complete:
                self.counts[group.task.id][0] += sum(bool(rollout.success) for rollout in group.rollouts)
                self.counts[group.task.id][1] += group.size

    def keep_only(self, pool: Pool) -> None:
        """Rubrics do not matter to this sampler."""

    def to_dict(self) -> dict[str, Any]:
        return {"ledger": self.counts, "generator": self.random.bit_generator.state}

    def restore(self, saved: Mapping[str, Any]) -> None:
        self.counts = {task_id: list(pair) for task_id, pair in saved["ledger"].items()}
        self.random.bit_generator.state = saved["generator"]


class CommandJudge:
    """Passes an attempt whose first command looks around."""

    identity = "command-judge/1"

    def __init__(self, *, seed: int) -> None:
        self.seed = seed

    async def judge(self, task: Task, rollout: Rollout, pool: Pool) -> Judgment:  # noqa: ARG002
        commands = [str(call.arguments["command"]) for turn in rollout.trajectory.turns for call in turn.calls]
        looked = bool(commands) and commands[0].startswith(("ls", "cat", "head"))
        verdict = Verdict.PASS if looked else Verdict.FAIL
        issue = DiagnosticItem(DiagnosticKind.FAILURE_GAP, "looks_first", "Acts without looking.", ("first command",))
        gap = Diagnostic(bool(pool.rubrics), "", () if pool.rubrics else (issue,))
        return Judgment(pool.version, self.identity, {rubric.id: verdict for rubric in pool.rubrics}, {}, gap)


class OneRubric:
    """Proposes the same rubric once."""

    def __init__(self, *, seed: int) -> None:
        self.seed = seed

    async def propose(
        self, evidence: Selection, avoid: Sequence[Pair], max_items: int, round_number: int
    ) -> Reflection:
        if avoid or not max_items or round_number:
            return Reflection()
        refs = tuple(record.evidence_id for record in evidence.chosen[:1])
        texts = ("Look before you act.", "looks_first", Capability.VERIFICATION, "Always.", "The first command looks.")
        return Reflection((Proposal(*texts, "List the files first.", refs, ()),))

    async def rewrite(self, pair: Pair, failures: Sequence[RefinementRecord]) -> Rewrite:  # noqa: ARG002
        return Rewrite(None, "this project keeps its skills")


class OutcomeOrRubrics:
    """The task reward where a group has both outcomes, else the rubrics."""

    def __init__(self, *, rubric_weight: float) -> None:
        self.rubric_weight = rubric_weight

    def __call__(self, group: Group, pool: Pool) -> Advantages | None:
        if not group.complete:
            return None
        reward_J = np.array([rollout.reward for rollout in group.rollouts], dtype=np.float64)
        verdicts = [[self._value(rollout, rubric.id) for rollout in group.rollouts] for rubric in pool.rubrics]
        verdict_IJ = np.array(verdicts, dtype=np.float64).reshape(len(pool), len(group.rollouts))
        combined_J = combined_advantages(reward_J, verdict_IJ, self.rubric_weight)
        return Advantages(combined_J, combined_J, np.zeros_like(combined_J))

    def _value(self, rollout: Rollout, rubric_id: str) -> float:
        verdict = rollout.judgment.verdicts.get(rubric_id) if rollout.judgment else None
        return {Verdict.PASS: 1.0, Verdict.FAIL: 0.0}.get(verdict, np.nan) if verdict else np.nan


class OneTurn:
    """Writes one line, runs it and stops."""

    def __init__(self, *, engine: Engine, limits: AgentConfig, sampling: SamplingConfig, greeting: str) -> None:
        self.engine, self.limits, self.sampling, self.greeting = engine, limits, sampling, greeting

    async def attempt(
        self, task: Task, sandbox: Sandbox, system: str, shown: tuple[ShownSkill, ...], key: str, seed: int
    ) -> Trajectory:
        messages = [{"role": "system", "content": system}, {"role": "user", "content": task.instruction}]
        record = TokenRecord(self.engine.chat.prompt(messages))
        params = SamplingParams(
            self.limits.max_tokens, (), self.sampling.temperature, self.sampling.top_p, seed, conversation=key
        )
        (segment,) = await self.engine.sample(record.ids, params)
        record.add(segment)
        command = segment.text.strip().removeprefix("$").strip() or "true"
        result = await sandbox.run(command, self.limits.command_seconds)
        call, seen = ToolCall("bash", {"command": command}), Observation(result.output[:100])
        turns = (Turn(f"{self.greeting} {segment.text}", (call,), (seen,)),)
        return Trajectory(key, task.id, turns, StopReason.FINISHED, system, (record.row(),), shown)
