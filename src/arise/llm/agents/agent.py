"""Use any chat model behind an OpenAI-compatible endpoint as an attempt's policy, with the same prompts and limits."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from arise.config import AgentConfig, ToolAgentConfig
from arise.config.llm import BudgetConfig, CallsConfig, EndpointConfig
from arise.llm.agents.outgrown import require_outgrown
from arise.llm.agents.tool_agent import ToolEndpointAgent
from arise.llm.client.client import Client, Observe, Unanswered
from arise.llm.client.conversation import Conversation
from arise.llm.client.spend import Budget
from arise.llm.first_call.first_call import first_call
from arise.llm.first_call.needs import agent_needs
from arise.llm.first_call.served import price_text
from arise.ports import Agent, Sandbox
from arise.rollouts.commands import act
from arise.run.calls import Store
from arise.types import ShownSkill, StopReason, Task, Trajectory, Turn

log = logging.getLogger(__name__)


class EndpointAgent:
    """The built-in shell agent with a model behind an endpoint; an unreachable model is a fault."""

    def __init__(self, client: Client, limits: AgentConfig) -> None:
        self.client, self.limits = client, limits

    async def attempt(
        self, task: Task, sandbox: Sandbox, system: str, shown: tuple[ShownSkill, ...], key: str, seed: int
    ) -> Trajectory:
        """Run one attempt; `key` and `seed` identify it, so a repeated evaluation reuses recorded replies."""
        messages = [{"role": "system", "content": system}, {"role": "user", "content": task.instruction}]
        turns: list[Turn] = []
        stop = StopReason.TURN_LIMIT
        while len(turns) < self.limits.max_turns:
            reply = await self.client.ask(Conversation(tuple(messages), f"{seed}/{key}"))
            if isinstance(reply, Unanswered):
                require_outgrown(reply, not turns)
                stop = StopReason.CONTEXT_LIMIT
                break
            turn, ended = await act(reply.text, "length" if reply.finish == "length" else "stop", sandbox, self.limits)
            turns.append(turn)
            if ended is not None:
                stop = ended
                break
            messages.append({"role": "assistant", "content": reply.text})
            messages.append({"role": "user", "content": turn.observations[0].text})
        return Trajectory(key, task.id, tuple(turns), stop, system, (), shown)


@asynccontextmanager
async def endpoint_agent(
    endpoint: EndpointConfig,
    limits: AgentConfig,
    budget: BudgetConfig,
    record: Path,
    observe: Observe,
    beside: Budget | None = None,
    *,
    again: bool = False,
    opening_chars: int = 0,
) -> AsyncIterator[Agent]:
    """Open an endpoint agent; its replies and costs are recorded in the file `record`.

    The first call is made here, before any attempt; `again` repeats it even if an earlier process made it. With
    `beside` it shares the cap of another budget. `opening_chars` is the length of the longest system prompt and
    instruction.
    """
    store = Store(record)
    try:
        spending = Budget(store, budget, beside)
        needs = agent_needs(limits, opening_chars)
        served = await first_call(endpoint, store, spending, "policy", needs, again=again)
        price = price_text(endpoint, spending.price(endpoint, served.tokens))
        log.info("policy: %s", served.line(endpoint, needs, price))
        endpoint = served.applied(endpoint)
        calls = CallsConfig(when_down="task_only")
        client = Client(endpoint, calls, store, spending, purpose="policy", observe=observe)
        try:
            if isinstance(limits, ToolAgentConfig):
                yield ToolEndpointAgent(client, limits)
            else:
                yield EndpointAgent(client, limits)
        finally:
            await client.close()
    finally:
        store.close()
