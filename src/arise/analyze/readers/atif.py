"""Agent Trajectory Interchange Format, versions 1.0 to 1.8: `trajectory.json` alone or inside a Harbor trial."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from arise.analyze.conversation import Conversation
from arise.analyze.files import Unreadable, as_mapping, load, mentions
from arise.analyze.found import Found, Item, Options, Outcome, Skipped, Triage, verdict
from arise.types import StopReason

LONGEST_CHAIN = 64


class AtifReader:
    """Read a document with steps; its continuations belong to it and are not separate attempts."""

    name = "atif"

    def detect(self, path: Path) -> bool:
        return (
            path.is_file()
            and path.suffix == ".json"
            and mentions(path, '"schema_version"', '"agent"')
            and (mentions(path, "ATIF-v") or mentions(path, '"steps"'))
        )

    def read(self, path: Path, options: Options) -> Iterator[Item]:
        if _is_continuation(path):
            return
        try:
            document = load(path)
        except Unreadable as error:
            yield Skipped(str(path), str(error))
            return
        if not is_atif(document):
            yield Skipped(str(path), "not an ATIF document: no list of steps")
            return
        found = read_document(document, path.parent)
        extra = as_mapping(document.get("extra"))
        task_id = str(extra.get("task") or document.get("session_id") or path.stem)
        stop = StopReason(extra["stop"]) if extra.get("stop") in set(StopReason) else StopReason.FINISHED
        yield Found(
            found.trajectory(str(document.get("session_id") or path), task_id, stop),
            found.task(task_id, options.instructions),
            _outcome(extra),
            str(path),
            self.name,
            model=model_of(document),
            agent=str(as_mapping(document.get("agent")).get("name", "")),
            notes=found.notes,
        )


def is_atif(document: object) -> bool:
    """Return whether a document has a version and a list of steps."""
    return (
        isinstance(document, Mapping)
        and isinstance(document.get("steps"), list)
        and (isinstance(document.get("agent"), Mapping) or "schema_version" in document)
    )


def model_of(document: Mapping[str, Any]) -> str:
    """Return the model's name; a variant of the format calls it `agent.model`."""
    agent = as_mapping(document.get("agent"))
    return str(agent.get("model_name") or agent.get("model") or "")


def read_document(document: Mapping[str, Any], folder: Path) -> Conversation:
    """Build one conversation from a document and its continuations."""
    into = Conversation()
    for _ in range(LONGEST_CHAIN):
        for entry in document["steps"]:
            if isinstance(entry, Mapping):
                _add(into, entry)
        if inner := document.get("subagent_trajectories"):
            into.note("embedded sub-agent trajectories", len(inner))
        following = _next(document, folder)
        if following is None:
            break
        document = following
    return into


def _add(into: Conversation, entry: Mapping[str, Any]) -> None:
    if entry.get("is_copied_context"):
        into.note("copied context")
        return
    source, message = entry.get("source"), entry.get("message")
    if source == "system":
        if "context_management" in as_mapping(entry.get("extra")):
            into.note("context compactions")
        elif not into.drafts:
            into.add_system(message)
        return
    if source == "user":
        into.add_user(message)
        return
    into.add_agent(message, entry.get("reasoning_content"))
    for call in entry.get("tool_calls") or ():
        into.add_call(call.get("function_name"), call.get("arguments"), call.get("tool_call_id"))
    for result in as_mapping(entry.get("observation")).get("results") or ():
        if result.get("subagent_trajectory_ref"):
            into.note("sub-agent references")
        error = bool(as_mapping(result.get("extra")).get("error"))
        into.add_result(result.get("content"), result.get("source_call_id"), error=error)


def _next(document: Mapping[str, Any], folder: Path) -> Mapping[str, Any] | None:
    """Return the document that continues this one; only a file in the same folder is followed."""
    reference = document.get("continued_trajectory_ref")
    if not isinstance(reference, str) or not reference:
        return None
    try:
        following = load(folder / Path(reference).name)
    except Unreadable:
        return None
    return following if is_atif(following) else None


def _is_continuation(path: Path) -> bool:
    """Return whether a file continues another one in its folder: `trajectory.cont-1.json`."""
    base, marked, _ = path.name.partition(".cont-")
    return bool(marked) and (path.parent / f"{base}.json").is_file()


def _outcome(extra: Mapping[str, Any]) -> Outcome:
    """Return the outcome that `arise export --format atif` records; other writers record none."""
    if extra.get("fault"):
        return Outcome(Triage.INFRASTRUCTURE, reason=str(extra["fault"]))
    success, reward = extra.get("success"), extra.get("reward")
    if isinstance(success, bool):
        return Outcome(Triage.VALID, success, float(reward) if isinstance(reward, int | float) else float(success))
    return verdict(float(reward) if isinstance(reward, int | float) and not isinstance(reward, bool) else None)
