"""Model client for long runs: recorded replies, retries, shared rate limits, circuit breaker, budget, model changes.

Retrying for a better format is the caller's job.
Provider failures are data (`Unanswered`); only the budget, a changed judge and a stop policy raise.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from random import uniform

from arise.config.llm import CallsConfig, EndpointConfig
from arise.llm.client.endpoint import Connection, Request, size_of_request
from arise.llm.client.failures import CallFailed, Denied, RateLimited, Transient
from arise.llm.client.limits import Breaker, BreakerState, Pace
from arise.llm.client.spend import Bill, Budget
from arise.llm.client.stops import JudgeChanged, ModelUnusable
from arise.llm.prompts.prompt import CONTRACT, to_json
from arise.run.calls import Recorded, Store

_PATIENCE = 8
"""How often a call retries right after a Retry-After pause, which applies to all callers."""
Observe = Callable[[str, Mapping[str, object]], None]
"""Receives an event, e.g. `("judge.degraded", {"reason": ...})`; must not raise."""


@dataclass(frozen=True)
class ModelReply:
    """A model's reply with its cost; `cached` means no request was sent."""

    text: str
    finish: str
    model: str
    template_hash: str
    cached: bool
    nano_usd: int | None
    seconds: float = 0.0
    requests: int = 0
    estimated: str = ""
    """Why the cost is not based on the provider's own token count; empty if it is."""


@dataclass(frozen=True)
class Unanswered:
    """A call without a reply — `Unanswered("unavailable", "HTTP 503: ...", requests=5, seconds=12.1)`."""

    reason: str
    detail: str
    requests: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        return f"{self.reason}: {self.detail}" if self.detail else self.reason


class Client:
    """One endpoint for one purpose (`judge`, `reflection`, `annotation`); closing it waits for requests in flight."""

    def __init__(
        self,
        endpoint: EndpointConfig,
        calls: CallsConfig,
        store: Store,
        budget: Budget,
        *,
        purpose: str,
        allow_change: tuple[str, ...] = (),
        observe: Observe | None = None,
        contract: int = CONTRACT,
    ) -> None:
        budget.require_price(endpoint)
        self.endpoint, self.calls, self.purpose = endpoint, calls, purpose
        self._store, self._budget, self._allowed, self._contract = store, budget, allow_change, contract
        self._observe = observe or (lambda _name, _fields: None)
        self._connection = Connection(endpoint)
        self._pace = Pace(calls.concurrency, calls.requests_per_minute)
        self._breaker = Breaker(
            calls.breaker_after, calls.breaker_cooldown, calls.when_down, calls.max_pause, self._breaker_changed
        )
        self._flights: dict[str, asyncio.Task[ModelReply | Unanswered]] = {}
        logging.getLogger("stamina").setLevel(logging.ERROR)

    async def ask(self, prompt: Request, window: int | None = None) -> ModelReply | Unanswered:
        """Return the reply to a prompt: recorded, shared with an identical request in flight, or fetched."""
        if window is not None:
            self._watch(window, self.endpoint.model, "configured")
        key = self.key(prompt)
        recorded = self._store.get(key)
        if recorded is not None:
            return _reply(recorded, cached=True, nano_usd=0)
        flight = self._flights.get(key)
        if flight is None:
            flight = asyncio.create_task(self._fetch(key, prompt, window))
            self._flights[key] = flight
            flight.add_done_callback(lambda task: self._landed(key, task))
        return await asyncio.shield(flight)

    async def close(self, grace: float = 10.0) -> None:
        """Wait for requests in flight, so paid replies are recorded, then close every socket."""
        flights = list(self._flights.values())
        if flights:
            await asyncio.wait(flights, timeout=grace)
            for flight in flights:
                flight.cancel()
            await asyncio.gather(*flights, return_exceptions=True)
        await self._connection.close()

    def key(self, prompt: Request) -> str:
        """Return the cache key: model, parameters, rendered prompt, contract."""
        endpoint = self.endpoint
        parts = [self._contract, endpoint.model, endpoint.temperature, endpoint.top_p, endpoint.max_tokens]
        content = to_json([*parts, endpoint.extra_body, *prompt.distinct])
        return sha256(content.encode()).hexdigest()

    async def _fetch(self, key: str, prompt: Request, window: int | None) -> ModelReply | Unanswered:
        """Run one call to its answer; with the policy `pause`, retry whenever the endpoint recovers."""
        async with self._pace.slots:
            while await self._breaker.admit():
                reply = await self._try(key, prompt, window)
                paused = self.calls.when_down == "pause" and self._breaker.state is not BreakerState.CLOSED
                if isinstance(reply, Unanswered) and reply.reason == Transient.kind and paused:
                    continue
                return reply
            return Unanswered("breaker_open", "the endpoint is down, calls are skipped until it answers")

    async def _try(self, key: str, prompt: Request, window: int | None) -> ModelReply | Unanswered:
        """Run the retries once; record the reply and its cost."""
        bill = Bill(self._budget, self.endpoint, size_of_request(prompt, self.endpoint).most, key, self.purpose)
        await bill.reserve()
        started = time.monotonic()
        ladder = _Ladder(self._connection, self._pace, self._breaker, self.calls, bill)
        try:
            recorded = await ladder.climb(prompt)
            nano_usd = self._record(bill, recorded, window) if isinstance(recorded, Recorded) else None
        finally:
            bill.close()
        seconds = time.monotonic() - started
        if isinstance(recorded, Recorded):
            return _reply(recorded, cached=False, nano_usd=nano_usd, seconds=seconds, requests=ladder.requests)
        self._observe(f"{self.purpose}.unanswered", {"reason": recorded.kind, "detail": str(recorded)})
        if isinstance(recorded, Denied) and self.calls.when_down != "task_only":
            raise ModelUnusable(f"{self.endpoint.base_url} denies {self.endpoint.model!r}: {recorded}")
        return Unanswered(recorded.kind, str(recorded), ladder.requests, seconds)

    def _record(self, bill: Bill, recorded: Recorded, window: int | None) -> int | None:
        """Record a reply and its cost, unless a model other than the window's produced it."""
        try:
            if window is not None:
                self._watch(window, recorded.model, "answered")
        except JudgeChanged:
            bill.pay(recorded, keep=False)
            raise
        return bill.pay(recorded)

    def _watch(self, window: int, model: str, role: str) -> None:
        """Require one model per window; another must be allowed by name."""
        slot = f"{self.purpose}.{role}"
        known = self._store.judge_of(window, slot)
        if known == model:
            return
        if known and model not in self._allowed:
            raise JudgeChanged(
                f"the {self.purpose} model was {known!r} and is now {model!r} ({role}) within window {window}", model
            )
        self._store.set_judge(window, slot, model)
        if known:
            self._observe(f"{self.purpose}.changed", {"from": known, "to": model, "window": window})

    def _breaker_changed(self, state: BreakerState, reason: str) -> None:
        name = {BreakerState.OPEN: "degraded", BreakerState.PROBING: "probing", BreakerState.CLOSED: "recovered"}[state]
        self._observe(f"{self.purpose}.{name}", {"reason": reason})

    def _landed(self, key: str, task: "asyncio.Task[ModelReply | Unanswered]") -> None:
        self._flights.pop(key, None)
        if not task.cancelled():
            task.exception()


