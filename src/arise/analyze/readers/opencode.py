"""opencode: exported sessions (JSON) and the store, `opencode.db`."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from arise.analyze.conversation import Conversation
from arise.analyze.files import Unreadable, as_mapping, head, load, mentions
from arise.analyze.found import Found, Item, Options, Outcome, Skipped, Triage
from arise.run.opencode_store import StoreUnreadable, is_store, sessions

Message = tuple[Mapping[str, Any], list[Mapping[str, Any]]]


class OpencodeReader:
    """Read one attempt per session; count sub-sessions, but do not read them as attempts."""

    name = "opencode"

    def detect(self, path: Path) -> bool:
        if not path.is_file():
            return False
        if path.suffix == ".db":
            return head(path).startswith(b"SQLite format 3") and is_store(path)
        return path.suffix == ".json" and mentions(path, '"info"', '"messages"', '"parts"')

    def read(self, path: Path, options: Options) -> Iterator[Item]:
        try:
            if path.suffix == ".db":
                yield from self._store(path, options)
                return
            value = load(path)
            messages = [(m["info"], m["parts"]) for m in value["messages"] if "info" in m and "parts" in m]
            info = value.get("info") or {}
            yield self._session(
                str(info.get("id") or path.stem), messages, str(path), options, bool(info.get("parentID"))
            )
        except (Unreadable, KeyError, TypeError) as error:
            yield Skipped(str(path), str(error) if isinstance(error, Unreadable) else "not an opencode session")
        except StoreUnreadable as error:
            yield Skipped(str(path), str(error))

    def _store(self, path: Path, options: Options) -> Iterator[Item]:
        for found in sessions(path):
            yield self._session(found.id, found.messages, f"{path}#{found.id}", options, bool(found.parent))

    def _session(self, name: str, messages: Iterable[Message], place: str, options: Options, child: bool) -> Item:
        if child:
            return Skipped(place, "sub-agent session, part of its parent")
        into, model = Conversation(), ""
        for info, parts in messages:
            if info.get("role") == "user":
                into.add_user([p for p in parts if p.get("type") == "text" and not p.get("synthetic")])
                continue
            model = str(info.get("modelID") or model)
            into.add_agent("")
            for part in parts:
                _add(into, part)
        if not into.drafts:
            return Skipped(place, "a session without a message of the agent")
        return Found(
            into.trajectory(name, name), into.task(name, options.instructions),
            Outcome(Triage.MISSING, reason="a session has no verdict"), place, self.name,
            model=model, agent="opencode", notes=into.notes,
        )  # fmt: skip


def _add(into: Conversation, part: Mapping[str, Any]) -> None:
    kind = part.get("type")
    if kind == "text":
        into.add_agent(part.get("text"), merge=True)
    elif kind == "reasoning":
        into.add_agent("", part.get("text"), merge=True)
    elif kind == "compaction":
        into.note("context compactions")
    elif kind == "tool":
        state = part.get("state") or {}
        into.add_call(part.get("tool"), state.get("input"), part.get("callID"))
        refused = state.get("status") == "error"
        code = as_mapping(state.get("metadata")).get("exit")  # a command that failed has the status of a completed call
        if refused or "output" in state:
            output = state.get("error") if refused else state.get("output")
            into.add_result(output, part.get("callID"), error=refused or (isinstance(code, int) and code != 0))
