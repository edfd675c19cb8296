"""Messages in OpenAI's format as JSON or JSON Lines; a field map locates outcome, task and model.

Covers tau-bench, `arise endpoint --record`, verifiers' `results.jsonl`, verl dumps, and custom files.
"""

import json
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

from arise.analyze.conversation import Conversation
from arise.analyze.files import Unreadable, head, lines, load, mentions
from arise.analyze.found import MISSING, NO_MESSAGES, Found, Item, Options, Outcome, Skipped, Triage, verdict
from arise.analyze.messages import add_messages, is_conversation
from arise.types import StopReason

FIELDS: Mapping[str, tuple[str, ...]] = {
    "messages": ("messages", "traj", "conversation", "conversations", "trajectory", "history", "request.messages"),
    "outcome": (
        "outcome", "reward", "reward_info.reward", "score", "success", "passed", "resolved", "is_correct", "correct",
        "is_resolved", "is_corrected", "test_result.resolved", "label",
    ),
    "task": (
        "task_id", "instance_id", "task.id", "task.key", "question_ID", "question_id", "example_id", "problem_id",
        "prompt_id", "task", "session_id", "conversation_id", "id",
    ),
    "instruction": ("instruction", "question", "problem_statement", "task_description"),
    "model": ("model", "model_name", "info.model", "metadata.model"),
    "error": ("error", "errors", "exception"),
    "checksum": ("checksum", "task_checksum"),
    "group": ("dataset", "domain", "source", "env", "environment"),
    "attempt": ("trial", "attempt", "epoch", "rollout_id", "sample_index", "run_id", "uuid"),
    "stop": ("termination_reason", "stop_reason", "finish_reason", "stop_condition"),
}  # fmt: skip
"""Names tried for each field, in order; `--map field=name` takes precedence."""
_DEFINITION = ("info.task", "task_definition", "question", "problem_statement", "answer")
_TRUE, _FALSE = {"pass", "passed", "success", "true", "correct", "resolved", "yes", "c"}, {
    "fail", "failed", "failure", "false", "incorrect", "unresolved", "no", "i"
}  # fmt: skip
_TOO_LONG = {"max_steps": StopReason.TURN_LIMIT, "length": StopReason.TOKEN_LIMIT, "timeout": StopReason.TIME_LIMIT}
_BROKEN = {"infrastructure_error", "agent_error_infra", "user_error", "unexpected_error"}


class OpenAIMessagesReader:
    """Read one conversation per line, per list element, or per file."""

    name = "openai-messages"

    def detect(self, path: Path) -> bool:
        if not path.is_file() or path.suffix not in (".json", ".jsonl", ".ndjson"):
            return False
        start = head(path).lstrip()[:1]
        spoken = mentions(path, '"role"') or mentions(path, '"from"') or mentions(path, '"completion"')
        flat = mentions(path, '"input"', '"output"', '"score"')
        return start in (b"{", b"[") and (spoken or flat)

    def read(self, path: Path, options: Options) -> Iterator[Item]:
        if path.suffix == ".json":
            try:
                yield from self._document(load(path), path, options)
            except Unreadable as error:
                yield Skipped(str(path), str(error))
            return
        for number, value in lines(path):
            place = f"{path}:{number}"
            if isinstance(value, Unreadable):
                yield Skipped(place, str(value))
            else:
                yield self._row(value, place, options)

    def _document(self, value: Any, path: Path, options: Options) -> Iterator[Item]:
        if is_conversation(value):
            yield self._row({"messages": value, "id": path.stem}, str(path), options)
            return
        rows = value if isinstance(value, list) else [value]
        for number, row in enumerate(rows):
            yield self._row(row, f"{path}#{number}" if len(rows) > 1 else str(path), options)

    def _row(self, row: Any, place: str, options: Options) -> Item:
        return attempt_of_row(row, place, options, self.name)


