"""A chat format over bytes for tests: control ids above 255, one style for each habit that makes real templates drift.

Rendering an assistant turn again normalises its calls and drops its reasoning, so a re-render differs from what was
sampled whenever the policy wrote it otherwise.
"""

# ruff: noqa: ARG002 - the port passes tools to every method
import json
from collections.abc import Sequence
from dataclasses import dataclass

from arise.ports import StreamReader
from arise.types.chat import FunctionCall, Message, Reply, ToolSpec

ROLES = {"system": 256, "user": 257, "assistant": 258, "tool": 259}
END, CALL, CALL_END, THINK, THINK_END, TOOLS = range(260, 266)
VOCABULARY = 300


@dataclass(frozen=True)
class ByteFormat:
    """One style: JSON separators, whether past reasoning is kept, and whether the next role itself ends a turn."""

    separators: tuple[str, str] = (", ", ": ")
    keeps_reasoning: bool = False
    role_ends_turn: bool = False
    newline: bool = False
    extends: bool = True

    @property
    def stop_ids(self) -> frozenset[int]:
        return frozenset({ROLES["user"], ROLES["tool"]} if self.role_ends_turn else {END})

    def prompt(self, messages: Sequence[Message], tools: Sequence[ToolSpec] = ()) -> list[int]:
        ids = [TOOLS, *_bytes(json.dumps([tool.name for tool in tools])), END] if tools else []
        for message in messages:
            ids += self._message(message)
        return [*ids, ROLES["assistant"]]

    def extend(
        self, ids: Sequence[int], messages: Sequence[Message], tools: Sequence[ToolSpec] = ()
    ) -> list[int] | None:
        if not self.extends:
            return None
        tail = [i for message in messages for i in self._message(message)]
        if self.role_ends_turn:
            tail = tail[1:] if tail[0] == ids[-1] else tail
        else:
            tail = [*([] if ids[-1] == END else [END]), *([10] if self.newline else []), *tail]
        return [*ids, *tail, ROLES["assistant"]]

    def answer(self, message: Message, tools: Sequence[ToolSpec] = ()) -> list[int]:
        said = [THINK, *_bytes(message.reasoning), THINK_END] if message.reasoning else []
        said += _bytes(message.text)
        for call in message.calls:
            said += [CALL, *_bytes(call.raw or self._json(call)), CALL_END]
        return [*said, ROLES["user"] if self.role_ends_turn else END]

    def read(self, ids: Sequence[int], tools: Sequence[ToolSpec] = (), prompt: Sequence[int] = ()) -> Reply:
        body = [i for i in ids if i not in self.stop_ids]
        reasoning = ""
        if THINK in body:
            end = body.index(THINK_END) if THINK_END in body else len(body)
            reasoning, body = _text(body[body.index(THINK) + 1 : end]), body[end + 1 :]
        text, *calls = _split(body, CALL)
        found = []
        for part in calls:
            if CALL_END not in part:
                return Reply(_text(body), reasoning, (), "the call does not end")
            value = json.loads(_text(part[: part.index(CALL_END)]))
            found.append(FunctionCall("", value["name"], value["arguments"]))
        return Reply(_text(text), reasoning, tuple(found))

    def stream(self, tools: Sequence[ToolSpec] = (), prompt: Sequence[int] = ()) -> StreamReader:
        raise NotImplementedError("the endpoint buffers answers")

    def text(self, ids: Sequence[int]) -> str:
        return _text(ids)

    def count(self, text: str) -> int:
        return len(_bytes(text))

    def _message(self, message: Message) -> list[int]:
        if message.role != "assistant":
            return [ROLES[message.role], *_bytes(message.text), *([] if self.role_ends_turn else [END])]
        kept = message if self.keeps_reasoning else Message("assistant", message.text, calls=message.calls)
        plain = tuple(FunctionCall(call.id, call.name, call.arguments) for call in kept.calls)
        ids = self.answer(Message("assistant", kept.text, kept.reasoning, plain))
        return [ROLES["assistant"], *(ids[:-1] if self.role_ends_turn else ids), *([10] if self.newline else [])]

    def _json(self, call: FunctionCall) -> str:
        return json.dumps({"name": call.name, "arguments": dict(call.arguments)}, separators=self.separators)


STYLES = tuple(
    ByteFormat(separators, keeps, ends)
    for separators in ((", ", ": "), (",", ":"))
    for keeps in (False, True)
    for ends in (False, True)
)


def _bytes(text: str) -> list[int]:
    return list(text.encode("utf-8", "surrogatepass"))


def _text(ids: Sequence[int]) -> str:
    return bytes(i for i in ids if i < 256).decode("utf-8", "replace")


def _split(ids: Sequence[int], mark: int) -> list[list[int]]:
    parts: list[list[int]] = [[]]
    for i in ids:
        if i == mark:
            parts.append([])
        else:
            parts[-1].append(i)
    return parts
