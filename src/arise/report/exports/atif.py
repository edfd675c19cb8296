"""Trajectories in the Agent Trajectory Interchange Format, version 1.8: one JSON document per rollout."""

import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from arise import __version__
from arise.report.exports.names import file_name
from arise.rollouts.discretion import redacted_turn
from arise.run.reader import RunReader
from arise.text.progress import Progress
from arise.text.secrets import redact
from arise.types import Rollout, Tokens, Turn

log = logging.getLogger(__name__)

SCHEMA = "ATIF-v1.8"


def write_trajectories(run: RunReader, out: Path) -> list[Path]:
    """Write one document per rollout of a run."""
    instructions = {task.id: task.instruction for task in run.tasks()}
    model = str(run.config().get("model", {}).get("name") or "small")
    written, iterations = [], run.iterations()
    with Progress(log, "exporting iterations", len(iterations)) as wait:
        for iteration in iterations:
            for row in run.rollouts(k=iteration.k, limit=-1):
                stored = run.trajectory(row.id)
                assert stored is not None
                rollout = stored.whole()
                facts = {"iteration": iteration.number, "advantage": row.advantage}
                document = trajectory_document(rollout, instructions.get(row.task_id, ""), model, facts)
                path = out / f"{file_name(row.id)}.json"
                path.write_text(json.dumps(document, indent=1))
                written.append(path)
            wait.add()
    return written


def trajectory_document(
    rollout: Rollout, instruction: str, model: str, facts: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return one rollout as an ATIF document, with token ids and log-probabilities if they can be assigned to turns."""
    trajectory = rollout.trajectory
    spans = _spans(trajectory.rows)
    exact = len(spans) == len(trajectory.turns)
    entries = [{"source": "system", "message": redact(trajectory.system_prompt)}] if trajectory.system_prompt else []
    entries.append({"source": "user", "message": redact(instruction)})
    entries += [
        _agent_entry(number, redacted_turn(turn), spans[number] if exact else None)
        for number, turn in enumerate(trajectory.turns)
    ]
    judgment = rollout.judgment
    extra = {
        "task": trajectory.task_id,
        "reward": rollout.reward,
        "success": rollout.success,
        "fault": redact(rollout.fault),
        "reason": redact(rollout.reason),
        "stop": trajectory.stop.value,
        "verdicts": {name: verdict.value for name, verdict in judgment.verdicts.items()} if judgment else {},
        "skills_shown": [f"{skill.rubric_id} revision {skill.revision}" for skill in trajectory.shown_skills],
        "skills_left_out": [f"{skill.rubric_id} revision {skill.revision}" for skill in trajectory.left_out],
        **(facts or {}),
    }
    return {
        "schema_version": SCHEMA,
        "session_id": trajectory.id,
        "agent": {"name": "arise", "version": __version__, "model_name": model},
        "steps": [{"step_id": number, **entry} for number, entry in enumerate(entries, start=1)],
        "final_metrics": {"total_completion_tokens": trajectory.generated_tokens, "total_steps": len(entries)},
        "extra": extra,
    }


def _agent_entry(number: int, turn: Turn, span: tuple[Tokens, int, int] | None) -> dict[str, Any]:
    entry: dict[str, Any] = {"source": "agent", "message": turn.text}
    if turn.reasoning:
        entry["reasoning_content"] = turn.reasoning
    names = [call.id or f"call_{number}_{n}" for n, call in enumerate(turn.calls)]
    if turn.calls:
        entry["tool_calls"] = [
            {"tool_call_id": name, "function_name": call.name, "arguments": dict(call.arguments)}
            for name, call in zip(names, turn.calls, strict=True)
        ]
    if turn.observations:
        results = []
        for n, seen in enumerate(turn.observations):
            source = seen.call_id if seen.call_id in names else names[n] if n < len(names) else None
            result: dict[str, Any] = {"content": seen.text} | ({"source_call_id": source} if source else {})
            flags = {name: True for name in ("error", "truncated") if getattr(seen, name)}
            results.append(result | ({"extra": flags} if flags else {}))
        entry["observation"] = {"results": results}
    if span:
        row, start, end = span
        entry["metrics"] = {
            "prompt_tokens": start,
            "completion_tokens": end - start,
            "completion_token_ids": row.ids_U[start:end].tolist(),
            "logprobs": row.logprob_U[start:end].tolist(),
        }
    return entry


def _spans(rows: Sequence[Tokens]) -> list[tuple[Tokens, int, int]]:
    """Return the spans of generated tokens, in order of generation."""
    found = []
    for row in rows:
        start = None
        for place, generated in enumerate([*row.generated_U.tolist(), False]):
            if generated and start is None:
                start = place
            elif not generated and start is not None:
                found.append((row, start, place))
                start = None
    return found
