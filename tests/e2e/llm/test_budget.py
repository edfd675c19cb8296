"""I9, F32: spend is at most the cap and one reserved call, whatever a provider reports and whenever a process dies."""

import asyncio
import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from arise.config.llm import BudgetConfig, CallsConfig, EndpointConfig, PriceConfig
from arise.llm.client.client import Client, ModelReply
from arise.llm.client.spend import Budget
from arise.llm.client.stops import BudgetExhausted, PriceUnknown
from arise.llm.client.usage import RequestSize, counted
from arise.llm.prompts.prompt import Prompt, Template
from arise.run.calls import Store, Usage, damage
from arise.testing import Action, Ask, CutOff, FakeLLM, Hang, RawBody, Say, Status, in_thread
from tests.unit.llm.builders import QUICK, client

PRICE = PriceConfig(input=1.0, output=100.0)
WORDS = "word " * 80
"""100 tokens by the fake's own count."""
TRUE_COST = 0.011
"""Dollars that the fake's provider bills for a call: 1,000 tokens in, 100 out."""
MOST = 0.0012 + 123e-4
"""More than any call of these tests can cost: `max_tokens` is 100."""


def prompt(number: int) -> Prompt:
    return Prompt(Template.PAIR_GENERATION, "system", f'{{"n": {number}}}', "h")


def asking(fake: FakeLLM, store: Store, cap: float, concurrency: int = 64, **endpoint: Any) -> Client:
    values = {"model": "judge-1", "base_url": fake.base_url, "max_tokens": 100, "price": PRICE} | endpoint
    settings = EndpointConfig.model_validate(values)
    calls = CallsConfig(
        concurrency=concurrency, transport_attempts=1, request_timeout=2.0, deadline=8.0, breaker_after=1000
    )
    return Client(settings, calls, store, Budget(store, BudgetConfig(max_usd=cap)), purpose="judge")


async def session(path: Path, action: Action, cap: float, first: int, count: int = 300) -> tuple[int, int, float]:
    """Asks until the budget stops it: requests received, requests answered to, dollars on record."""
    with closing(Store(path)) as store:
        async with FakeLLM(lambda _: action) as fake:
            asks = asking(fake, store, cap)
            results = await asyncio.gather(*(asks.ask(prompt(first + n)) for n in range(count)), return_exceptions=True)
            await asks.close()
        stopped = [result for result in results if isinstance(result, BaseException)]
        assert all(isinstance(stop, BudgetExhausted) for stop in stopped)
        assert stopped
        return len(fake.asks), sum(isinstance(result, ModelReply) for result in results), Budget(store).spent


def lied(**usage: object) -> RawBody:
    choice = {"index": 0, "message": {"role": "assistant", "content": WORDS}, "finish_reason": "stop"}
    return RawBody(json.dumps({"model": "judge-1", "choices": [choice], "usage": usage}).encode())


LIES: dict[str, Action] = {
    "no usage": Say(WORDS, delay=0.01, usage=False),
    "usage": Say(WORDS, delay=0.01),
    "negative": lied(prompt_tokens=-1_000_000, completion_tokens=-1_000_000),
    "negative cached": lied(
        prompt_tokens=900, completion_tokens=100, prompt_tokens_details={"cached_tokens": -(10**9)}
    ),
    "more cached than sent": lied(
        prompt_tokens=900, completion_tokens=100, prompt_tokens_details={"cached_tokens": 10**9}
    ),
    "nothing": lied(prompt_tokens=0, completion_tokens=0),
    "not whole": lied(prompt_tokens=1000.5, completion_tokens=0.1),
    "not a number": lied(prompt_tokens=float("nan"), completion_tokens=float("nan")),
    "astronomical": lied(prompt_tokens=1e308, completion_tokens=1e308),
    "huge": lied(prompt_tokens=10**400, completion_tokens=10**400),
    "text": lied(prompt_tokens="1000", completion_tokens="100"),
    "true": lied(prompt_tokens=True, completion_tokens=True),
    "a list": lied(prompt_tokens=[1000], completion_tokens=[100]),
    "cut off after payment": CutOff(),
    "not a completion": RawBody(b'{"choices": []}'),
}


@pytest.mark.parametrize("action", LIES.values(), ids=LIES)
def test_spend_is_at_most_the_cap_and_one_reserved_call_over_three_resumes(tmp_path: Path, action: Action) -> None:
    path, received = tmp_path / "calls.db", 0
    for resume in range(3):
        cap = 0.2 * (resume + 1)
        asked, _, spent = asyncio.run(session(path, action, cap, first=1000 * resume))
        received += asked
        assert cap <= spent <= cap + MOST
        if action in (LIES["usage"], LIES["no usage"]):
            assert received * TRUE_COST <= cap + MOST, "what the provider bills is within the cap too"
    assert list(damage(path)) == []


