"""The built-in agent for instruct models: native tool calls until it answers without one, or a limit ends it.

`converse` is the loop for any speaker: `PolicySpeaker` samples the policy in training and records its exact tokens,
`llm/agent.py` calls a model behind an endpoint.
"""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from arise.config import SamplingConfig, ToolAgentConfig
from arise.ports import Engine, Format, FormatError, PolicyLost, Sandbox
from arise.rollouts.token_record import TokenRecord
from arise.rollouts.tools import Toolbox
from arise.types import (
    FunctionCall,
    Message,
    Observation,
    Reply,
    SamplingParams,
    ShownSkill,
    StopReason,
    Task,
    ToolCall,
    Trajectory,
    Turn,
)

REMINDERS = 3
"""Number of reminders for a policy that has called no tool; after them, an answer without a call ends the attempt."""

_FENCE = re.compile(r"^```\w*", re.MULTILINE)
EXAMPLE = FunctionCall("call00000", "bash", {"command": "ls -la"})


@dataclass(frozen=True)
class Said:
    """One assistant turn; `finish` is `stop`, `length`, `context`, or `budget` if no tokens were left."""

    reply: Reply
    finish: str


class Speaker(Protocol):
    """The model that produces the assistant's turns."""

    async def say(self) -> Said: ...
    def hear(self, messages: Sequence[Message]) -> StopReason | None: ...
    def example(self) -> str: ...


async def converse(speaker: Speaker, toolbox: Toolbox, limits: ToolAgentConfig) -> tuple[tuple[Turn, ...], StopReason]:
    """Run turns until the agent finishes or reaches a limit; every other turn gets a response."""
    begun, turns = time.monotonic(), list[Turn]()
    while len(turns) < limits.max_turns:
        if time.monotonic() - begun > limits.attempt_seconds:
            return tuple(turns), StopReason.TIME_LIMIT
        said = await speaker.say()
        if said.finish == "budget" or (said.finish == "context" and said.reply == Reply()):
            return tuple(turns), StopReason.TOKEN_LIMIT if said.finish == "budget" else StopReason.CONTEXT_LIMIT
        turn, answers, stop = await _respond(said, toolbox, turns, speaker)
        turns.append(turn)
        stop = stop or (StopReason.CONTEXT_LIMIT if said.finish == "context" else speaker.hear(answers))
        if stop is not None:
            return tuple(turns), stop
    return tuple(turns), StopReason.TURN_LIMIT


async def _respond(
    said: Said, toolbox: Toolbox, turns: Sequence[Turn], speaker: Speaker
) -> tuple[Turn, list[Message], StopReason | None]:
    """Return the turn with its observations, the response messages, and the stop reason if the attempt ends."""
    reply = said.reply
    if said.reply.calls and said.finish != "context":
        return await _call(reply, toolbox)
    silent = not any(turn.calls for turn in turns)
    answer = _correction(said, silent, speaker)
    if answer is None:
        if not silent or len(turns) >= REMINDERS:
            return Turn(reply.text, reasoning=reply.reasoning), [], StopReason.FINISHED
        answer = (
            f"You have not called a tool, so nothing was done.{_not_run(reply.text)} {_how(speaker)}\n"
            "If there is nothing to do, answer again without a call."
        )
    turn = Turn(reply.text, (), (Observation(answer, error=True),), reply.reasoning)
    return turn, [Message("user", answer)], None


def _correction(said: Said, silent: bool, speaker: Speaker) -> str | None:
    """Return the correction for a truncated turn or a malformed call, else None."""
    if said.finish == "length":
        cut = "Your message was cut: it is too long. Say less, and write long files in several steps."
        return f"{cut}{_not_run(said.reply.text)} {_how(speaker)}" if silent else cut
    if said.reply.malformed:
        return f"Your tool call could not be read: {said.reply.malformed}. Nothing was run. {_how(speaker)}"
    return None


def _not_run(text: str) -> str:
    """Say that a fenced block is no call, if the text has one: small models answer with a program instead of acting."""
    found = _FENCE.search(text)
    return f" The {found[0]} block in it was not run." if found else ""


def _how(speaker: Speaker) -> str:
    return f"To act, call a tool like this:\n{speaker.example()}"


async def _call(reply: Reply, toolbox: Toolbox) -> tuple[Turn, list[Message], StopReason | None]:
    """Run the calls of a turn in order."""
    calls, observations = list[ToolCall](), list[Observation]()
    for call in reply.calls:
        seen, time_is_up = await toolbox.run(call)
        calls.append(ToolCall(call.name, call.arguments, call.id))
        observations.append(seen)
        if time_is_up:
            turn = Turn(reply.text, tuple(calls), tuple(observations), reply.reasoning)
            return turn, [], StopReason.TIME_LIMIT
    turn = Turn(reply.text, tuple(calls), tuple(observations), reply.reasoning)
    answers = [
        Message("tool", seen.text, call_id=call.id, name=call.name)
        for call, seen in zip(reply.calls, observations, strict=True)
    ]
    return turn, answers, None


