"""The agent of the embedded world, with text spaced for the tokenizer of the small built-in model."""

from arise.config import AgentConfig, SamplingConfig
from arise.ports import Chat, Engine, PolicyLost, Sandbox
from arise.rollouts.commands import act
from arise.rollouts.token_record import TokenRecord
from arise.types import SamplingParams, Segment, ShownSkill, StopReason, Task, Trajectory, Turn

SYSTEM = "You work in a shell . Answer with one command : $ command . When the work is done : $ submit"


class ShellAgent:
    """Run one attempt of the policy in a sandbox and record its exact tokens."""

    def __init__(self, engine: Engine, chat: Chat, limits: AgentConfig, sampling: SamplingConfig) -> None:
        self.engine, self.chat, self.limits, self.sampling = engine, chat, limits, sampling

    async def attempt(
        self, task: Task, sandbox: Sandbox, system: str, shown: tuple[ShownSkill, ...], key: str, seed: int
    ) -> Trajectory:
        """Return one trajectory; `key` names the conversation and with `seed` fixes its randomness."""
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