def test_the_first_wave_is_reserved_before_the_first_reply(tmp_path: Path) -> None:
    """At concurrency 64 with 64 calls that take a second, as many go out as fit into the cap."""
    path = tmp_path / "calls.db"
    asked, answered, spent = asyncio.run(session(path, Say(WORDS, delay=0.3, completion_tokens=100), 0.1, 0, 64))
    assert asked == answered
    assert 0.1 <= spent <= 0.1 + MOST


def test_costs_of_our_own_estimate_are_marked(tmp_path: Path) -> None:
    path = tmp_path / "calls.db"
    asyncio.run(session(path, LIES["no usage"], 0.1, 0))
    with closing(Store(path)) as store:
        assert store.estimated() == sum(total.calls for total in store.totals()) > 0
        assert "calls counted by our own estimate" in str(Budget(store).forecast(1, 2))
    with closing(sqlite3.connect(path)) as db:
        (reason,) = db.execute("SELECT DISTINCT reason FROM estimates").fetchall()
    assert reason == ("no prompt_tokens reported; no completion_tokens reported",)


@pytest.mark.parametrize(
    ("action", "billed"),
    [
        (Status(500), False),
        (Status(429, retry_after=0.1), False),
        (Status(400), False),
        (Hang(), True),
        (CutOff(), True),
    ],
    ids=repr,
)
def test_a_request_without_a_reply_counts_if_it_may_have_been_billed(action: Action, billed: bool) -> None:
    async def run() -> tuple[int, int]:
        store = Store()
        async with FakeLLM(lambda _: action) as fake:
            calls = QUICK.model_copy(update={"request_timeout": 3.0, "deadline": 4.0, "transport_attempts": 1})
            asks = client(fake, calls, store, BudgetConfig(prices={"judge-1": PRICE}))
            await asks.ask(prompt(0))
            await asks.close()
        return Budget(store).spent_nano, store.estimated()

    spent, estimated = asyncio.run(run())
    assert (spent > 0, estimated > 0) == (billed, billed)


def test_a_connection_that_never_came_about_costs_nothing() -> None:
    async def run() -> int:
        store = Store()
        async with FakeLLM(lambda _: Say("")) as fake:
            asks = client(fake, QUICK, store, BudgetConfig(prices={"judge-1": PRICE}))
        await asks.ask(prompt(0))
        await asks.close()
        return Budget(store).spent_nano

    assert asyncio.run(run()) == 0


DYING = """
import asyncio, sys
from arise.config.llm import BudgetConfig, CallsConfig, EndpointConfig, PriceConfig
from arise.llm.client.client import Client
from arise.llm.prompts.prompt import Prompt, Template
from arise.llm.client.spend import Budget
from arise.run.calls import Store

async def main():
    store = Store(sys.argv[1])
    price = PriceConfig(input=1.0, output=100.0)
    endpoint = EndpointConfig(model="judge-1", base_url=sys.argv[2], max_tokens=100, price=price)
    asks = Client(endpoint, CallsConfig(), store, Budget(store, BudgetConfig(max_usd=1.0)), purpose="judge")
    await asyncio.gather(*(asks.ask(Prompt(Template.PAIR_GENERATION, "s", f'{{"n": {n}}}', "h")) for n in range(5)))

asyncio.run(main())
"""


def test_calls_in_flight_when_the_process_died_count_in_full_once(tmp_path: Path) -> None:
    path = tmp_path / "calls.db"
    with in_thread(FakeLLM(lambda _: Hang(headers=False))) as fake:
        with subprocess.Popen([sys.executable, "-c", DYING, str(path), fake.base_url]) as dying:
            try:
                for _ in range(600):
                    if len(fake.asks) == 5:
                        break
                    asyncio.run(asyncio.sleep(0.05))
            finally:
                dying.kill()
        assert len(fake.asks) == 5
    for _ in range(2):
        with closing(Store(path)) as store:
            assert 5 * 0.01 <= Budget(store).spent <= 5 * MOST
            assert [(total.calls, total.unpriced) for total in store.totals()] == [(5, 0)]
            assert store.estimated() == 5
    assert list(damage(path)) == []


