"""Servers that send too much, too slowly, elsewhere or in any other shape; and waits that are no waits."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import psutil
import pytest

from arise.config.llm import CallsConfig
from arise.llm.client.client import Client, ModelReply, Unanswered
from arise.llm.client.endpoint import retry_after
from arise.llm.client.stops import ModelUnusable
from arise.llm.prompts.prompt import Prompt, Template
from arise.llm.wire import parse_annotations, parse_diagnostics, parse_duplicates, parse_pairs, parse_verdicts
from arise.run.calls import Store
from arise.testing import FakeLLM, RawBody, Say, Status, Wire, in_order, in_thread
from tests.e2e.llm.hostile_replies import hostile
from tests.unit.llm.builders import QUICK, client

LIMIT = 2.0
ONCE = CallsConfig(concurrency=8, request_timeout=LIMIT, deadline=LIMIT, transport_attempts=1, breaker_after=10**6)


def prompt(number: int = 0) -> Prompt:
    return Prompt(Template.PAIR_GENERATION, "system", f'{{"n": {number}}}', "h")


@contextmanager
def peak_memory() -> Iterator[list[int]]:
    """The most memory that this process took meanwhile, above what it had, in bytes."""
    process, done = psutil.Process(), Event()
    rise, before = [0], process.memory_info().rss

    def watch() -> None:
        while not done.wait(0.005):
            rise[0] = max(rise[0], process.memory_info().rss - before)

    thread = Thread(target=watch)
    thread.start()
    try:
        yield rise
    finally:
        done.set()
        thread.join()


def parse_all(text: str) -> None:
    """Every parser of a model's output, on an answer that came through."""
    parse_verdicts(text, ["r001", "r002"], diagnostics=True)
    parse_diagnostics(text)
    parse_pairs(text, ["e1"], 8)
    parse_duplicates(text, ["p1"])
    parse_annotations(text, ["t1"], ["tag"])


def test_two_hundred_hostile_replies() -> None:
    replies = hostile()
    assert len(replies) >= 200

    async def run() -> dict[str, ModelReply | Unanswered | BaseException]:
        names = list(replies)
        async with FakeLLM(lambda ask: replies[names[ask.data["n"]]]) as fake:
            asks = client(fake, ONCE.model_copy(update={"when_down": "task_only"}))
            await asks.ask(prompt(names.index("BOM")))  # imports and pools are no part of the rise
            with peak_memory() as rise:
                found = await asyncio.gather(*(asks.ask(prompt(n)) for n in range(len(names))), return_exceptions=True)
                for reply in found:
                    if isinstance(reply, ModelReply):
                        parse_all(reply.text)
            await asks.close()
        assert rise[0] < 100e6
        return dict(zip(names, found, strict=True))

    results = asyncio.run(run())
    escaped = {name: reply for name, reply in results.items() if isinstance(reply, BaseException)}
    assert not escaped
    late = {name: reply.seconds for name, reply in results.items() if not isinstance(reply, BaseException)}
    assert max(late.values()) <= LIMIT + 1.0, Counter(late).most_common(3)
    read = {name for name, reply in results.items() if isinstance(reply, ModelReply)}
    assert {"BOM", "HTTP/1.0 keep-alive", "gzip as it should be", "lone surrogates", "a long answer"} <= read
    assert not read & {"a gzip bomb", "200 MB of content", "closed in the middle", "deep lists", "invalid UTF-8"}