class _Ladder:
    """Retry one prompt until it is answered, refused, out of attempts or out of time."""

    def __init__(self, connection: Connection, pace: Pace, breaker: Breaker, calls: CallsConfig, bill: Bill) -> None:
        self._connection, self._pace, self._breaker, self._calls = connection, pace, breaker, calls
        self._bill = bill
        self._failures = self._limited = 0
        self._last: CallFailed = Transient("not sent")
        self.requests = 0

    async def climb(self, prompt: Request) -> Recorded | CallFailed:
        import stamina

        ends = time.monotonic() + self._calls.deadline
        try:
            async with asyncio.timeout(self._calls.deadline):
                async for attempt in stamina.retry_context(
                    self._again, attempts=None, timeout=None, wait_initial=0.2, wait_max=20.0, wait_jitter=0.3
                ):
                    with attempt:
                        return await self._once(prompt, ends)
        except CallFailed as error:
            return error
        except TimeoutError:
            return self._out_of_time()
        raise AssertionError("the ladder ends with a reply or a failure")

    async def _once(self, prompt: Request, ends: float) -> Recorded:
        await self._bill.reserve()
        await self._pace.ready()
        self._bill.sending()
        self.requests += 1
        left = max(0.001, ends - time.monotonic())
        try:
            recorded = await self._connection.send(prompt, min(self._calls.request_timeout, left))
        except CallFailed as error:
            self._note(error)
            raise
        self._breaker.succeeded()
        return recorded

    def _note(self, error: CallFailed) -> None:
        self._last = error
        self._bill.failed(error.billed, str(error))
        if error.alive:
            self._breaker.succeeded()
        else:
            self._failures += 1
            self._breaker.failed(str(error))
        if isinstance(error, RateLimited):
            self._limited += 1
            if error.retry_after is not None:
                self._pace.pause(min(error.retry_after, self._calls.deadline))

    def _again(self, error: Exception) -> bool | float:
        if isinstance(error, RateLimited):
            if error.retry_after is None:
                return True
            return 0.0 if self._limited <= _PATIENCE else uniform(1.0, 3.0)  # noqa: S311 - jitter
        if not isinstance(error, Transient):
            return False
        return self._failures < self._calls.transport_attempts and self._breaker.state is BreakerState.CLOSED

    def _out_of_time(self) -> CallFailed:
        detail = f"deadline of {self._calls.deadline:g} s passed after {self.requests} requests: {self._last}"
        return RateLimited(detail, None) if isinstance(self._last, RateLimited) else Transient(detail)


def _reply(
    recorded: Recorded, *, cached: bool, nano_usd: int | None, seconds: float = 0.0, requests: int = 0
) -> ModelReply:
    return ModelReply(
        recorded.text,
        recorded.finish,
        recorded.model,
        recorded.template_hash,
        cached,
        nano_usd,
        seconds,
        requests,
        recorded.estimated,
    )
