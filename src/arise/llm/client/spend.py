"""Cost accounting: configured or public prices, a cap across resumes, and a forecast.

Amounts are whole nano-dollars, so sums across sessions are exact. The upper bound of a request's cost is reserved
before it is sent, so spend never exceeds the cap by more than one request.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from ipaddress import ip_address
from urllib.parse import urlsplit

from arise.config.llm import BudgetConfig, EndpointConfig, PriceConfig
from arise.llm.client.stops import BudgetExhausted, PriceUnknown
from arise.run.calls import Charge, Recorded, Store, Usage
from arise.text.numbers import dollars

RECENT_MARKS = 5


@dataclass(frozen=True)
class SpendForecast:
    """Expected spend: `SpendForecast(spent=1.2, expected=6.0, cap=5.0)`; None before any progress and at the end."""

    spent: float
    expected: float | None
    cap: float | None
    unpriced: int = 0
    estimated: int = 0

    @property
    def enough(self) -> bool:
        return self.cap is None or self.expected is None or self.expected <= self.cap

    def __str__(self) -> str:
        parts = [f"{dollars(self.spent)}" + (f" of {dollars(self.cap)}" if self.cap is not None else "")]
        if self.expected is not None:
            parts.append(f"forecast {dollars(self.expected)}" + ("" if self.enough else " (over the budget)"))
        if self.unpriced:
            parts.append(f"{self.unpriced} calls without a known price")
        if self.estimated:
            parts.append(f"{self.estimated} calls counted by our own estimate")
        return ", ".join(parts)


@dataclass(eq=False)
class Reservation:
    """Upper bound of one request's cost, held until the actual cost is known."""

    charge: Charge
    noted: int | None = None
    """Its row number in the store, set just before the request is sent."""

    @property
    def nano_usd(self) -> int:
        return self.charge.nano_usd or 0


class _Account:
    """Spent and reserved amounts under one cap."""

    def __init__(self, max_usd: float) -> None:
        self.cap = max(1, round(max_usd * 1e9)) if max_usd else None
        self.spent = 0
        self.reserved: list[Reservation] = []
        self.settled = asyncio.Event()


class Budget:
    """Spend of a run against its cap, shared by all clients of one store; `beside` shares the cap of another store."""

    def __init__(self, store: Store, config: BudgetConfig | None = None, beside: "Budget | None" = None) -> None:
        self._store, self._config = store, config or BudgetConfig()
        self._account: _Account = beside._account if beside else _Account(self._config.max_usd)
        totals = store.totals()
        self._account.spent += sum(total.nano_usd for total in totals)
        self._unpriced = sum(total.unpriced for total in totals)
        self._estimated = store.estimated()
        self._marks: deque[tuple[float, int]] = deque(maxlen=RECENT_MARKS)

    @property
    def spent_nano(self) -> int:
        return self._account.spent

    @property
    def spent(self) -> float:
        return self.spent_nano / 1e9

    def so_far(self) -> dict[str, float]:
        """Sum calls, tokens and dollars by purpose since the run began: `spent.judge.usd`, ..."""
        sums: dict[str, float] = defaultdict(float)
        for total in self._store.totals():
            numbers = {"calls": total.calls, "prompt_tokens": total.prompt_tokens, "cached_tokens": total.cached_tokens}
            for name, value in (numbers | {"usd": total.nano_usd / 1e9}).items():
                sums[f"spent.{total.purpose}.{name}"] += value
        return dict(sums)

    def require_price(self, endpoint: EndpointConfig) -> None:
        """Raise if a cap is set but the price is unknown."""
        if self._account.cap is not None and self.price(endpoint, Usage(prompt_tokens=1)) is None:
            raise PriceUnknown(endpoint.model, endpoint.base_url)

    def price(self, endpoint: EndpointConfig, usage: Usage | None) -> int | None:
        """Nano-dollars of a reply, or None if its usage or price is not known."""
        if usage is None:
            return None
        prices = self._config.prices if endpoint.price is None else {endpoint.model: endpoint.price}
        return cost(endpoint.model, endpoint.base_url, usage, prices)

    async def reserve(self, endpoint: EndpointConfig, most: Usage, key: str, purpose: str) -> Reservation:
        """Reserve the upper bound of a request's cost; wait while requests in flight may exhaust the cap.

        Raise BudgetExhausted once spend has reached the cap.
        """
        account = self._account
        while (
            account.cap is not None and account.spent + sum(held.nano_usd for held in account.reserved) >= account.cap
        ):
            if account.spent >= account.cap:
                in_flight = f", {len(account.reserved)} calls are in flight" if account.reserved else ""
                raise BudgetExhausted(f"{dollars(self.spent)} of {dollars(account.cap / 1e9)} are spent{in_flight}")
            await account.settled.wait()
        held = Reservation(Charge(key, purpose, endpoint.model, most, self.price(endpoint, most)))
        account.reserved.append(held)
        return held

    def sending(self, held: Reservation) -> None:
        """Record that a request is about to be sent, so a crash does not lose its cost."""
        if held.nano_usd:
            held.noted = self._store.note(held.charge)

    def release(self, held: Reservation) -> None:
        """Release a reservation whose request cannot have cost anything."""
        if held.noted is not None:
            self._store.forget(held.noted)
        self._settle(held, 0)

    def pay(self, held: Reservation, endpoint: EndpointConfig, reply: Recorded, keep: bool) -> int | None:
        """Record a reply and return its cost; None if unknown."""
        nano_usd = self.price(endpoint, reply.usage)
        try:
            self._store.put(held.charge.key, reply, held.charge.purpose, nano_usd, keep, held.noted)
        finally:
            self._settle(held, nano_usd, bool(reply.estimated))
        return nano_usd

    def pay_lost(self, held: Reservation, endpoint: EndpointConfig, billed: Usage, reason: str) -> None:
        """Record the cost of a request that may have been billed although it gave no reply."""
        nano_usd = self.price(endpoint, billed)
        if not nano_usd:
            self.release(held)
            return
        try:
            self._store.charge(replace(held.charge, usage=billed, nano_usd=nano_usd, estimated=reason), held.noted)
        finally:
            self._settle(held, nano_usd, estimated=True)

    def _settle(self, held: Reservation, nano_usd: int | None, estimated: bool = False) -> None:
        account = self._account
        account.reserved.remove(held)
        account.spent += nano_usd or 0
        self._unpriced += nano_usd is None
        self._estimated += estimated
        account.settled.set()
        account.settled = asyncio.Event()

    def forecast(self, done: float, total: float) -> SpendForecast:
        """Forecast the final spend at the mean or the recent rate, whichever is larger: pools grow."""
        cap = None if self._account.cap is None else self._account.cap / 1e9
        if done <= 0 or done >= total:
            return SpendForecast(self.spent, None, cap, self._unpriced, self._estimated)
        rates = [self.spent_nano / done]
        rates += [(self.spent_nano - spent) / (done - then) for then, spent in list(self._marks)[:1] if then < done]
        self._marks.append((done, self.spent_nano))
        expected = (self.spent_nano + max(rates) * (total - done)) / 1e9
        return SpendForecast(self.spent, expected, cap, self._unpriced, self._estimated)


