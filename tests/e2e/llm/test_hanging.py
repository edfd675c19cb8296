"""F2: a judge some or all of whose calls hang."""

import asyncio
import time
from dataclasses import dataclass

import numpy as np
import psutil

from arise.config.llm import CallsConfig
from arise.llm.client.client import ModelReply, Unanswered
from arise.testing import FakeLLM, Hang, Say, sometimes
from tests.e2e.llm.test_transport import prompt
from tests.unit.llm.builders import QUICK, client


@dataclass(frozen=True)
class Round:
    """The calls of one iteration, timed."""

    seconds: float
    latencies: list[float]
    answered: int


async def judged_iteration(share: float, unit: float) -> Round:
    """Judge 64 rollouts with a server that lets a share of the calls hang; it must leave nothing open."""
    calls = CallsConfig(
        concurrency=16, request_timeout=20 * unit, deadline=60 * unit, transport_attempts=4, breaker_after=1000
    )
    script = sometimes(lambda _: Say("ok", delay=2 * unit), Hang(), share, seed=4)
    before = len(psutil.Process().net_connections())
    async with FakeLLM(script) as fake:
        asks = client(fake, calls)
        started = time.monotonic()
        replies = await asyncio.gather(*(asks.ask(prompt(i)) for i in range(64)))
        seconds = time.monotonic() - started
        await asks.close()
        await asyncio.sleep(0.1)
        assert len(asyncio.all_tasks()) == 1
        assert fake.open_connections == 0
    assert len(psutil.Process().net_connections()) <= before
    return Round(seconds, [reply.seconds for reply in replies], sum(isinstance(reply, ModelReply) for reply in replies))


def test_f2_ten_percent_of_calls_hang() -> None:
    """During rollouts of 40 units, hanging calls at most double an iteration, and hardly any call is lost.

    Only proportions matter, so a busy machine gets longer units until its own delays are small beside them.
    """
    trials: list[tuple[float, Round, Round]] = []
    for unit in (0.05, 0.2, 0.8):
        healthy, hanging = (asyncio.run(judged_iteration(share, unit)) for share in (0.0, 0.1))
        trials.append((unit, healthy, hanging))
        in_time = np.quantile(hanging.latencies, 0.99) <= 70 * unit
        if in_time and hanging.answered >= 63 and 40 * unit + hanging.seconds <= 2.0 * (40 * unit + healthy.seconds):
            return
    raise AssertionError(trials)


def test_f2_a_call_that_always_hangs_ends_at_its_deadline() -> None:
    async def run() -> Unanswered:
        async with FakeLLM(lambda _: Hang(headers=False)) as fake:
            calls = QUICK.model_copy(update={"request_timeout": 0.3, "deadline": 0.8, "transport_attempts": 9})
            asks = client(fake, calls)
            reply = await asks.ask(prompt())
            await asks.close()
        assert isinstance(reply, Unanswered)
        return reply

    reply = asyncio.run(run())
    assert reply.seconds <= 1.8
    assert reply.reason == "unavailable"
