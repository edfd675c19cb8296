"""F32, F34: the budget over resumes, and recorded replies that were tampered with or are stale."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from arise.config.llm import BudgetConfig, CallsConfig, PriceConfig
from arise.errors import AriseError
from arise.llm.client.client import ModelReply
from arise.llm.client.spend import Budget, cost
from arise.llm.client.stops import BudgetExhausted, StoreUnusable
from arise.llm.prompts.prompt import Prompt, Template
from arise.run.calls import Recorded, Store, Usage, damage
from arise.testing import FakeLLM, Say, always
from tests.unit.llm.builders import client

CENT = PriceConfig(input=0.0, output=100.0)
"""With 100 completion tokens, exactly one cent a call."""


def prompt(number: int) -> Prompt:
    return Prompt(Template.PAIR_GENERATION, "system", f'{{"n": {number}}}', "h")


def budget(dollars: float) -> BudgetConfig:
    return BudgetConfig(max_usd=dollars, prices={"judge-1": CENT})


def test_f32_a_cap_of_one_dollar_over_three_resumes(tmp_path: Path) -> None:
    async def session(cap: float, first: int) -> tuple[int, int]:
        """Asks until the budget stops it; gives answered calls and calls in the store."""
        store = Store(tmp_path / "calls.db")
        async with FakeLLM(lambda _: Say("ok", delay=0.01)) as fake:
            asks = client(fake, CallsConfig(concurrency=32), store, budget(cap))
            results = await asyncio.gather(*(asks.ask(prompt(first + i)) for i in range(300)), return_exceptions=True)
            await asks.close()
            answered = sum(isinstance(result, ModelReply) for result in results)
            stopped = [result for result in results if isinstance(result, BudgetExhausted)]
            assert answered + len(stopped) == 300
            assert stopped[0].exit_code == 4
            assert answered == len(fake.asks), "whatever was sent is answered and recorded"
        store.close()
        return answered, len(fake.asks)

    total = 0
    for resume in range(3):
        cap = 1.0 + resume
        answered, _ = asyncio.run(session(cap, first=1000 * resume))
        total += answered
        store = Store(tmp_path / "calls.db")
        spent = Budget(store).spent_nano
        store.close()
        assert spent == total * 10_000_000, "cumulative spend is exact"
        assert cap <= spent / 1e9 <= cap + 0.32


def test_f32_an_answered_call_is_never_paid_again(tmp_path: Path) -> None:
    async def session() -> int:
        store = Store(tmp_path / "calls.db")
        async with FakeLLM(always("ok")) as fake:
            asks = client(fake, store=store)
            replies = [await asks.ask(prompt(i)) for i in range(20)]
            await asks.close()
            assert all(isinstance(reply, ModelReply) for reply in replies)
        store.close()
        return len(fake.asks)

    assert asyncio.run(session()) == 20
    assert asyncio.run(session()) == 0


def test_f32_forecast() -> None:
    store = Store()
    recorded = Recorded(text="", finish="", model="m", fingerprint="", template_hash="", usage=Usage())
    store.put("k", recorded, "judge", 500_000_000)
    forecast = Budget(store, budget(1.0)).forecast(done=10, total=30)
    assert (forecast.spent, forecast.expected, forecast.enough) == (0.5, 1.5, False)
    assert Budget(store).forecast(0, 30).expected is None


def test_a_cap_without_a_price_is_an_error_before_anything_is_sent() -> None:
    async def run() -> None:
        async with FakeLLM(always("ok")) as fake:
            store = Store()
            elsewhere = client(fake).endpoint.model_copy(
                update={"base_url": "https://example.org/v1", "model": "own-7b"}
            )
            with pytest.raises(AriseError, match=r"no price is known for 'own-7b'"):
                Budget(store, BudgetConfig(max_usd=1.0)).require_price(elsewhere)

    asyncio.run(run())


def test_prices_come_from_overrides_or_the_provider() -> None:
    usage = Usage(prompt_tokens=1_000_000, completion_tokens=1_000_000, cached_tokens=500_000)
    overrides = {"m": PriceConfig(input=2.0, output=4.0, cached=0.5)}
    assert cost("m", "https://example.org/v1", usage, overrides) == 5_500_000_000
    assert cost("anything", "http://127.0.0.1:8000/v1", usage, {}) is None, "a paid gateway may run on localhost"
    known = cost("gpt-4o-mini", "https://api.openai.com/v1", Usage(prompt_tokens=1000, completion_tokens=10), {})
    assert known is not None
    assert known > 0
    assert cost("no-such-model-anywhere", "https://example.org/v1", usage, {}) is None


def record(path: Path, count: int, contract: int = 1) -> int:
    """Asks `count` questions against a recorded store; gives the requests that were sent."""

    async def run() -> int:
        store = Store(path)
        async with FakeLLM(always("the reply")) as fake:
            asks = client(fake, store=store, contract=contract)
            replies = await asyncio.gather(*(asks.ask(prompt(i)) for i in range(count)))
            assert all(isinstance(reply, ModelReply) and reply.text == "the reply" for reply in replies)
            await asks.close()
        rejected = store.rejected
        store.close()
        assert rejected in (0, len(fake.asks))
        return len(fake.asks)

    return asyncio.run(run())


EDITS = (
    "value = replace(value, 'reply', 'lie')",
    "value = '{}'",
    "value = ''",
    "value = replace(value, '}', '')",
    "value = x'00ff'",
    "hash = ''",
    "value = replace(value, 'judge-1', 'judge-2')",
    "value = value || ' '",
    "hash = (SELECT hash FROM replies r WHERE r.key <> replies.key LIMIT 1)",
    "value = upper(value)",
)


def test_f34_a_hundred_edited_values_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / "calls.db"
    assert record(path, 100) == 100
    assert record(path, 100) == 0
    db = sqlite3.connect(path)
    keys = [key for (key,) in db.execute("SELECT key FROM replies ORDER BY key")]
    for number, key in enumerate(keys):
        db.execute(f"UPDATE replies SET {EDITS[number % len(EDITS)]} WHERE key = ?", (key,))  # noqa: S608
    db.commit()
    db.close()
    assert record(path, 100) == 100


def test_f34_a_new_contract_uses_no_old_reply(tmp_path: Path) -> None:
    path = tmp_path / "calls.db"
    assert record(path, 50, contract=1) == 50
    assert record(path, 50, contract=2) == 50
    assert record(path, 50, contract=1) == 0


def test_a_file_from_before_costs_were_sealed_is_sealed_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "calls.db"
    assert record(path, 5) == 5
    with closing(Store(path)) as store:
        totals = store.totals()
    with closing(sqlite3.connect(path)) as db:
        db.executescript("DROP TABLE seals; DROP TABLE totals; PRAGMA user_version=1")
    with closing(Store(path)) as store:
        assert store.totals() == totals
    assert list(damage(path)) == []
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE totals SET nano_usd = nano_usd + 1")
        db.commit()
    assert list(damage(path)) == ["calls.db: the sums are not those of the calls"]


def test_a_file_that_is_no_store_is_a_clean_stop(tmp_path: Path) -> None:
    path = tmp_path / "calls.db"
    path.write_bytes(b"not a database, but long enough to look like one" * 100)
    with pytest.raises(StoreUnusable) as stop:
        Store(path)
    assert stop.value.exit_code == 5
