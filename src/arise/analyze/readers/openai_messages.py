"""Messages in OpenAI's format as JSON or JSON Lines; a field map locates outcome, task and model.

Covers tau-bench, `arise endpoint --record`, verifiers' `results.jsonl`, verl dumps, rollouts of NeMo Gym, and custom
files.
"""

import json
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

from arise.analyze.conversation import Conversation
from arise.analyze.files import Unreadable, head, lines, load, mentions
from arise.analyze.found import NO_MESSAGES, Found, Item, Options, Outcome, Skipped, Triage
from arise.analyze.messages import add_messages, is_conversation
from arise.analyze.readers.rows import at, definition_of, outcome_of, pick, rows_of
from arise.types import StopReason

_TOO_LONG = {"max_steps": StopReason.TURN_LIMIT, "length": StopReason.TOKEN_LIMIT, "timeout": StopReason.TIME_LIMIT}


_WORDS = (
    "role", "from", "completion", "responses_create_params", "messages", "tool_calls", "history", "trajectory",
    "dialogue", "transcript", "prompt", "task_id",
)  # fmt: skip
"""Field names; every file of conversations has at least one of them near its beginning."""


class OpenAIMessagesReader:
    """Read one conversation per line, per list element, or per file."""

    name = "openai-messages"

    def detect(self, path: Path) -> bool:
        if not path.is_file() or path.suffix not in (".json", ".jsonl", ".ndjson"):
            return False
        start = head(path).lstrip()[:1]
        spoken = any(mentions(path, f'"{word}"') for word in _WORDS)
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
        for end, row in rows_of(value):
            yield self._row(row, f"{path}{end}", options)

    def _row(self, row: Any, place: str, options: Options) -> Item:
        return attempt_of_row(row, place, options, self.name)


def attempt_of_row(row: Any, place: str, options: Options, form: str) -> Item:
    """Return the attempt of one row; without messages only an infrastructure failure is an attempt.

    An error before the agent said anything is one.
    """
    if not isinstance(row, Mapping):
        return Skipped(place, NO_MESSAGES)
    into, messages, outcome = Conversation(), _messages(row, options), outcome_of(row, options)
    broken = outcome.triage is Triage.INFRASTRUCTURE
    if messages is None and not (broken and pick(row, "task", options) is not None):
        return Skipped(place, NO_MESSAGES)
    add_messages(into, messages or ())
    if not into.drafts:
        if not broken and (error := pick(row, "error", options)):
            outcome = Outcome(Triage.INFRASTRUCTURE, reward=outcome.reward, reason=f"error: {str(error)[:160]}")
        elif not broken:
            return Skipped(place, "a conversation without a message of the agent")
        into.note("no trajectory")
    if stated := pick(row, "instruction", options):
        into.instruction = into.instruction or str(stated)
    task_id = _task_id(pick(row, "task", options), into.instruction, place)
    attempt = pick(row, "attempt", options)
    name = f"{place}" if attempt is None else f"{place}/{attempt}"
    stop = next((s for w, s in _TOO_LONG.items() if w in str(pick(row, "stop", options))), StopReason.FINISHED)
    return Found(
        into.trajectory(name, task_id, stop),
        into.task(task_id, options.instructions),
        outcome,
        place,
        form,
        checksum=str(pick(row, "checksum", options) or definition_of(row, task_id)),
        model=str(pick(row, "model", options) or ""),
        group=str(pick(row, "group", options) or ""),
        attempt="" if attempt is None else str(attempt),
        notes=into.notes,
    )


def _task_id(stated: Any, instruction: str, place: str) -> str:
    """Return the id of a task; rows without one and with the same instruction are attempts at the same task."""
    if stated is not None:
        return str(stated)
    return (
        f"task-{blake2b(instruction.encode('utf-8', 'replace'), digest_size=5).hexdigest()}" if instruction else place
    )


def _messages(row: Mapping[str, Any], options: Options) -> list[Any] | None:
    value = pick(row, "messages", options)
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
    if isinstance(items := at(row, "response.output"), list):  # the API of OpenAI's responses
        asked = at(row, "responses_create_params.input") or row.get("input") or []
        flat = [part for item in items for part in (item if isinstance(item, list) else [item])]
        return [*(asked if isinstance(asked, list) else [{"role": "user", "content": asked}]), *flat]
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