class Bill:
    """The cost of one call's requests, one reservation at a time."""

    def __init__(self, budget: Budget, endpoint: EndpointConfig, most: Usage, key: str, purpose: str) -> None:
        self._budget, self._endpoint, self._most, self._key, self._purpose = budget, endpoint, most, key, purpose
        self._held: Reservation | None = None
        self._sent = False

    async def reserve(self) -> None:
        """Reserve the upper bound of the next request's cost, unless already reserved."""
        if self._held is None:
            self._held = await self._budget.reserve(self._endpoint, self._most, self._key, self._purpose)

    def sending(self) -> None:
        """Record that the request is being sent."""
        assert self._held is not None
        self._budget.sending(self._held)
        self._sent = True

    def pay(self, recorded: Recorded, keep: bool = True) -> int | None:
        """Record a reply with its cost."""
        held = self._take()
        assert held is not None
        return self._budget.pay(held, self._endpoint, recorded, keep)

    def failed(self, billed: Usage | None, reason: str) -> None:
        """Settle a request without a reply; `billed` is the usage it may have cost."""
        held = self._take()
        if held is None:
            return
        if billed is None:
            self._budget.release(held)
        else:
            self._budget.pay_lost(held, self._endpoint, billed, reason)

    def close(self) -> None:
        """Settle a cancelled call: a request in flight may be billed."""
        self.failed(self._most if self._sent else None, "cancelled while in flight")

    def _take(self) -> Reservation | None:
        held, self._held, self._sent = self._held, None, False
        return held


def cost(model: str, base_url: str, usage: Usage, stated: Mapping[str, PriceConfig]) -> int | None:
    """Nano-dollars at the stated price, else at the public one; None for a local server without a price."""
    price = stated.get(model)
    if price is not None:
        prompt = usage.prompt_tokens - usage.cached_tokens * (1.0 - price.cached)
        return round((prompt * price.input + usage.completion_tokens * price.output) * 1000)
    if own_host(base_url):
        return None
    import genai_prices

    counted = genai_prices.Usage(
        input_tokens=usage.prompt_tokens,
        cache_read_tokens=usage.cached_tokens,
        output_tokens=usage.completion_tokens,
    )
    try:
        return round(genai_prices.calc_price(counted, model).total_price * 1_000_000_000)
    except LookupError:
        return None


def own_host(base_url: str) -> bool:
    """Return whether an address is this machine or a private network."""
    host = urlsplit(base_url).hostname or ""
    try:
        return ip_address(host).is_private
    except ValueError:
        return host == "localhost" or "." not in host