class PolicySpeaker:
    """The policy in training: samples each turn after the exact tokens of the conversation so far."""

    def __init__(
        self, engine: Engine, chat: Format, toolbox: Toolbox, limits: ToolAgentConfig, sampling: SamplingConfig
    ) -> None:
        self._engine, self._chat, self._tools, self._limits, self._sampling = (
            engine,
            chat,
            toolbox.specs,
            limits,
            sampling,
        )
        self._window = engine.capabilities().context_length
        self._messages: list[Message] = []
        self._records: list[TokenRecord] = []
        self._generated = self._calls = 0
        self._key, self._seed = "", 0

    def begin(self, task: Task, system: str, key: str, seed: int) -> None:
        """Start the conversation; `key` and `seed` determine its randomness."""
        self._key, self._seed = key, seed
        self._messages = [Message("system", system), Message("user", task.instruction)]
        ids = self._prompt()
        if len(ids) >= self._window:
            raise PolicyLost(
                f"the first prompt of {task.id} has {len(ids)} tokens, the model's window is {self._window}: "
                "shorten the instruction, lower guidance.max_tokens or raise sampling.context_length"
            )
        self._records.append(TokenRecord(ids))

    @property
    def rows(self) -> tuple[TokenRecord, ...]:
        """Return the token records that contain sampled tokens."""
        return tuple(record for record in self._records if record.spans)

    async def say(self) -> Said:
        """Sample and parse one turn."""
        left = self._limits.attempt_tokens - self._generated
        if left <= 0:
            return Said(Reply(), "budget")
        record, prompt = self._records[-1], list(self._records[-1].ids)
        row = f"/row{len(self._records)}" if len(self._records) > 1 else ""
        params = SamplingParams(
            min(self._limits.max_tokens, left),
            (),
            self._sampling.temperature,
            self._sampling.top_p,
            self._seed,
            conversation=self._key + row,
        )
        (segment,) = await self._engine.sample(prompt, params)
        record.add(segment)
        self._generated += len(segment.ids)
        reply = self._numbered(self._chat.read(segment.ids, self._tools, prompt))
        self._messages.append(Message("assistant", reply.text, reply.reasoning, reply.calls))
        return Said(reply, segment.finish)

    def hear(self, messages: Sequence[Message]) -> StopReason | None:
        """Append the messages to the token row, or start a new row if it cannot be extended."""
        reasoned = bool(self._messages[-1].reasoning)
        self._messages += messages
        record = self._records[-1]
        longer = None
        if not (reasoned and self._limits.reasoning == "drop"):
            longer = self._chat.extend(record.ids, messages, self._tools)
        ids = self._prompt() if longer is None else longer
        if len(ids) >= self._window:
            return StopReason.CONTEXT_LIMIT
        if longer is None:
            self._records.append(TokenRecord(ids))
        else:
            record.ids = longer
        return None

    def example(self) -> str:
        """Return an example call in the format of this model."""
        ids = self._chat.answer(Message("assistant", calls=(EXAMPLE,)), self._tools)
        return self._chat.text(ids)

    def _prompt(self) -> list[int]:
        drop = self._limits.reasoning == "drop"
        messages = [replace(message, reasoning="") if drop else message for message in self._messages]
        try:
            return self._chat.prompt(messages, self._tools)
        except FormatError as error:
            raise PolicyLost(str(error)) from None

    def _numbered(self, reply: Reply) -> Reply:
        """Return the reply with call ids that are unique in the conversation."""
        first = self._calls
        self._calls += len(reply.calls)
        calls = tuple(replace(call, id=f"call{first + n:05d}") for n, call in enumerate(reply.calls))
        return replace(reply, calls=calls)


class ToolAgent:
    """Implements `ports.Agent`: one attempt of the policy in a sandbox, with its exact token rows."""

    def __init__(self, engine: Engine, chat: Format, limits: ToolAgentConfig, sampling: SamplingConfig) -> None:
        self.engine, self.chat, self.limits, self.sampling = engine, chat, limits, sampling

    async def attempt(
        self, task: Task, sandbox: Sandbox, system: str, shown: tuple[ShownSkill, ...], key: str, seed: int
    ) -> Trajectory:
        """Make one attempt; the same `key` and `seed` sample the same tokens."""
        toolbox = Toolbox(sandbox, self.limits.tools, self.limits.command_seconds, self.limits.observation_chars)
        speaker = PolicySpeaker(self.engine, self.chat, toolbox, self.limits, self.sampling)
        speaker.begin(task, system, key, seed)
        turns, stop = await converse(speaker, toolbox, self.limits)
        rows = tuple(record.row() for record in speaker.rows)
        return Trajectory(key, task.id, turns, stop, system, rows, shown)