def test_a_call_cancelled_in_flight_is_paid_for(tmp_path: Path) -> None:
    async def run() -> int:
        store = Store()
        async with FakeLLM(lambda _: Hang(headers=False)) as fake:
            asks = asking(fake, store, 1.0)
            waiting = asyncio.create_task(asks.ask(prompt(0)))
            while not fake.asks:
                await asyncio.sleep(0.01)
            await asks.close(grace=0.0)
            await asyncio.gather(waiting, return_exceptions=True)
        return Budget(store).spent_nano

    assert asyncio.run(run()) > 0


def test_a_private_server_is_free_only_if_stated() -> None:
    async def run() -> None:
        async with FakeLLM(lambda _: Say("ok")) as fake:
            with pytest.raises(PriceUnknown) as stop:
                asking(fake, Store(), 1.0, price=None)
            assert stop.value.exit_code == 2
            assert "no price is known for 'judge-1' at http://127.0.0.1" in str(stop.value)
            assert "price = 0 for a free endpoint" in str(stop.value)
            asks = asking(fake, store := Store(), 1.0, price=0)
            reply = await asks.ask(prompt(0))
            assert isinstance(reply, ModelReply)
            assert reply.nano_usd == 0
            assert not store.estimated()
            await asks.close()
            unknown = asking(fake, store := Store(), 0.0, price=None)
            reply = await unknown.ask(prompt(0))
            assert isinstance(reply, ModelReply)
            assert reply.nano_usd is None, "without a cap an unknown price is counted as unknown, not as nothing"
            await unknown.close()

    asyncio.run(run())


def test_two_stores_can_share_one_cap(tmp_path: Path) -> None:
    async def run() -> float:
        first, second = Store(), Store()
        budget = Budget(first, BudgetConfig(max_usd=0.1))
        async with FakeLLM(lambda _: Say(WORDS)) as fake:
            clients = [asking(fake, first, 0.0), asking(fake, second, 0.0)]
            clients[0]._budget, clients[1]._budget = budget, Budget(second, beside=budget)
            calls = [asks.ask(prompt(n)) for asks in clients for n in range(50)]
            await asyncio.gather(*calls, return_exceptions=True)
            for asks in clients:
                await asks.close()
        return (Budget(first).spent_nano + Budget(second).spent_nano) / 1e9

    assert 0.1 <= asyncio.run(run()) <= 0.1 + MOST


def test_more_or_longer_replies_of_extra_body_are_reserved_for() -> None:
    async def run(extra: dict[str, Any]) -> int:
        async with FakeLLM(lambda _: CutOff()) as fake:
            asks = asking(fake, store := Store(), 100.0, extra_body=extra)
            await asks.ask(prompt(0))
            await asks.close()
        return Budget(store).spent_nano

    plain, longer, several = (asyncio.run(run(extra)) for extra in ({}, {"max_completion_tokens": 1000}, {"n": 8}))
    assert longer > 5 * plain
    assert several > 5 * plain


@pytest.mark.parametrize(
    "text", ["prose " * 2000, "文字" * 3000, '{"a": [1, 2]}\n' * 900], ids=["prose", "Chinese", "JSON"]
)
def test_what_is_reserved_is_never_less_than_what_is_counted(text: str) -> None:
    size = RequestSize(len(text.encode()), 4096)
    honest = {"prompt_tokens": len(text) // 3, "completion_tokens": 4096}
    strange: list[object] = [None, {}, [], "usage", {"prompt_tokens": 7}, {"completion_tokens": 10**9}]
    for reported in (honest, *strange):
        usage, estimated = counted(reported, size, said=20_000)
        assert 0 < usage.prompt_tokens <= size.most.prompt_tokens
        assert 0 < usage.completion_tokens <= size.most.completion_tokens
        assert bool(estimated) == (reported != honest)
    assert counted(honest, size, 20_000) == (Usage(**honest), "")


def asked_once(ask: Ask) -> Action:
    return Status(503) if ask.number == 0 else Say(WORDS)


def test_a_retry_reserves_again(tmp_path: Path) -> None:
    async def run() -> tuple[int, Store]:
        store = Store(tmp_path / "calls.db")
        async with FakeLLM(asked_once) as fake:
            asks = client(fake, QUICK, store, BudgetConfig(max_usd=1.0, prices={"judge-1": PRICE}))
            assert isinstance(await asks.ask(prompt(0)), ModelReply)
            await asks.close()
        return len(fake.asks), store

    requests, store = asyncio.run(run())
    assert requests == 2
    assert [total.calls for total in store.totals()] == [1]
    store.close()
    with closing(sqlite3.connect(tmp_path / "calls.db")) as db:
        assert db.execute("SELECT COUNT(*) FROM in_flight").fetchone() == (0,)
