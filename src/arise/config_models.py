"""Knobs of the language-model path: which endpoint, how hard to try, what to do when it is down, what it may cost.

The paper fixes none of them; keys are named by environment variable, so that no secret stands in a file.
"""

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from arise.config_base import Count, Fraction, Positive, Section


class Price(Section):
    """US dollars for a million tokens, for models the price table does not know."""

    input: Annotated[float, Field(ge=0.0)]
    output: Annotated[float, Field(ge=0.0)]
    cached: Fraction = 1.0
    """Part of the input price that tokens from the provider's cache cost."""


class Endpoint(Section):
    """Any server with OpenAI's chat completions."""

    model: Annotated[str, Field(min_length=1)]
    base_url: str = "https://api.openai.com/v1"
    api_key_env: str = "OPENAI_API_KEY"
    temperature: Annotated[float, Field(ge=0.0)] = 0.0
    top_p: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    max_tokens: Count = 8192
    context_tokens: Count = 131_072
    extra_body: dict[str, JsonValue] = Field(default_factory=dict)
    """Passed on as it stands, e.g. `{chat_template_kwargs = {enable_thinking = false}}`."""


class Calls(Section):
    """How calls are made: limits shared by all callers, two retry ladders, and the circuit breaker."""

    concurrency: Count = 64
    requests_per_minute: Annotated[float, Field(ge=0.0)] = 0.0
    """0 means no limit but the provider's own."""
    request_timeout: Positive = 180.0
    deadline: Positive = 600.0
    """Seconds for one call with all its retries, counted from when it may start."""
    transport_attempts: Count = 5
    format_attempts: Annotated[int, Field(ge=1, le=3)] = 3
    breaker_after: Count = 8
    breaker_cooldown: Positive = 30.0
    when_down: Literal["pause", "task_only", "stop"] = "pause"
    max_pause: Positive = 7200.0


class Budget(Section):
    """What all calls of a run may cost, resumes included; 0 means that cost stops nothing."""

    max_usd: Annotated[float, Field(ge=0.0)] = 0.0
    prices: dict[str, Price] = Field(default_factory=dict)


class ModelJudge(Section):
    """A language model as judge."""

    kind: Literal["model"] = "model"
    endpoint: Endpoint
    calls: Calls = Calls()
    rubrics_per_call: Count = 16
    canaries: bool = True
    allow_change: tuple[str, ...] = ()
    """Models that may take over within a window; any other change stops the run."""
    chars_per_token: Positive = 3.0
    """Careful guess of how much text fits into the context; what is billed is never guessed."""


class ModelReflector(Section):
    """A language model as reflection model."""

    kind: Literal["model"] = "model"
    endpoint: Endpoint
    calls: Calls = Calls()
    near_duplicates: Literal["off", "model"] = "model"
    similarity: Fraction = 0.45
    """Proposals at least this similar to a criterion are put to the model as possible duplicates."""
    chars_per_token: Positive = 3.0


class FakeJudging(Section):
    """The offline analyst behind a loopback server, asked by prompt: the language-model path without a model."""

    kind: Literal["fake"] = "fake"
    latency: Annotated[float, Field(ge=0.0)] = 0.2
    """Seconds by which every reply is delayed."""
    calls: Calls = Calls()
    rubrics_per_call: Count = 16


class SameAsJudge(Section):
    """Whoever judges reflects as well: the judge's endpoint, or the offline analyst."""

    kind: Literal["judge"] = "judge"


class Annotation(Section):
    """A language model as annotator of task types."""

    endpoint: Endpoint
    calls: Calls = Calls()
    tasks_per_call: Count = 4
