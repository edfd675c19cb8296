"""OpenHands: event lists of version 0, alone or in `output.jsonl`, and event logs of version 1."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from arise.analyze.conversation import Conversation, arguments_of
from arise.analyze.files import Unreadable, as_mapping, lines, load, load_optional, mentions
from arise.analyze.found import Found, Item, Options, Skipped
from arise.analyze.readers.rows import outcome_of as stated_outcome
from arise.analyze.readers.swe_outcomes import outcome_of

_TOOLS = {"run": "bash", "run_ipython": "python", "read": "view"}
"""Tool names by action; `str_replace_editor` records a look as the action `read`."""
_ADDED = {"thought", "blocking", "hidden", "confirmation_state", "is_confirmed", "security_risk", "summary"}
_SILENT = {"system", "change_agent_state", "recall", "null", "condensation", "agent_state_changed"}


class OpenHandsReader:
    """Read version 0 events, which name an action or an observation, and version 1 events, which have a kind."""

    name = "openhands"

    def detect(self, path: Path) -> bool:
        if not path.is_file() or path.suffix not in (".json", ".jsonl"):
            return False
        older = mentions(path, '"source"', '"action"', '"args"') and (
            mentions(path, '"observation"') or mentions(path, '"timestamp"')
        )
        return older or mentions(path, '"ActionEvent"') or mentions(path, '"kind"', '"MessageEvent"')

    def read(self, path: Path, options: Options) -> Iterator[Item]:
        for place, row in _rows(path):
            yield Skipped(place, str(row)) if isinstance(row, Unreadable) else _attempt(row, place, path, options)


class OpenHandsFolderReader:
    """Read a conversation kept as one file per event in a folder `events`; in version 1 its state lies next to it."""

    name = "openhands"

    def detect(self, path: Path) -> bool:
        first = next(iter(sorted(_events(path).glob("*.json"))), None)
        return first is not None and (
            mentions(first, '"kind"', '"source"') or mentions(first, '"source"', '"timestamp"')
        )

    def read(self, path: Path, options: Options) -> Iterator[Item]:
        folder = _events(path)
        events = []
        for file in sorted(folder.glob("*.json"), key=_number):
            try:
                events.append(load(file))
            except Unreadable as error:
                yield Skipped(str(file), str(error))
        state = as_mapping(load_optional(folder.parent / "base_state.json"))
        model = str(as_mapping(as_mapping(state.get("agent")).get("llm")).get("model") or "")
        yield _attempt(events, str(path), folder.parent, options, model)


def _events(path: Path) -> Path:
    """Return the folder of events: the folder itself, or the one inside it."""
    return path / "events" if (path / "base_state.json").is_file() else path if path.name == "events" else path / "-"


def _number(file: Path) -> tuple[int, str]:
    """Return the place of an event: `12.json` in version 0, `event-00012-<id>.json` in version 1."""
    digits = next((part for part in file.stem.split("-") if part.isdigit()), "")
    return int(digits or 0), file.name


def _attempt(row: Any, place: str, path: Path, options: Options, model: str = "") -> Item:
    events, facts = (row, {}) if isinstance(row, list) else (as_mapping(row).get("history") or [], as_mapping(row))
    into = Conversation()
    for event in events:
        if isinstance(event, Mapping):
            _add_kind(into, event) if "kind" in event else _add(into, event)
    if not into.drafts:
        return Skipped(place, "no event of the agent")
    name = str(facts.get("instance_id") or path.stem)
    outcome = stated_outcome(facts, options) if facts else outcome_of(name, path, "")
    if outcome.passed is None and facts:
        outcome = outcome_of(name, path, "")
    model = model or str(as_mapping(as_mapping(facts.get("metadata")).get("llm_config")).get("model", ""))
    return Found(
        into.trajectory(place, name), into.task(name, options.instructions), outcome, place, OpenHandsReader.name,
        model=model, agent="openhands", notes=into.notes,
    )  # fmt: skip


def _rows(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the attempts of a file: one per line with a history, else all lines are events of one attempt."""
    if path.suffix == ".json":
        try:
            yield str(path), load(path)
        except Unreadable as error:
            yield str(path), error
        return
    events: list[Any] = []
    for number, row in lines(path):
        if isinstance(row, Unreadable) or (isinstance(row, Mapping) and "history" in row):
            yield f"{path}:{number}", row
        else:
            events.append(row)
    if events:
        yield str(path), events


def _add(into: Conversation, event: Mapping[str, Any]) -> None:
    """Add an event of version 0; an observation answers the call in its metadata or its cause."""
    about = event.get("tool_call_metadata") or {}
    call_id = about.get("tool_call_id") or ""
    if "observation" in event:
        if event["observation"] in _SILENT:
            return
        extras = event.get("extras") or {}
        code = (extras.get("metadata") or {}).get("exit_code", extras.get("exit_code"))
        refused = event["observation"] == "error" or str(event.get("content")).startswith("ERROR:\n")  # of the editor
        failed = refused or (isinstance(code, int) and code > 0)
        into.add_result(event.get("content"), call_id, error=failed)
        return
    action, arguments = event.get("action"), event.get("args") or {}
    if action in _SILENT or action is None:
        if action == "system":
            into.add_system(arguments.get("content"))
        return
    if event.get("source") == "user":
        into.add_user(arguments.get("content"))
        return
    into.add_agent(arguments.get("thought") or (arguments.get("content") if action == "message" else ""))
    if action == "message":
        return
    name = _TOOLS.get(str(action)) or about.get("function_name") or action
    into.add_call(name, _asked(arguments), call_id)


def _asked(arguments: object) -> dict[str, object]:
    """Return the arguments of a call without what the framework adds, which differs between equal calls."""
    return {key: value for key, value in arguments_of(arguments).items() if key not in _ADDED}


def _add_kind(into: Conversation, event: Mapping[str, Any]) -> None:
    """Add an event of version 1."""
    kind = event.get("kind")
    if kind == "SystemPromptEvent":
        into.add_system(event.get("system_prompt"))
    elif kind == "MessageEvent":
        message = event.get("llm_message") or {}
        if event.get("source") == "user":
            into.add_user(message.get("content"))
        else:
            into.add_agent(message.get("content"), message.get("reasoning_content"))
    elif kind == "ActionEvent":
        into.add_agent(event.get("thought"), event.get("reasoning_content"))
        call = event.get("tool_call") or {}
        function = call.get("function") or call
        into.add_call(
            event.get("tool_name") or function.get("name"),
            _asked(function.get("arguments") or event.get("action")), event.get("tool_call_id"),
        )  # fmt: skip
    elif kind in ("ObservationEvent", "AgentErrorEvent"):
        seen = as_mapping(event.get("observation"))
        text = seen.get("content", seen.get("output", event.get("observation") or ""))
        code = seen.get("exit_code")  # `is_error` is false for a command that failed
        failed = kind == "AgentErrorEvent" or bool(seen.get("is_error")) or (isinstance(code, int) and code > 0)
        into.add_result(text or event.get("error"), event.get("tool_call_id"), error=failed)
    elif kind == "Condensation":
        into.note("context compactions")
