"""F1, F3: a judge that is down or limits its callers."""

import asyncio
import time

import numpy as np
import pytest

from arise.config.llm import CallsConfig
from arise.llm.client.client import ModelReply, Unanswered
from arise.llm.client.limits import Pace
from arise.llm.client.stops import ModelUnusable
from arise.llm.prompts.prompt import Prompt, Template
from arise.method.advantage import combined_advantages, normalized
from arise.testing import (
    Action,
    Ask,
    CutOff,
    FakeLLM,
    RawBody,
    Say,
    Status,
    Wire,
    always,
    honest,
    in_order,
    sometimes,
)
from arise.types import Judgment, Verdict
from tests.unit.llm.builders import QUICK, TASK, client, judge, pool, rollout


def prompt(number: int = 0) -> Prompt:
    return Prompt(Template.PAIR_GENERATION, "system", f'{{"n": {number}}}', "h")


def halves(rule: str, ask: Ask) -> Verdict:
    """Passes even-numbered trajectories."""
    return Verdict.PASS if "even" in ask.user else Verdict.FAIL


def test_f1_server_dead_for_five_of_twelve_iterations() -> None:
    dead = False
    events: list[str] = []

    def script(ask: Ask) -> Action:
        result = Status(503) if dead else halves_judge(ask)
        assert isinstance(result, Say | Status)
        return result

    async def run() -> list[list[Judgment]]:
        nonlocal dead
        history = []
        async with FakeLLM(script) as fake:
            calls = CallsConfig(
                concurrency=8, transport_attempts=2, breaker_after=3, breaker_cooldown=0.05, when_down="task_only"
            )
            asks = client(fake, calls, observe=lambda name, _: events.append(name))
            referee = judge(fake, asks)
            for iteration in range(1, 13):
                dead = 6 <= iteration <= 10
                if iteration in (6, 11):
                    await asyncio.sleep(0.06)
                group = [rollout(f"{'odd' if j % 2 else 'even'} {iteration} {j}") for j in range(8)]
                history.append(await asyncio.gather(*(referee.judge(TASK, r, pool(3)) for r in group)))
            await asks.close()
        return history

    halves_judge = honest(halves)
    history = asyncio.run(run())
    rewards = np.array([1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0])
    for iteration, judgments in enumerate(history, start=1):
        down = 6 <= iteration <= 10
        recovering = iteration == 11  # one call tries, the others of this iteration may still be turned away
        assert all(len(j.verdicts) + len(j.absent) == 3 for j in judgments)
        assert down == (sum(len(j.verdicts) for j in judgments) == 0)
        assert recovering or all(len(j.absent) == (3 if down else 0) for j in judgments)
        verdicts = np.array(
            [[float(j.verdicts[r] is Verdict.PASS) if r in j.verdicts else np.nan for j in judgments] for r in IDS]
        )
        combined = combined_advantages(rewards, verdicts)
        if down:
            np.testing.assert_allclose(combined, normalized(rewards), rtol=0, atol=1e-12)
        elif not recovering:
            assert np.abs(combined - normalized(rewards)).max() > 0.01
    assert events.count("judge.degraded") >= 1
    assert events.count("judge.recovered") >= 1


IDS = ("r001", "r002", "r003")


def test_f1_stop_and_pause_policies() -> None:
    async def stopped() -> None:
        async with FakeLLM(lambda _: Status(503)) as fake:
            calls = QUICK.model_copy(update={"when_down": "stop", "breaker_after": 2, "breaker_cooldown": 60.0})
            asks = client(fake, calls)
            assert isinstance(await asks.ask(prompt(0)), Unanswered)
            with pytest.raises(ModelUnusable) as stop:
                await asks.ask(prompt(1))
            assert stop.value.exit_code == 7
            await asks.close()

    async def paused() -> None:
        async with FakeLLM(in_order([Status(503)] * 4, Say("back"))) as fake:
            calls = QUICK.model_copy(update={"when_down": "pause", "breaker_after": 2, "breaker_cooldown": 0.05})
            asks = client(fake, calls)
            replies = await asyncio.gather(*(asks.ask(prompt(i)) for i in range(4)))
            assert all(isinstance(reply, ModelReply) for reply in replies), "a pause loses no call"
            await asks.close()

    async def paused_too_long() -> None:
        async with FakeLLM(lambda _: Status(503)) as fake:
            change = {"when_down": "pause", "breaker_after": 2, "breaker_cooldown": 0.05, "max_pause": 0.4}
            asks = client(fake, QUICK.model_copy(update=change))
            with pytest.raises(ModelUnusable, match="503"):
                await asks.ask(prompt())
            await asks.close()

    async def denied() -> None:
        async with FakeLLM(lambda _: Status(401)) as fake:
            asks = client(fake)
            with pytest.raises(ModelUnusable, match="401"):
                await asks.ask(prompt())
            assert len(fake.asks) == 1
            await asks.close()

    asyncio.run(stopped())
    asyncio.run(paused())
    asyncio.run(paused_too_long())
    asyncio.run(denied())


