"""A custom agent: it makes one attempt at a task in a sandbox, one shell command per turn.

All randomness comes from `key` and `seed`, so that a resumed run equals an uninterrupted one.
"""

from arise import (
    AgentConfig,
    Engine,
    Observation,
    SamplingConfig,
    SamplingParams,
    Sandbox,
    ShownSkill,
    StopReason,
    Task,
    TokenRecord,
    ToolCall,
    Trajectory,
    Turn,
)


class MyAgent:
    """Run the lines that the model writes after `$ ` until it writes `$ submit` or reaches a limit."""

    def __init__(self, *, engine: Engine, limits: AgentConfig, sampling: SamplingConfig) -> None:
        self.engine, self.limits, self.sampling = engine, limits, sampling

    async def attempt(
        self, task: Task, sandbox: Sandbox, system: str, shown: tuple[ShownSkill, ...], key: str, seed: int
    ) -> Trajectory:
        """Return one trajectory with the exact tokens that the update learns from."""
        messages = [{"role": "system", "content": system}, {"role": "user", "content": task.instruction}]
        record = TokenRecord(self.engine.chat.prompt(messages))
        window = self.engine.capabilities().context_length
        turns: list[Turn] = []
        stop = StopReason.TURN_LIMIT
        while len(turns) < self.limits.max_turns:
            params = SamplingParams(
                self.limits.max_tokens, (), self.sampling.temperature, self.sampling.top_p, seed, conversation=key
            )
            (segment,) = await self.engine.sample(record.ids, params)
            record.add(segment)
            command = segment.text.strip().removeprefix("$").strip() or "true"
            if command == "submit" or segment.finish in ("length", "context"):
                stop = StopReason.FINISHED if command == "submit" else StopReason.TOKEN_LIMIT
                turns.append(Turn(segment.text))
                break
            result = await sandbox.run(command, self.limits.command_seconds)
            failed = result.ended != "exit" or result.exit_code != 0
            seen = result.output.strip()[: self.limits.observation_chars] or ("error" if failed else "done")
            turns.append(Turn(segment.text, (ToolCall("bash", {"command": command}),), (Observation(seen, failed),)))
            longer = self.engine.chat.extend(record.ids, seen)
            if len(longer) >= window:
                stop = StopReason.CONTEXT_LIMIT
                break
            record.ids = longer
        return Trajectory(key, task.id, tuple(turns), stop, system, (record.row(),), shown)
