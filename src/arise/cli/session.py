"""Options and client session of the commands that call a language model."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from arise.text.numbers import dollars

if TYPE_CHECKING:
    from arise.config.llm import CallsConfig, EndpointConfig, PriceConfig
    from arise.llm.client.client import Client
    from arise.llm.client.spend import Budget
    from arise.llm.first_call.served import Needs, Served
    from arise.run.calls import Store

Model = Annotated[str, typer.Option("--model", help="The model's name at the endpoint.")]
BaseUrl = Annotated[str, typer.Option("--base-url", help="Any server with OpenAI's chat completions.")]
KeyEnv = Annotated[str, typer.Option("--api-key-env", help="Environment variable that holds the key.")]
MaxUsd = Annotated[float, typer.Option("--max-usd", min=0.0, help="Stop when calls have cost this much; 0: never.")]
PriceOption = Annotated[
    str,
    typer.Option(
        "--price",
        metavar="IN,OUT",
        help="Dollars per million tokens, input and output: 0.3,1.2; 0 for a free endpoint.",
    ),
]
OPENAI = "https://api.openai.com/v1"


def price_of(text: str) -> "PriceConfig | None":
    """Parse `--price`; return None to use the public price list."""
    from pydantic import ValidationError

    from arise.config.llm import PriceConfig

    if not text:
        return None
    parts = text.split(",") if text.strip() != "0" else ["0", "0"]
    try:
        return PriceConfig.model_validate(dict(zip(("input", "output"), map(float, parts), strict=True)))
    except (ValueError, ValidationError):
        raise typer.BadParameter(f"--price {text}: expected two numbers as in 0.3,1.2, or 0") from None


@dataclass(frozen=True)
class Cost:
    """The cost of the calls of a command; `unpriced` counts calls with unknown price."""

    usd: float
    prompt_tokens: int
    completion_tokens: int
    unpriced: int

    def __str__(self) -> str:
        note = f", {self.unpriced} calls without a known price" if self.unpriced else ""
        usd = dollars(self.usd, 4) if self.usd or self.unpriced else "free"
        return f"{usd}, {self.prompt_tokens:,} tokens in, {self.completion_tokens:,} out{note}"


@dataclass(frozen=True)
class ModelSession:
    """A client, the store that records its replies and costs, and what the first call found."""

    client: "Client"
    store: "Store"
    budget: "Budget"
    served: "Served"

    def cost(self) -> Cost:
        """Return spend and tokens so far."""
        totals = self.store.totals()
        return Cost(
            sum(total.nano_usd for total in totals) / 1e9,
            sum(total.prompt_tokens for total in totals),
            sum(total.completion_tokens for total in totals),
            sum(total.unpriced for total in totals),
        )


@asynccontextmanager
async def session(
    endpoint: "EndpointConfig",
    calls: "CallsConfig",
    purpose: str,
    record: Path | str,
    max_usd: float,
    needs: "Needs",
    tell: Callable[[str], None],
) -> AsyncIterator[ModelSession]:
    """Open a client after a successful first call and report what it found; close it and its record at exit."""
    from arise.config.llm import BudgetConfig
    from arise.llm.client.client import Client
    from arise.llm.client.spend import Budget
    from arise.llm.first_call.first_call import first_call
    from arise.llm.first_call.served import price_text
    from arise.run.calls import Store

    store = Store(record)
    try:
        budget = Budget(store, BudgetConfig(max_usd=max_usd))
        served = await first_call(endpoint, store, budget, purpose, needs)
        tell(served.line(endpoint, needs, price_text(endpoint, budget.price(endpoint, served.tokens))))
        client = Client(served.applied(endpoint), calls, store, budget, purpose=purpose)
        try:
            yield ModelSession(client, store, budget, served)
        finally:
            await client.close()
    finally:
        store.close()
