"""Demonstrations of a warm start: made by a scripted worker with the agent of the run, written as its tokens."""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from arise.compose.harnesses import HarnessParts
from arise.config import Config, ToolAgentConfig, WorldTasks
from arise.config.agent import HarnessConfig
from arise.endpoint.exchange import guided
from arise.endpoint.rehearsal import Conversation
from arise.engines.chat import ChatFormat
from arise.engines.formats.templates import plain_call, protocol
from arise.errors import AriseError, Exit
from arise.harnesses.rehearse import rehearse
from arise.ports import Format, Sandbox, SandboxLost, SandboxPool
from arise.rollouts.commands import SUBMIT, observe
from arise.rollouts.guidance import with_guidance
from arise.rollouts.tools import SPECS
from arise.sandbox import SandboxUnavailable
from arise.types import FunctionCall, Message, Tokens
from arise.world.instance import Script
from arise.world.shell_agent import SYSTEM
from arise.world.warm_start import TRIES, Commands, Demonstration, demonstrate, in_commands, worker

log = logging.getLogger(__name__)

RowWriter = Callable[[Demonstration[Any], np.random.Generator], Tokens]


async def demonstrations(
    config: Config, sandboxes: SandboxPool, harness: HarnessParts | None
) -> list[Demonstration[Any]]:
    """Run the demonstrations of a configuration; through a harness if that is the agent."""
    if not isinstance(config.tasks, WorldTasks):
        raise AriseError(
            "config",
            Exit.CONFIG,
            f"model.kind = {config.model.kind!r} with demonstrations needs tasks.kind = 'world'",
            "nothing was started",
            "set model.kind = 'pretrained' with demonstrations = 0 for tasks of your own",
        )
    log.info("warm start: running %d demonstrations in sandboxes", config.model.demonstrations)
    try:
        return await _demonstrated(config, config.tasks, sandboxes, harness)
    except SandboxUnavailable:
        raise
    except SandboxLost as fault:
        raise AriseError(
            "sandbox",
            Exit.ENGINE,
            f"a demonstration of the warm start lost its sandbox {TRIES} times: {fault}",
            "nothing was trained",
            "`arise doctor` tests the sandbox; then run the same command again",
        ) from fault


async def _demonstrated(
    config: Config, world: WorldTasks, sandboxes: SandboxPool, harness: HarnessParts | None
) -> list[Demonstration[Any]]:
    agent, count = config.agent, config.model.demonstrations
    if not isinstance(agent, HarnessConfig):
        play = in_commands(
            lambda result: observe(result, agent.observation_chars),
            agent.max_turns,
            agent.command_seconds,
            looks_at_once=isinstance(agent, ToolAgentConfig),
        )
        return await demonstrate(world, count, sandboxes, play)
    assert harness is not None, "a run with a harness opens it first"
    launcher, window = harness.launcher, config.sampling.context_length

    async def through_harness(instruction: str, script: Script, sandbox: Sandbox) -> Conversation:
        step = worker(script, agent.max_turns)
        return await rehearse(launcher, sandbox, instruction, step, window, agent.max_tokens)

    return await demonstrate(world, count, sandboxes, through_harness)


def texts(demonstration: Demonstration[Any]) -> list[str]:
    """Return every text of a demonstration, to train a tokenizer on."""
    if isinstance(demonstration.turns, Conversation):
        said = demonstration.turns
        answers = [text for reply, _ in said.turns for text in (reply.text, *map(plain_call, reply.calls))]
        shown = [message.text for _, after in said.turns for message in after]
        return [protocol(said.tools), *(message.text for message in said.opening), *answers, *shown]
    return [demonstration.instruction, *(text for turn in demonstration.turns for text in turn)]


def row_writer(config: Config, tokenizer: Any, chat: Callable[[], Format]) -> RowWriter:
    """Return the function that turns a demonstration into tokens for the agent of this run."""
    if isinstance(config.agent, HarnessConfig):
        return partial(conversation_row, chat())
    if isinstance(config.agent, ToolAgentConfig):
        return partial(tool_demonstration_row, chat(), config.agent)
    return partial(demonstration_row, ChatFormat(tokenizer))


def conversation_row(chat: Format, demonstration: Demonstration[Conversation], random: np.random.Generator) -> Tokens:
    """Return a demonstration through a harness, in the tokens that the endpoint records."""
    said = demonstration.turns
    opening = guided(said.opening, with_guidance("", demonstration.guidance(random)).strip())
    ids = chat.prompt(opening, said.tools)
    generated = [False] * len(ids)
    for reply, after in said.turns:
        answer = chat.answer(reply, said.tools)
        ids, generated = [*ids, *answer], [*generated, *[True] * len(answer)]
        if after:
            longer = chat.extend(ids, after, said.tools)
            assert longer is not None, "a format continues what it wrote itself"
            ids, generated = longer, [*generated, *[False] * (len(longer) - len(ids))]
    return _as_tokens(ids, generated)


def tool_demonstration_row(
    chat: Format, agent: ToolAgentConfig, demonstration: Demonstration[Commands], random: np.random.Generator
) -> Tokens:
    """Return a demonstration as `bash` calls, in the token format that the tool agent records."""
    system = with_guidance(agent.system_prompt, demonstration.guidance(random))
    tools = [SPECS[name] for name in agent.tools]
    ids = chat.prompt([Message("system", system), Message("user", demonstration.instruction)], tools)
    generated = [False] * len(ids)
    for number, (answer, observation) in enumerate(demonstration.turns):
        command = answer.removeprefix("$ ")
        call = FunctionCall(f"call{number:05d}", "bash", {"command": command})
        done = command == SUBMIT
        said = chat.answer(Message("assistant", "Done.") if done else Message("assistant", calls=(call,)), tools)
        ids, generated = [*ids, *said], [*generated, *[True] * len(said)]
        if done:
            break
        longer = chat.extend(ids, [Message("tool", observation, call_id=call.id, name="bash")], tools)
        assert longer is not None, "a format continues what it wrote itself"
        ids, generated = longer, [*generated, *[False] * (len(longer) - len(ids))]
    return _as_tokens(ids, generated)


def demonstration_row(chat: ChatFormat, demonstration: Demonstration[Commands], random: np.random.Generator) -> Tokens:
    """Return a demonstration with matching guidance, in the token format that the shell agent records."""
    system = with_guidance(SYSTEM, demonstration.guidance(random))
    messages = [{"role": "system", "content": system}, {"role": "user", "content": demonstration.instruction}]
    ids = chat.prompt(messages)
    generated = [False] * len(ids)
    for number, (answer, observation) in enumerate(demonstration.turns, start=1):
        said = chat.answer(answer)
        ids, generated = [*ids, *said], [*generated, *[True] * len(said)]
        if number < len(demonstration.turns):
            ids = chat.extend(ids, observation)
            generated += [False] * (len(ids) - len(generated))
    return _as_tokens(ids, generated)


def _as_tokens(ids: Sequence[int], generated: Sequence[bool]) -> Tokens:
    return Tokens(
        np.array(ids, dtype=np.int64),
        np.array(generated, dtype=np.bool_),
        np.zeros(len(ids)),
        np.full(len(ids), -1, dtype=np.int64),
    )
