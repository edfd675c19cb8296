"""mini-swe-agent (`.traj.json`) and SWE-agent (`.traj`) trajectories, with outcomes from side files."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from arise.analyze.conversation import Conversation
from arise.analyze.files import Unreadable, as_mapping, load, mentions
from arise.analyze.found import Found, Item, Options, Skipped
from arise.analyze.messages import add_messages, content_of, role_of
from arise.analyze.readers.swe_outcomes import outcome_of
from arise.types import StopReason

_STOPS = {"limit": StopReason.TURN_LIMIT, "cost": StopReason.TOKEN_LIMIT, "context": StopReason.CONTEXT_LIMIT,
          "time": StopReason.TIME_LIMIT}  # fmt: skip

_REFUSED = re.compile(r"\s*Your (?:proposed )?edit (?:was not|has introduced)", re.IGNORECASE)
"""The editor's answer to an edit that it did not make."""


def stop_of(exit_status: str) -> StopReason:
    """Return why the agent ended, by its exit status: `LimitsExceeded`, `exit_cost`, `submitted (exit_context)`, ..."""
    said = exit_status.lower()
    return next((stop for word, stop in _STOPS.items() if word in said), StopReason.FINISHED)


class MiniSweReader:
    """Read `trajectory_format: mini-swe-agent-1` and later."""

    name = "mini-swe-agent"

    def detect(self, path: Path) -> bool:
        if not path.is_file() or path.suffix != ".json":
            return False
        if path.name.endswith(".traj.json"):  # a long submission may precede the messages
            return mentions(path, '"role"') or mentions(path, '"info"')
        return mentions(path, "mini-swe-agent-1")

    def read(self, path: Path, options: Options) -> Iterator[Item]:
        try:
            value = load(path)
        except Unreadable as error:
            yield Skipped(str(path), str(error))
            return
        if isinstance(value, list):  # the oldest files are the bare messages
            value = {"messages": value}
        if not isinstance(value, Mapping) or not isinstance(value.get("messages"), list):
            yield Skipped(str(path), "no messages in a mini-swe-agent trajectory")
            return
        into = Conversation()
        add_messages(into, [m for m in value["messages"] if role_of(m) != "exit"])
        info = as_mapping(value.get("info"))
        name = str(value.get("instance_id") or path.name.removesuffix(".json").removesuffix(".traj"))
        yield _found(path, into, info, name, options, self.name, _model(info))


class SweAgentReader:
    """Read a `trajectory` with action and observation, or else a `history` of messages."""

    name = "swe-agent"

    def detect(self, path: Path) -> bool:
        return path.is_file() and path.suffix == ".traj"

    def read(self, path: Path, options: Options) -> Iterator[Item]:
        try:
            value = load(path)
        except Unreadable as error:
            yield Skipped(str(path), str(error))
            return
        history = value.get("history") if isinstance(value, Mapping) else None
        entries = value.get("trajectory") if isinstance(value, Mapping) else None
        into = Conversation()
        if isinstance(entries, list) and entries:
            _opening(
                into, history or as_mapping(entries[0]).get("query") or as_mapping(entries[0]).get("messages") or []
            )
            for entry in entries:
                _add(into, as_mapping(entry))
        elif isinstance(history, list) and history:
            add_messages(into, history)
        else:
            yield Skipped(str(path), "no trajectory and no history")
            return
        info = as_mapping(value.get("info"))
        yield _found(path, into, info, path.stem, options, self.name, _model(info) or _replayed_model(value))


def _opening(into: Conversation, messages: list[Any]) -> None:
    """Add system prompt and instruction: the messages before the agent's first, without demonstrations."""
    for message in messages:
        if not isinstance(message, Mapping) or role_of(message) == "assistant":
            return
        if message.get("is_demo") or message.get("message_type") == "demonstration":
            into.note("demonstration messages")
        elif role_of(message) == "system":
            into.add_system(content_of(message))
        else:
            into.add_user(content_of(message))


def _add(into: Conversation, entry: Mapping[str, Any]) -> None:
    into.add_agent(entry.get("response") or entry.get("thought"), entry.get("thinking") or "")
    action = str(entry.get("action") or "")
    if action.strip():
        into.add_call(*_tool(action, entry.get("state")))
        seen = into.text(entry.get("observation"))
        into.add_result(seen, error=bool(_REFUSED.match(seen)))


def _tool(action: str, state: object) -> tuple[str, dict[str, object]]:
    """Convert SWE-agent's own commands to tools on the open file; anything else is a shell command."""
    word, _, rest = action.strip().partition(" ")
    word = word.partition("\n")[0]
    path = rest.split()[0].strip("'\"") if rest.split() else ""
    if word in ("open", "create"):
        return word, {"path": path, "action": action}
    if word in ("edit", "goto", "scroll_down", "scroll_up", "insert"):
        name = word if word in ("edit", "insert") else "view"
        found = _open_file(state)
        return name, {"path": found, "action": action} if found else {"action": action}
    if word in ("search_dir", "search_file", "find_file"):
        return "search", {"query": rest, "action": action}
    return ("submit", {"action": action}) if word == "submit" else ("bash", {"command": action})


def _open_file(state: object) -> str:
    """Return the file that SWE-agent has open, which it records as JSON with every action."""
    if isinstance(state, str):
        try:
            state = json.loads(state)
        except ValueError:
            return ""
    found = str(as_mapping(state).get("open_file") or "")
    return "" if found == "n/a" else found


def _found(
    path: Path, into: Conversation, info: Mapping[str, Any], name: str, options: Options, form: str, model: str
) -> Found:
    exit_status = str(info.get("exit_status") or "")
    return Found(
        into.trajectory(str(path), name, stop_of(exit_status)),
        into.task(name, options.instructions),
        outcome_of(name, path, exit_status),
        str(path),
        form,
        model=model,
        agent=form,
        group=name.rpartition("-")[0] if "__" in name else "",
        notes=into.notes,
    )


def _model(info: Mapping[str, Any]) -> str:
    config = as_mapping(as_mapping(info.get("config")).get("model"))
    return str(config.get("model_name") or info.get("model_name") or "")


def _replayed_model(document: Mapping[str, Any]) -> str:
    """Return the model in SWE-agent's `replay_config`, a string of JSON."""
    try:
        config = as_mapping(json.loads(document.get("replay_config") or "{}"))
    except (ValueError, TypeError):
        return ""
    return str(as_mapping(as_mapping(config.get("agent")).get("model")).get("name") or "")
