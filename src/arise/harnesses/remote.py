"""A harness with a model behind an endpoint, for evaluations: its conversation is kept as messages, not as tokens."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from arise.endpoint.exchange import Answer, Ask, Refused, guided
from arise.endpoint.sessions import OVERFLOWS, CallLimits, new_key
from arise.harnesses.launch import Ended, Launcher, silence
from arise.ports import PolicyLost, Sandbox, SandboxLost
from arise.rollouts.time_limit import UP
from arise.rollouts.tool_agent import Said
from arise.types import Observation, ShownSkill, StopReason, Task, ToolCall, Trajectory, Turn
from arise.types.chat import Message, ToolSpec

Speak = Callable[[Sequence[Message], Sequence[ToolSpec], str], Awaitable[Said]]
"""Returns the model's turn after messages, with tools; the last argument names the attempt."""


@dataclass
class RemoteSession:
    """A session that a model behind an endpoint answers; a call without tools, such as a title, is no turn."""

    speak: Speak
    attempt: str
    limits: CallLimits
    window: int
    guidance: str = ""
    model: str = "policy"
    token: str = field(default_factory=new_key)
    over: asyncio.Event = field(default_factory=asyncio.Event)
    calls: list[tuple[Ask, Message]] = field(default_factory=list)
    stop: StopReason | None = None
    overflows: int = 0
    """How many calls in a row did not fit into the context window."""
    fault: str = ""
    _answers: dict[bytes, Answer] = field(default_factory=dict)

    async def answer(self, ask: Ask, body: bytes, marked_retry: bool = False) -> Answer:
        """Answer a request with the model's reply, or repeat the answer for a marked retry; raise Refused."""
        if marked_retry and body in self._answers:
            return self._answers[body]
        if self.over.is_set():
            raise Refused("ended", self.fault or f"this attempt has ended ({self.stop or 'closed'})")
        if self.limits.calls and len(self.calls) >= self.limits.calls:
            self.stop = StopReason.TURN_LIMIT
            self.over.set()
            raise Refused("limit", f"the limit of {self.limits.calls} turns is reached")
        said = await self._said(ask)
        if said.finish == "context":
            raise self._overflow()
        self.overflows = 0
        reply = Message("assistant", said.reply.text, said.reply.reasoning, said.reply.calls)
        if ask.tools:
            self.calls.append((ask, reply))
        finish: Literal["stop", "length"] = "length" if said.finish == "length" else "stop"
        answer = Answer(len(self.calls), int(time.time()), self.model, reply, finish, 0, (), ())
        self._answers[body] = answer
        return answer

    def _overflow(self) -> Refused:
        """Count a prompt that does not fit; end the attempt of a client that sends one after the other."""
        self.overflows += 1
        if self.overflows >= OVERFLOWS:
            self.stop = StopReason.CONTEXT_LIMIT
            self.over.set()
        return Refused("context", "the conversation does not fit into the window of the model", "messages")

    async def _said(self, ask: Ask) -> Said:
        messages = guided(ask.messages, self.guidance) if ask.tools else ask.messages
        try:
            return await self.speak(messages, ask.tools, self.attempt)
        except PolicyLost as error:
            self.fault = str(error)
            self.over.set()
            raise Refused("unavailable", self.fault) from error

    def count(self, ask: Ask) -> int:
        """Return no count: the tokens of the model are not known here."""
        del ask
        return 0

    async def close(self) -> None:
        """Answer no further call."""
        self.over.set()

    def turns(self) -> tuple[Turn, ...]:
        """Return the agent's turns; what the client sent after a reply are its observations."""
        following = [ask.messages for ask, _ in self.calls[1:]]
        return tuple(
            _turn(reply, after[len(ask.messages) + 1 :])
            for (ask, reply), after in zip(self.calls, (*following, ()), strict=True)
        )


def _turn(reply: Message, after: Sequence[Message]) -> Turn:
    return Turn(
        reply.text,
        tuple(ToolCall(call.name, call.arguments, call.id) for call in reply.calls),
        tuple(Observation(each.text, call_id=each.call_id) for each in after if each.role in ("tool", "user")),
        reply.reasoning,
    )


@dataclass(frozen=True)
class RemoteHarnessAgent:
    """Run a harness in the sandbox of an attempt with a model behind an endpoint; `base` as in `HarnessAgent`."""

    launcher: Launcher
    speak: Speak
    limits: CallLimits
    window: int
    base: str = ""

    async def attempt(
        self, task: Task, sandbox: Sandbox, system: str, shown: tuple[ShownSkill, ...], key: str, seed: int
    ) -> Trajectory:
        """Run one attempt; a model that cannot be reached is a fault."""
        guidance = system.removeprefix(self.base).strip()
        session = RemoteSession(self.speak, f"{seed}/{key}", self.limits, self.window, guidance)
        ended = await self.launcher.run(session, sandbox, task.instruction, self.window, self.limits.tokens_per_call)
        if session.fault:
            raise PolicyLost(session.fault)
        if not session.calls:
            raise SandboxLost(silence(self.launcher.harness, ended))
        prompt = "\n\n".join(each.text for each in session.calls[0][0].messages if each.role == "system")
        return Trajectory(key, task.id, session.turns(), _stop_of(session, ended), prompt, (), shown)


def _stop_of(session: RemoteSession, ended: Ended) -> StopReason:
    if session.stop is not None:
        return session.stop
    if ended.how in ("timeout", UP):
        return StopReason.TIME_LIMIT
    return StopReason.CONTEXT_LIMIT if session.overflows else StopReason.FINISHED
