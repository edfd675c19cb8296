"""Rows of the tool agent: what was sampled is what is trained, at a ratio of 1 before the first update."""

import asyncio
from pathlib import Path

from tests.conformance.conftest import EngineMaker
from tests.tool_models import limits

from arise.config import SamplingConfig
from arise.rollouts.tool_agent import ToolAgent
from arise.sandbox import BubblewrapPool
from arise.types import Example, LossSpec, OptimSpec, Place, Task, Trajectory


def test_the_ratio_of_every_token_is_one_at_the_first_update(make_engine: EngineMaker, tmp_path: Path) -> None:
    engine = make_engine(context_length=2048, scale=1.0)
    agent = ToolAgent(engine, engine.format, limits(max_turns=3, max_tokens=24), SamplingConfig())

    async def attempt(pool: BubblewrapPool, number: int) -> Trajectory:
        sandbox = await pool.open(Place(tmp_path))
        try:
            return await agent.attempt(Task("t", "List the files."), sandbox, "Use tools.", (), f"k0/t/{number}", 0)
        finally:
            await sandbox.close()

    async def run() -> None:
        async with BubblewrapPool(2) as pool:
            attempts = await asyncio.gather(*(attempt(pool, number) for number in range(4)))
        assert all(len(found.turns) > 1 for found in attempts)
        batch = [Example(found.rows, (-1.0) ** n) for n, found in enumerate(attempts)]
        stats = await engine.train_step(batch, LossSpec(), OptimSpec(learning_rate=1e-4, warmup_updates=0))
        assert stats.skipped == ""
        assert stats.generated_tokens == sum(found.generated_tokens for found in attempts)
        assert stats.max_abs_log_ratio < 1e-5

    asyncio.run(run())