def attempt_of_row(row: Any, place: str, options: Options, form: str) -> Item:
    """Return the attempt of one row; without messages only an infrastructure failure is an attempt."""
    if not isinstance(row, Mapping):
        return Skipped(place, NO_MESSAGES)
    into, messages, outcome = Conversation(), _messages(row, options), outcome_of(row, options)
    broken = outcome.triage is Triage.INFRASTRUCTURE
    if messages is None and not (broken and _pick(row, "task", options) is not None):
        return Skipped(place, NO_MESSAGES)
    add_messages(into, messages or ())
    if not into.drafts:
        if not broken:
            return Skipped(place, "a conversation without a message of the agent")
        into.note("no trajectory")
    if stated := _pick(row, "instruction", options):
        into.instruction = into.instruction or str(stated)
    task_id = str(_pick(row, "task", options) if _pick(row, "task", options) is not None else place)
    attempt = _pick(row, "attempt", options)
    name = f"{place}" if attempt is None else f"{place}/{attempt}"
    stop = next((s for w, s in _TOO_LONG.items() if w in str(_pick(row, "stop", options))), StopReason.FINISHED)
    return Found(
        into.trajectory(name, task_id, stop),
        into.task(task_id, options.instructions),
        outcome,
        place,
        form,
        checksum=str(_pick(row, "checksum", options) or _definition(row, task_id)),
        model=str(_pick(row, "model", options) or ""),
        group=str(_pick(row, "group", options) or ""),
        notes=into.notes,
    )


def _definition(row: Mapping[str, Any], task_id: str) -> str:
    """Return a digest of what defines a task that has only a number, which several datasets use for different tasks."""
    stated = next((value for name in _DEFINITION if (value := _at(row, name)) is not None), None)
    if stated is None or not task_id.isdigit():
        return ""
    return blake2b(json.dumps(_filled(stated), sort_keys=True, default=str).encode(), digest_size=6).hexdigest()


def _filled(value: Any) -> Any:
    """Return a value without empty fields, which later versions of a dataset add."""
    if isinstance(value, Mapping):
        return {key: _filled(item) for key, item in value.items() if item not in (None, "", [], {})}
    return [_filled(item) for item in value] if isinstance(value, list) else value


def outcome_of(row: Mapping[str, Any], options: Options) -> Outcome:
    """Return the verdict in a row; a mapped field that is absent or null is missing, never a failure."""
    if str(_pick(row, "stop", options)) in _BROKEN:
        return Outcome(Triage.INFRASTRUCTURE, reason=str(_pick(row, "stop", options)))
    value = _pick(row, "outcome", options)
    if isinstance(value, Mapping):
        value = value.get("reward", value.get("score", value.get("value")))
    if value is None:
        if error := _pick(row, "error", options):
            return Outcome(Triage.INFRASTRUCTURE, reason=f"error: {str(error)[:160]}")
        return MISSING
    if isinstance(value, str):
        if value.lower() in _TRUE | _FALSE:
            return verdict(float(value.lower() in _TRUE))
        try:
            value = float(value)
        except ValueError:
            return Outcome(Triage.MISSING, reason=f"outcome {value[:40]!r} is no verdict")
    return verdict(float(value)) if isinstance(value, bool | int | float) else MISSING


def _messages(row: Mapping[str, Any], options: Options) -> list[Any] | None:
    value = _pick(row, "messages", options)
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return None
    if isinstance(value, list):
        reply = row.get("response") or row.get("choices") or _parsed(row.get("original_response"))
        choice = reply.get("choices") if isinstance(reply, Mapping) else reply
        last = choice[0].get("message") if isinstance(choice, list) and choice and isinstance(choice[0], dict) else None
        return [*value, last] if last and "messages" not in options.fields else value
    prompt, completion = row.get("prompt", row.get("input")), row.get("completion", row.get("output"))
    if completion is None:
        return None
    asked = prompt if isinstance(prompt, list) else [{"role": "user", "content": prompt}]
    said = completion if isinstance(completion, list) else [{"role": "assistant", "content": completion}]
    return [*asked, *said]


def _parsed(text: object) -> Any:
    """Return the reply that LiteLLM's debug log keeps as a string of JSON."""
    try:
        return json.loads(text) if isinstance(text, str) else None
    except ValueError:
        return None


def _pick(row: Mapping[str, Any], field: str, options: Options) -> Any:
    """Return the value of a field: where `--map` says, else under the first usual name that has one."""
    if field in options.fields:
        return _at(row, options.fields[field])
    return next((value for name in FIELDS[field] if (value := _at(row, name)) is not None), None)


def _at(row: Mapping[str, Any], name: str) -> Any:
    if name in row:
        return row[name]
    value: Any = row
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value
