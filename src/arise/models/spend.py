"""What calls cost and when they stop: prices by table or override, a cap over all resumes, and a forecast.

Money is counted in whole nano-dollars, so that sums over sessions are exact. Usage comes from the provider only.
"""

from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from arise.config_models import Budget, Endpoint, Price
from arise.errors import AriseError, Exit
from arise.models.stops import BudgetExhausted
from arise.models.store import Store, Usage

RECENT_MARKS = 5


@dataclass(frozen=True)
class Forecast:
    """Where spend is heading: `Forecast(spent=1.2, expected=6.0, cap=5.0)`; None before any progress and at the end."""

    spent: float
    expected: float | None
    cap: float | None
    unpriced: int = 0

    @property
    def enough(self) -> bool:
        return self.cap is None or self.expected is None or self.expected <= self.cap

    def __str__(self) -> str:
        parts = [f"${self.spent:.2f}" + (f" of ${self.cap:.2f}" if self.cap is not None else "")]
        if self.expected is not None:
            parts.append(f"forecast ${self.expected:.2f}" + ("" if self.enough else " (over the budget)"))
        if self.unpriced:
            parts.append(f"{self.unpriced} calls without a known price")
        return ", ".join(parts)


class Purse:
    """Spend of a run against its cap, shared by all clients of one store."""

    def __init__(self, store: Store, budget: Budget | None = None) -> None:
        self._store, self._budget = store, budget or Budget()
        self._cap = round(self._budget.max_usd * 1e9) or None
        totals = store.totals()
        self.spent_nano = sum(total.nano_usd for total in totals)
        self._calls = sum(total.calls for total in totals)
        self._unpriced = sum(total.unpriced for total in totals)
        self._in_flight = 0
        self._marks: deque[tuple[float, int]] = deque(maxlen=RECENT_MARKS)

    @property
    def spent(self) -> float:
        return self.spent_nano / 1e9

    def so_far(self) -> dict[str, float]:
        """Calls, tokens and dollars of every purpose since the run began: `spent.judge.usd`, ..."""
        sums: dict[str, float] = defaultdict(float)
        for total in self._store.totals():
            numbers = {"calls": total.calls, "prompt_tokens": total.prompt_tokens, "cached_tokens": total.cached_tokens}
            for name, value in (numbers | {"usd": total.nano_usd / 1e9}).items():
                sums[f"spent.{total.purpose}.{name}"] += value
        return dict(sums)

    def require_price(self, endpoint: Endpoint) -> None:
        """A cap without a known price would cap nothing: an error before anything is spent."""
        if self._cap is not None and self.price(endpoint, Usage(prompt_tokens=1)) is None:
            raise AriseError(
                "budget",
                Exit.CONFIG,
                f"budget.max_usd is set but no price is known for {endpoint.model!r}",
                "nothing was sent",
                f"add {endpoint.model!r} = {{input = 1, output = 2}} to budget.prices, in dollars per million tokens",
            )

    def price(self, endpoint: Endpoint, usage: Usage | None) -> int | None:
        """Nano-dollars of a reply, or None if its usage or price is not known."""
        if usage is None:
            return None
        return cost(endpoint.model, endpoint.base_url, usage, self._budget.prices)

    def reserve(self) -> None:
        """Called before a request; stops the run when what is spent and in flight reaches the cap."""
        mean = self.spent_nano // self._calls if self._calls else 0
        if self._cap is not None and self.spent_nano + self._in_flight * mean >= self._cap:
            raise BudgetExhausted(
                f"${self.spent:.2f} of ${self._cap / 1e9:.2f} are spent, {self._in_flight} calls are in flight"
            )
        self._in_flight += 1

    def settle(self, nano_usd: int | None, answered: bool) -> None:
        """Called once after each reservation."""
        self._in_flight -= 1
        self.spent_nano += nano_usd or 0
        self._calls += answered
        self._unpriced += answered and nano_usd is None

    def forecast(self, done: float, total: float) -> Forecast:
        """Spend at the end at the mean rate or the rate since the last marks, whichever is larger: pools grow."""
        cap = None if self._cap is None else self._cap / 1e9
        if done <= 0 or done >= total:
            return Forecast(self.spent, None, cap, self._unpriced)
        rates = [self.spent_nano / done]
        rates += [(self.spent_nano - spent) / (done - then) for then, spent in list(self._marks)[:1] if then < done]
        self._marks.append((done, self.spent_nano))
        return Forecast(self.spent, (self.spent_nano + max(rates) * (total - done)) / 1e9, cap, self._unpriced)


def cost(model: str, base_url: str, usage: Usage, overrides: Mapping[str, Price]) -> int | None:
    """Nano-dollars: the override if there is one, nothing for a server of one's own, else the public price table."""
    override = overrides.get(model)
    if override:
        prompt = usage.prompt_tokens - usage.cached_tokens * (1.0 - override.cached)
        return round((prompt * override.input + usage.completion_tokens * override.output) * 1000)
    if own_host(base_url):
        return 0
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
    """Whether an address is this machine or a private network."""
    host = urlsplit(base_url).hostname or ""
    try:
        return ip_address(host).is_private
    except ValueError:
        return host == "localhost" or "." not in host
