"""A harness in miniature: it talks to a history turn by turn and resends everything, each time written differently."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random

from arise.endpoint.history import Call, History
from arise.ports import Format
from arise.types import Segment
from arise.types.chat import FunctionCall, Message, ToolSpec
from tests.unit.endpoint.byte_format import ByteFormat

BASH = ToolSpec("bash", "Run a command.", {"type": "object", "properties": {"command": {"type": "string"}}})
OPENING = (Message("system", "You work in a shell."), Message("user", "Fix it."))


def segment(ids: Sequence[int], finish: str = "stop") -> Segment:
    """Sampled ids with log-probs that tell positions apart."""
    logprobs = tuple(-0.001 * (1 + n % 7) for n in range(len(ids)))
    return Segment(tuple(ids), logprobs, (3,) * len(ids), "", finish)


def bash(command: str, raw: str = "") -> FunctionCall:
    return FunctionCall("", "bash", {"command": command, "n": 1}, raw)


def loose(command: str) -> FunctionCall:
    """The same call as a policy might write it: other key order and spacing than any template."""
    return bash(command, '{"arguments":{ "n" :1,"command" :' + json.dumps(command) + '}, "name":"bash" }')


@dataclass
class Harness:
    """Keeps a conversation, sends it, and appends what comes back."""

    format: Format = field(default_factory=ByteFormat)
    tools: tuple[ToolSpec, ...] = (BASH,)
    messages: list[Message] = field(default_factory=lambda: list(OPENING))
    history: History = field(init=False)
    sent: list[tuple[tuple[int, ...], tuple[int, ...]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.history = History(self.format)

    def ask(self, reply: Message, messages: Sequence[Message] | None = None, finish: str = "stop") -> Call:
        """One request and its answer; the sampled ids are those of `reply`, cut before the stop token for `length`."""
        plan = self.history.plan(self.messages if messages is None else messages, self.tools)
        ids = self.format.answer(reply, self.tools)
        ids = ids if finish == "stop" else ids[:-1]
        read = self.format.read(ids, self.tools)
        said = Message("assistant", read.text, read.reasoning, _named(read.calls, len(self.sent)))
        self.sent.append((plan.ids, tuple(ids)))
        return self.history.commit(plan, segment(ids, finish), said)

    def turn(self, reply: Message, *results: Message) -> Call:
        """Ask, then append the answer and what the tools gave."""
        call = self.ask(reply)
        self.messages += [call.reply, *results]
        return call


def _named(calls: Sequence[FunctionCall], turn: int) -> tuple[FunctionCall, ...]:
    return tuple(replace(call, id=f"call_{turn}_{n}") for n, call in enumerate(calls))


def resent(message: Message, random: Random) -> Message:
    """A message as some client sends it back: trimmed, reordered, without ids or reasoning."""
    if message.role == "tool" and random.random() < 0.3:
        return replace(message, call_id="", name="")
    if message.role != "assistant":
        return message
    calls = tuple(_reordered(call, random) for call in message.calls)
    reasoning = message.reasoning if random.random() < 0.5 else ""
    text = message.text.strip() if random.random() < 0.5 else message.text
    return replace(message, text=text, reasoning=reasoning, calls=calls)


def _reordered(call: FunctionCall, random: Random) -> FunctionCall:
    names = list(call.arguments)
    random.shuffle(names)
    arguments = {name: call.arguments[name] for name in names}
    if isinstance(arguments.get("n"), int) and random.random() < 0.3:  # some families write it as text
        arguments["n"] = 1.0
    return FunctionCall(call.id if random.random() < 0.5 else "", call.name, arguments)