def test_f1_a_refused_connection_is_an_absence() -> None:
    async def run() -> Judgment:
        async with FakeLLM(always("")) as fake:
            gone = judge(fake)
        return await gone.judge(TASK, rollout(), pool(2))

    judgment = asyncio.run(run())
    assert not judgment.verdicts
    assert all(reason.startswith("unavailable") for reason in judgment.absent.values())


def storm(count: int, concurrency: int) -> None:
    async def run() -> None:
        async with FakeLLM(sometimes(always("ok"), Status(429, retry_after=0.2), 0.5, seed=1)) as fake:
            calls = CallsConfig(concurrency=concurrency, deadline=120.0, breaker_after=5)
            asks = client(fake, calls)
            replies = await asyncio.gather(*(asks.ask(prompt(i)) for i in range(count)))
            await asks.close()
        assert sum(isinstance(reply, ModelReply) for reply in replies) == count
        assert len(fake.asks) <= 2.2 * count
        limited = [(at, ask.user) for at, ask, action in fake.answers if isinstance(action, Status)]
        for at, user in limited:
            again = [ask.at for ask in fake.asks if ask.user == user and ask.at > at]
            assert not again or min(again) >= at + 0.195
        for at, _ in limited:
            assert not [ask for ask in fake.asks if at + 0.06 < ask.at < at + 0.195], "the limit holds for all callers"

    asyncio.run(run())


def test_f3_retry_after_storm_small() -> None:
    storm(200, 32)


@pytest.mark.slow
def test_f3_retry_after_storm() -> None:
    storm(1000, 32)


@pytest.mark.parametrize(
    "fault",
    [
        CutOff(),
        Status(500),
        Status(502, body="<html>bad gateway</html>"),
        RawBody(b"<html></html>", "text/html"),
        RawBody(b"{}"),
        RawBody(b""),
        RawBody(b'{"choices": []}'),
        RawBody(b"\xff\xfe\x00"),
        RawBody(b"[1, 2]"),
        RawBody(b"[" * 200_000),
        RawBody(b'{"choices": "x"}'),
        RawBody(b'{"choices": 1e99999}'),
        Wire(b"HTTP/1.1 200 OK\r\n\r\n" + b" " * 10**7),
    ],
    ids=lambda fault: repr(fault)[:60],
)
def test_a_broken_answer_is_asked_for_again(fault: Action) -> None:
    async def run() -> ModelReply | Unanswered:
        async with FakeLLM(in_order([fault, Say("ok")])) as fake:
            asks = client(fake)
            reply = await asks.ask(prompt())
            await asks.close()
        return reply

    reply = asyncio.run(run())
    assert isinstance(reply, ModelReply)
    assert reply.requests == 2


@pytest.mark.parametrize("code", [400, 413, 422])
def test_a_refused_request_is_not_repeated(code: int) -> None:
    async def run() -> None:
        async with FakeLLM(lambda _: Status(code)) as fake:
            asks = client(fake)
            reply = await asks.ask(prompt())
            await asks.close()
        assert isinstance(reply, Unanswered)
        assert (reply.reason, len(fake.asks)) == ("refused", 1)

    asyncio.run(run())


def test_the_same_question_is_sent_once() -> None:
    async def run() -> None:
        async with FakeLLM(lambda _: Say("ok", delay=0.1)) as fake:
            asks = client(fake)
            await asyncio.gather(*(asks.ask(prompt()) for _ in range(20)))
            await asks.close()
        assert len(fake.asks) == 1

    asyncio.run(run())


def test_a_reply_that_comes_after_a_cancelled_wait_is_recorded() -> None:
    async def run() -> None:
        async with FakeLLM(lambda _: Say("ok", delay=0.2)) as fake:
            asks = client(fake)
            waiting = asyncio.create_task(asks.ask(prompt()))
            await asyncio.sleep(0.05)
            waiting.cancel()
            await asyncio.sleep(0.3)
            reply = await asks.ask(prompt())
            await asks.close()
        assert isinstance(reply, ModelReply)
        assert reply.cached
        assert len(fake.asks) == 1

    asyncio.run(run())


def test_requests_keep_the_pace() -> None:
    async def run() -> list[float]:
        pace = Pace(8, per_minute=600.0)
        times = []
        for _ in range(6):
            await pace.ready()
            times.append(time.monotonic())
        return times

    times = asyncio.run(run())
    assert times[-1] - times[0] >= 0.49
