"""The tool agent with its turns written by an endpoint: native tool calls, or the plain protocol without them."""

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from arise.config import ToolAgentConfig
from arise.engines.formats.syntaxes import PLAIN, MalformedCallError
from arise.engines.formats.templates import in_plain_text, message_dict, plain_call, tool_dict
from arise.llm.agents.outgrown import require_outgrown
from arise.llm.client.client import Client, Unanswered
from arise.llm.client.conversation import Conversation
from arise.llm.client.failures import Refused
from arise.ports import Sandbox
from arise.rollouts.tool_agent import EXAMPLE, Said, converse
from arise.rollouts.tools import Toolbox
from arise.types import FunctionCall, Message, Reply, ShownSkill, StopReason, Task, ToolSpec, Trajectory

log = logging.getLogger(__name__)

OPENING = 2
"""The number of messages before the first turn: system prompt and instruction."""


class ToolEndpointAgent:
    """The built-in tool agent with a model behind an endpoint; a model that cannot be reached is a fault."""

    def __init__(self, client: Client, limits: ToolAgentConfig) -> None:
        self.client, self.limits = client, limits
        self.native = True
        """Whether the server accepts `tools`; after the first refusal no attempt offers them again."""

    async def attempt(
        self, task: Task, sandbox: Sandbox, system: str, shown: tuple[ShownSkill, ...], key: str, seed: int
    ) -> Trajectory:
        """Run one attempt; `key` and `seed` identify it, so a repeated evaluation reuses recorded replies."""
        toolbox = Toolbox(sandbox, self.limits.tools, self.limits.command_seconds, self.limits.observation_chars)
        opening = [Message("system", system), Message("user", task.instruction)]
        speaker = _EndpointSpeaker(self, opening, toolbox.specs, f"{seed}/{key}")
        turns, stop = await converse(speaker, toolbox, self.limits)
        return Trajectory(key, task.id, turns, stop, system, (), shown)

    async def ask(self, messages: Sequence[Message], tools: Sequence[ToolSpec], asker: str) -> Said:
        """Return one turn; ask again without tools if the server refuses them."""
        first = len(messages) == OPENING
        if self.native:
            offered = tuple(map(tool_dict, tools))
            reply = await self.client.ask(Conversation(tuple(map(_entry, messages)), asker, tools=offered))
            if not isinstance(reply, Unanswered):
                return Said(native_reply(reply.text), _finish(reply.finish))
            if reply.reason != Refused.kind or not first:
                return _filled(reply, first)
            log.warning("the server refuses tools (%s): they are described in the system message", reply.detail)
            self.native = False
        plain = in_plain_text(messages, tools)
        reply = await self.client.ask(Conversation(tuple(map(_entry, plain)), asker))
        if isinstance(reply, Unanswered):
            return _filled(reply, first)
        return Said(plain_reply(reply.text, tools), _finish(reply.finish))


def _filled(reply: Unanswered, first: bool) -> Said:
    require_outgrown(reply, first)
    return Said(Reply(), "context")


def _finish(named: str) -> str:
    return "length" if named == "length" else "stop"


class _EndpointSpeaker:
    def __init__(
        self, agent: ToolEndpointAgent, messages: list[Message], tools: Sequence[ToolSpec], asker: str
    ) -> None:
        self._agent, self._messages, self._tools, self._asker = agent, messages, tools, asker

    async def say(self) -> Said:
        said = await self._agent.ask(self._messages, self._tools, self._asker)
        # Reasoning is not sent back, because servers do not agree on a field for it.
        self._messages.append(Message("assistant", said.reply.text, calls=said.reply.calls))
        return said

    def hear(self, messages: Sequence[Message]) -> StopReason | None:
        self._messages += messages
        return None

    def example(self) -> str:
        return "use the tool-calling interface" if self._agent.native else plain_call(EXAMPLE)


def native_reply(text: str) -> Reply:
    """Read a recorded message with its calls; an invalid call makes the reply malformed."""
    message = json.loads(text)
    calls = list[FunctionCall]()
    try:
        for number, call in enumerate(message["tool_calls"]):
            calls.append(_function_call(number, call))
    except ValueError as error:
        return Reply(message["content"] or json.dumps(message["tool_calls"]), message["reasoning"], (), str(error))
    return Reply(message["content"], str(message["reasoning"]), tuple(calls))


def _function_call(number: int, call: Any) -> FunctionCall:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise ValueError("a tool call has no function name")
    given = function.get("arguments") or "{}"
    try:
        arguments = json.loads(given) if isinstance(given, str) else given
    except ValueError as error:
        raise ValueError(f"the arguments of {function['name']} are not valid JSON ({error})") from None
    if not isinstance(arguments, Mapping):
        raise ValueError(f"the arguments of {function['name']} are not a JSON object")
    name = call.get("id")
    return FunctionCall(name if isinstance(name, str) and name else f"call{number:05d}", function["name"], arguments)


def plain_reply(text: str, tools: Sequence[ToolSpec]) -> Reply:
    """Read a reply in the plain protocol: reasoning tags, then text and call blocks."""
    reasoning, found, rest = text.partition("</think>")
    thought = reasoning.strip().removeprefix("<think>").strip() if found else ""
    said = rest if found else text
    try:
        calls, left = PLAIN.read(said, tools)
    except MalformedCallError as error:
        return Reply(said.strip(), thought, (), str(error))
    return Reply(left.strip(), thought, tuple(calls))


def _entry(message: Message) -> dict[str, Any]:
    entry = message_dict(message, json_arguments=True)
    entry.pop("name", None)  # servers match a result to its call by id
    return entry
