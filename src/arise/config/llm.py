"""Settings of language-model calls: endpoint, retries, behaviour when it is down, and budget.

The paper specifies none of them. API keys are named by environment variable to keep secrets out of files.
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, JsonValue, field_validator

from arise.config.base import Count, Fraction, Positive, Section


class PriceConfig(Section):
    """US dollars per million tokens."""

    input: Annotated[float, Field(ge=0.0, le=1e6)]
    output: Annotated[float, Field(ge=0.0, le=1e6)]
    cached: Fraction = 1.0
    """Price of cached input tokens as a fraction of the input price."""


def _zero_or_table(price: Any) -> Any:
    """Expand `price = 0` to zero prices of input and output."""
    if price is None or isinstance(price, dict | PriceConfig):
        return price
    if isinstance(price, int | float) and not isinstance(price, bool) and price == 0:
        return {"input": 0.0, "output": 0.0}
    raise ValueError("expected {input = 0.3, output = 1.2}, in dollars per million tokens, or 0 for no cost at all")


class EndpointConfig(Section):
    """A server with the OpenAI chat completions API."""

    model: Annotated[str, Field(min_length=1)]
    base_url: str = "https://api.openai.com/v1"
    api_key_env: str = "OPENAI_API_KEY"
    temperature: Annotated[float, Field(ge=0.0)] = 0.0
    top_p: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    max_tokens: Count = 8192
    context_tokens: Count = 131_072
    price: Annotated[
        PriceConfig | None, BeforeValidator(_zero_or_table), Field(exclude_if=lambda price: price is None)
    ] = None
    """`{input = 0.3, output = 1.2}`, or 0 for a free server; by default from `budget.prices` or the price table."""
    structured: Literal["auto", "json_schema", "grammar", "off"] = "auto"
    """How the shape of a reply is enforced; `auto` uses what the first call finds that the server supports."""
    extra_body: dict[str, JsonValue] = Field(default_factory=dict)
    """Added to the request body unchanged, e.g. `{chat_template_kwargs = {enable_thinking = false}}`."""

    def without(self, name: str) -> "EndpointConfig":
        """Return the endpoint with a field left out of its requests, for servers that refuse it."""
        return self.model_copy(update={"extra_body": self.extra_body | {name: None}})

    @field_validator("extra_body")
    @classmethod
    def _of_one_reply(cls, extra: dict[str, JsonValue]) -> dict[str, JsonValue]:
        if extra.get("stream"):
            raise ValueError("stream is not supported: every reply would be paid for and none could be read")
        if taken := sorted({"model", "messages"} & set(extra)):
            raise ValueError(f"{taken[0]} is set by arise")
        return extra


class CallsConfig(Section):
    """How calls are made: limits shared by all callers, two retry schedules, and the circuit breaker."""

    concurrency: Count = 64
    requests_per_minute: Annotated[float, Field(ge=0.0)] = 0.0
    """0 means only the provider's own limit."""
    request_timeout: Positive = 180.0
    deadline: Positive = 600.0
    """Seconds for one call with all its retries, not counting the wait for its start."""
    transport_attempts: Count = 5
    format_attempts: Annotated[int, Field(ge=1, le=3)] = 3
    breaker_after: Count = 8
    breaker_cooldown: Positive = 30.0
    when_down: Literal["pause", "task_only", "stop"] = "pause"
    max_pause: Positive = 7200.0


class BudgetConfig(Section):
    """The cost cap of all calls of a run, including resumes; 0 means no cap."""

    max_usd: Annotated[float, Field(ge=0.0)] = 0.0
    prices: dict[str, PriceConfig] = Field(default_factory=dict)


class ModelJudge(Section):
    """A language model as judge."""

    kind: Literal["model"] = "model"
    endpoint: EndpointConfig
    calls: CallsConfig = CallsConfig()
    rubrics_per_call: Count = 16
    canaries: bool = True
    reasons: bool = False
    """Ask for a short reason and the turn it rests on with every verdict. The paper's judge gives verdicts only."""
    votes: Annotated[int, Field(ge=1, le=9)] = 1
    """How often each rollout is judged; a verdict needs more than half of the votes."""
    when_unusable: Literal["stop", "task_only"] = "stop"
    """What happens after a pool window in which less than half of the requested answers are usable: the run stops, or
    continues with task rewards only until a window is usable again."""
    allow_change: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """Models that may replace the judge within a window; any other change stops the run."""
    chars_per_token: Positive = 3.0
    """Conservative estimate to fit text into the context; billing uses the reported tokens."""


class ModelReflector(Section):
    """A language model as reflection model."""

    kind: Literal["model"] = "model"
    endpoint: EndpointConfig
    calls: CallsConfig = CallsConfig()
    near_duplicates: Literal["off", "model"] = "model"
    similarity: Fraction = 0.45
    """Proposals at least this similar to a criterion are sent to the model as possible duplicates."""
    chars_per_token: Positive = 3.0


class FakeJudging(Section):
    """The offline analyst behind a loopback server: tests the language-model path without a model."""

    kind: Literal["fake"] = "fake"
    latency: Annotated[float, Field(ge=0.0)] = 0.2
    """Delay of every reply in seconds."""
    calls: CallsConfig = CallsConfig()
    rubrics_per_call: Count = 16
    reasons: bool = False
    """Give a short reason with every verdict, as a model that is asked for reasons does."""


class SameAsJudge(Section):
    """The judge is also the reflector: its endpoint, or the offline analyst."""

    kind: Literal["judge"] = "judge"


class AnnotationConfig(Section):
    """A language model as annotator of task types."""

    endpoint: EndpointConfig
    calls: CallsConfig = CallsConfig()
    tasks_per_call: Count = 4
