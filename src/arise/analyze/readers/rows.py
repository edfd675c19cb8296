"""Fields of rows in any JSON file: where messages, task, model and outcome are usually found."""

import json
import re
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any

from arise.analyze.found import MISSING, Options, Outcome, Triage, verdict
from arise.analyze.messages import is_conversation

FIELDS: Mapping[str, tuple[str, ...]] = {
    "messages": (
        "messages", "traj", "conversation", "conversations", "trajectory", "history", "request.messages",
        "conversation_log.messages", "transcript", "dialogue",
    ),
    "outcome": (
        "outcome", "reward", "reward_info.reward", "score", "success", "passed", "resolved", "is_correct", "correct",
        "is_resolved", "is_corrected", "test_result.resolved", "label", "result.reward", "result.success",
        "result.passed", "result.resolved", "result.correct", "evaluation.success", "evaluation.passed",
        "evaluation.correct", "grade.correct", "other_data.correct", "info.success", "metadata.success",
        "metadata.correct",
    ),
    "task": (
        "task_id", "instance_id", "task.id", "task.key", "question_ID", "question_id", "example_id", "problem_id",
        "prompt_id", "scenario_id", "case_id", "sample_id", "task", "session_id", "conversation_id", "id",
    ),
    "instruction": ("instruction", "question", "problem_statement", "task_description"),
    "model": ("model", "model_name", "info.model", "metadata.model", "response.model"),
    "error": ("error", "errors", "exception", "info.error"),
    "checksum": ("checksum", "task_checksum"),
    "group": ("dataset", "domain", "source", "env", "environment"),
    "attempt": ("rollout_id", "simulation_id", "uuid", "trial", "attempt", "epoch", "sample_index", "run_id"),
    "stop": ("termination_reason", "stop_reason", "finish_reason", "stop_condition"),
}  # fmt: skip
"""Names tried for each field, in order; `--map field=name` takes precedence."""
_DEFINITION = ("info.task", "task_definition", "question", "problem_statement", "answer")
_TRUE, _FALSE = {"pass", "passed", "success", "true", "correct", "resolved", "yes", "c"}, {
    "fail", "failed", "failure", "false", "incorrect", "unresolved", "no", "i"
}  # fmt: skip
_VALUES = ("reward", "score", "value", "correct", "correctness", "success", "passed", "resolved")
"""Names of the verdict in an outcome that is an object."""
_BROKEN = {"infrastructure_error", "agent_error_infra", "user_error", "unexpected_error"}
_BROKEN_MARKS = ("infra_fail", "infra_error", "infra_failure", "is_infra_failure")
_UNVERIFIED_MARKS = ("verifier_error", "judge_error", "judge_generation_error", "grader_error")
_PROVIDER = re.compile(
    r"rate ?limit|too many requests|api ?connection|service ?unavailable|internal ?server ?error|bad ?gateway"
    r"|overloaded|insufficient_quota|authentication ?error|connection (?:reset|refused|aborted|error)"
    r"|\b(?:429|500|502|503|529)\b",
    re.IGNORECASE,
)
"""Errors of the service that runs the model. Anything else may be the agent's fault."""


def rows_of(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the rows of a document with the end of their source: a list, one row, or a list inside an object.

    What such an object says once about all of its rows, e.g. the model, is added to each of them.
    """
    if isinstance(value, Mapping) and (inner := _inner_rows(value)):
        name, rows = inner
        shared = {key: item for key, item in value.items() if key != name and not isinstance(item, list)}
        shared = {key: item for key, item in shared.items() if key in ("metadata", "info") or isinstance(item, str)}
        value = [{**shared, **row} if isinstance(row, Mapping) else row for row in rows]
    rows = value if isinstance(value, list) else [value]
    for number, row in enumerate(rows):
        yield f"#{number}" if len(rows) > 1 else "", row


def _inner_rows(value: Mapping[str, Any]) -> tuple[str, list[Any]] | None:
    """Return name and items of the list of rows in an object that is no row itself."""
    if any(at(value, name) is not None for name in FIELDS["messages"]):
        return None
    for name, items in value.items():
        first = items[0] if isinstance(items, list) and items else None
        if isinstance(first, Mapping) and not is_conversation(items) and _spoken(first):
            return name, items
    return None


def _spoken(row: Mapping[str, Any]) -> bool:
    return any(isinstance(at(row, name), list) for name in (*FIELDS["messages"], "response.output", "completion"))


def definition_of(row: Mapping[str, Any], task_id: str) -> str:
    """Return a digest of what defines a task that has only a number, which several datasets use for different tasks."""
    stated = next((value for name in _DEFINITION if (value := at(row, name)) is not None), None)
    if stated is None or not task_id.isdigit():
        return ""
    return blake2b(json.dumps(_filled(stated), sort_keys=True, default=str).encode(), digest_size=6).hexdigest()


def _filled(value: Any) -> Any:
    """Return a value without empty fields, which later versions of a dataset add."""
    if isinstance(value, Mapping):
        return {key: _filled(item) for key, item in value.items() if item not in (None, "", [], {})}
    return [_filled(item) for item in value] if isinstance(value, list) else value


def outcome_of(row: Mapping[str, Any], options: Options) -> Outcome:
    """Return the triaged verdict in a row; a mapped field that is absent or null is missing, never a failure."""
    stop, error = str(pick(row, "stop", options)), pick(row, "error", options)
    found = _stated(pick(row, "outcome", options))
    if found.passed:
        return found
    broken = next((mark for mark in _BROKEN_MARKS if row.get(mark) is True), "")
    if stop in _BROKEN or broken:
        said = str(row.get("infra_reason") or broken) if broken else stop
        return Outcome(Triage.INFRASTRUCTURE, reward=found.reward, reason=said)
    if error and (found.reward is None or _PROVIDER.search(str(error)[:2000])):
        return Outcome(Triage.INFRASTRUCTURE, reward=found.reward, reason=f"error: {str(error)[:160]}")
    if unverified := next((mark for mark in _UNVERIFIED_MARKS if row.get(mark)), ""):
        return Outcome(Triage.UNVERIFIED, reward=found.reward, reason=f"{unverified}: {str(row[unverified])[:160]}")
    return found


def _stated(value: Any) -> Outcome:
    """Return the verdict that a value states: a number, a word, or an object with one of them."""
    if isinstance(value, Mapping):
        value = next((value[name] for name in _VALUES if isinstance(value.get(name), bool | int | float)), None)
    if isinstance(value, str):
        if value.lower() in _TRUE | _FALSE:
            return verdict(float(value.lower() in _TRUE))
        try:
            value = float(value)
        except ValueError:
            return Outcome(Triage.MISSING, reason=f"outcome {value[:40]!r} is no verdict")
    return verdict(float(value)) if isinstance(value, bool | int | float) else MISSING


def pick(row: Mapping[str, Any], field: str, options: Options) -> Any:
    """Return the value of a field: where `--map` says, else under the first usual name that has one."""
    if field in options.fields:
        return at(row, options.fields[field])
    return next((value for name in FIELDS[field] if (value := at(row, name)) is not None), None)


def at(row: Mapping[str, Any], name: str) -> Any:
    """Return the value under a name, or under a path of names with dots; None if there is none."""
    if name in row:
        return row[name]
    value: Any = row
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value
