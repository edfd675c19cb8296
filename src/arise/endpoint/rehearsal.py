"""A session that a script answers: the client runs as usual, and its conversation is kept as messages, not tokens."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from arise.endpoint.canonical import matching, path_of
from arise.endpoint.exchange import Answer, Ask
from arise.endpoint.sessions import new_key
from arise.types.chat import Message, ToolSpec

ASIDE = Message("assistant", "ok")
"""The answer to a call without tools, such as a title."""


@dataclass(frozen=True)
class Conversation:
    """What a client sent and what was answered, in order."""

    tools: tuple[ToolSpec, ...]
    opening: tuple[Message, ...]
    turns: tuple[tuple[Message, tuple[Message, ...]], ...]
    """Each reply with the messages that the client sent after it; the last has none."""


class Rewritten(Exception):  # noqa: N818 - what happened, not which class of error it is
    """The client did not resend its history as it was."""


@dataclass
class Rehearsal:
    """A session whose agent calls are answered by `speak`, which receives the request."""

    speak: Callable[[Ask], Message]
    model: str = "policy"
    window: int | None = None
    token: str = field(default_factory=new_key)
    over: asyncio.Event = field(default_factory=asyncio.Event)
    calls: list[tuple[Ask, Message]] = field(default_factory=list)

    async def answer(self, ask: Ask, body: bytes, marked_retry: bool = False) -> Answer:  # noqa: ARG002
        """Answer a request from the script; a call without tools is not part of the conversation."""
        reply = self.speak(ask) if ask.tools else ASIDE
        if ask.tools:
            self.calls.append((ask, reply))
        return Answer(len(self.calls), int(time.time()), self.model, reply, "stop", 0, (), ())

    def count(self, ask: Ask) -> int:
        """Return no count: there are no tokens here."""
        del ask
        return 0

    async def close(self) -> None:
        """Answer no further call."""
        self.over.set()

    def conversation(self) -> Conversation:
        """Return the whole conversation; raise Rewritten if a request does not continue the one before it."""
        opening = self.calls[0][0]
        turns = list[tuple[Message, tuple[Message, ...]]]()
        for (ask, reply), (following, _) in zip(self.calls, self.calls[1:], strict=False):
            so_far = path_of((*ask.messages, reply))
            if matching(so_far, path_of(following.messages)) < len(so_far):
                raise Rewritten(f"call {len(turns) + 2} does not continue the one before it")
            turns.append((reply, following.messages[len(so_far) :]))
        return Conversation(opening.tools, opening.messages, (*turns, (self.calls[-1][1], ())))
