"""The built-in agent: one shell command a turn, written after `$ `, until it submits or a limit ends it."""

import re

from arise.config import AgentConfig, SamplingConfig
from arise.ports import Chat, Engine, PolicyLost, Sandbox
from arise.rollouts.time_limit import UP
from arise.rollouts.token_record import TokenRecord
from arise.types import (
    CommandResult,
    Observation,
    SamplingParams,
    Segment,
    ShownSkill,
    StopReason,
    Task,
    ToolCall,
    Trajectory,
    Turn,
)

SYSTEM = "You work in a shell . Answer with one command : $ command . When the work is done : $ submit"
SUBMIT = "submit"
NO_COMMAND = "error: no command , answer with one line : $ command"
_COMMAND = re.compile(r"^\s*\$ ?(.+?)\s*$", re.MULTILINE)


def parse_command(text: str) -> str | None:
    """The first `$ command` line of an answer, None when there is none."""
    found = _COMMAND.search(text)
    return found[1] if found else None


def observe(result: CommandResult, limit: int) -> Observation:
    """A command's result as the agent sees it: output within the limit, and a word on how it failed."""
    text, cut = result.output.strip(), False
    if len(text) > limit:
        text, cut = text[:limit] + " ... (cut)", True
    failed = result.ended != "exit" or result.exit_code != 0
    if result.ended != "exit":
        text = f"{text}\nerror: ended by the {result.ended} limit".strip()
    return Observation(text or ("error" if failed else "done"), failed, cut or result.truncated)


async def act(text: str, finish: str, sandbox: Sandbox, limits: AgentConfig) -> tuple[Turn, StopReason | None]:
    """Run what the policy wrote; gives the turn, and why the attempt ends here, if it does."""
    if finish == "context":
        return Turn(text), StopReason.CONTEXT_LIMIT
    if finish == "length":
        return Turn(text), StopReason.TOKEN_LIMIT
    command = parse_command(text)
    if command is None:
        return Turn(text, (), (Observation(NO_COMMAND, error=True),)), None
    call = ToolCall("bash", {"command": command})
    if command == SUBMIT:
        return Turn(text, (call,)), StopReason.FINISHED
    result = await sandbox.run(command, limits.command_seconds)
    stop = StopReason.TIME_LIMIT if result.ended == UP else None
    return Turn(text, (call,), (observe(result, limits.observation_chars),)), stop


class ShellAgent:
    """Runs one attempt of the policy in a sandbox and keeps its exact token record."""

    def __init__(self, engine: Engine, chat: Chat, limits: AgentConfig, sampling: SamplingConfig) -> None:
        self.engine, self.chat, self.limits, self.sampling = engine, chat, limits, sampling

    async def attempt(
        self, task: Task, sandbox: Sandbox, system: str, shown: tuple[ShownSkill, ...], key: str, seed: int
    ) -> Trajectory:
        """One trajectory; `key` names the conversation and with `seed` fixes its randomness."""
        messages = [{"role": "system", "content": system}, {"role": "user", "content": task.instruction}]
        record = TokenRecord(self.chat.prompt(messages))
        turns: list[Turn] = []
        stop = StopReason.TURN_LIMIT
        window = self.engine.capabilities().context_length
        if len(record.ids) > window:
            raise PolicyLost(
                f"the first prompt of {task.id} has {len(record.ids)} tokens, the model's window is {window}: "
                "shorten the instruction, lower guidance.max_tokens or raise sampling.context_length"
            )
        while len(turns) < self.limits.max_turns:
            segment = await self._sample(record.ids, key, seed)
            record.add(segment)
            if segment.finish == "context" and not segment.ids:
                stop = StopReason.CONTEXT_LIMIT
                break
            turn, ended = await act(segment.text, segment.finish, sandbox, self.limits)
            turns.append(turn)
            if ended is not None:
                stop = ended
                break
            longer = self.chat.extend(record.ids, turns[-1].observations[0].text)
            if len(longer) >= window:
                stop = StopReason.CONTEXT_LIMIT
                break
            record.ids = longer
        return Trajectory(key, task.id, tuple(turns), stop, system, (record.row(),), shown)

    async def _sample(self, ids: list[int], key: str, seed: int) -> Segment:
        params = SamplingParams(
            self.limits.max_tokens, (), self.sampling.temperature, self.sampling.top_p, seed, conversation=key
        )
        (segment,) = await self.engine.sample(ids, params)
        return segment