@pytest.mark.parametrize("name", ["200 MB of content", "a gzip bomb", "200 MB of an error", "a gzip bomb of an error"])
def test_a_flood_at_full_concurrency_stays_small(name: str) -> None:
    flood = hostile()[name]

    async def run() -> int:
        async with FakeLLM(lambda ask: flood if ask.data["n"] else Say("ok")) as fake:
            asks = client(fake, ONCE.model_copy(update={"concurrency": 64, "request_timeout": 9.0, "deadline": 9.0}))
            await asks.ask(prompt(0))
            with peak_memory() as rise:
                replies = await asyncio.gather(*(asks.ask(prompt(n)) for n in range(1, 65)))
            await asks.close()
        assert all(isinstance(reply, Unanswered) for reply in replies)
        return rise[0]

    assert asyncio.run(run()) < 150e6


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_nothing_is_sent_to_the_host_of_a_redirect(code: int) -> None:
    async def run() -> None:
        async with FakeLLM(lambda _: Say("stolen")) as other:
            place = f"HTTP/1.1 {code} Go\r\nlocation: {other.base_url}/chat/completions\r\ncontent-length: 0\r\n\r\n"
            async with FakeLLM(lambda _: Wire(place.encode())) as fake:
                asks = client(fake)
                with pytest.raises(ModelUnusable, match="which is not followed: base_url must name the server") as stop:
                    await asks.ask(prompt())
                assert other.base_url in str(stop.value)
                await asks.close()
            assert (other.asks, other.connections) == ([], 0), "0 bytes were sent to the other host"

    asyncio.run(run())


WAITS = ("0", "0.0", "-0", "nan", "inf", "-inf", "-1", "1e-9", "1e999", "", "soon", "0, 0", "9" * 400)
DATES = ("Thu, 01 Jan 1970 00:00:00 GMT", "Fri, 31 Feb 2025 00:00:00 GMT", "Mon, 01 Jan 0001 00:00:00 -2359")


@pytest.mark.parametrize("wait", [*WAITS, *DATES])
def test_a_retry_after_that_asks_for_no_wait_makes_no_hot_loop(wait: str) -> None:
    assert retry_after({"retry-after": wait}) is None

    async def run() -> int:
        async with FakeLLM(lambda _: Status(429, retry_after=wait)) as fake:
            asks = client(fake, QUICK.model_copy(update={"deadline": 2.0}))
            await asks.ask(prompt())
            await asks.close()
        return len(fake.asks)

    assert asyncio.run(run()) <= 5


def test_short_waits_again_and_again_make_no_hot_loop() -> None:
    async def run() -> int:
        async with FakeLLM(lambda _: Status(429, retry_after=0.1)) as fake:
            asks = client(fake, QUICK.model_copy(update={"deadline": 4.0, "concurrency": 16}))
            await asyncio.gather(*(asks.ask(prompt(n)) for n in range(16)))
            await asks.close()
        return len(fake.asks)

    assert asyncio.run(run()) <= 16 * 13


@pytest.mark.parametrize("wait", ["1e9", "1e300", "100000", "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_a_retry_after_without_end_pauses_for_one_deadline(wait: str) -> None:
    async def run() -> None:
        async with FakeLLM(in_order([Status(429, retry_after=wait)], Say("ok"))) as fake:
            asks = client(fake, QUICK.model_copy(update={"deadline": 1.0}))
            first = await asks.ask(prompt(0))
            assert isinstance(first, Unanswered)
            assert first.reason == "rate_limited"
            assert first.seconds <= 2.0
            started = time.monotonic()
            assert isinstance(await asks.ask(prompt(1)), ModelReply)
            assert time.monotonic() - started <= 2.0
            await asks.close()

    asyncio.run(run())


def test_a_retry_after_that_can_be_kept_is_kept() -> None:
    assert retry_after({"retry-after-ms": "250"}) == pytest.approx(0.25)
    assert retry_after({"retry-after": "7"}) == 7.0
    assert retry_after({"retry-after-ms": "nan", "retry-after": "3"}) == 3.0


def test_a_paid_reply_is_recorded_whatever_it_holds(tmp_path: Path) -> None:
    surrogates = json.dumps({"model": "\ud800", "choices": [{"message": {"content": "\udfff"}}]}).encode()
    store = Store(tmp_path / "calls.db")

    def asked(fake: FakeLLM) -> Client:
        return client(fake, store=store)

    with in_thread(FakeLLM(lambda _: RawBody(surrogates))) as fake:
        asks = asked(fake)

        async def twice() -> list[ModelReply | Unanswered]:
            replies = [await asks.ask(prompt()), await asks.ask(prompt())]
            await asks.close()
            return replies

        first, second = asyncio.run(twice())
    assert isinstance(first, ModelReply)
    assert isinstance(second, ModelReply)
    assert (first.text, second.cached, len(fake.asks)) == ("?", True, 1)
    store.close()
