"""One cheap call before anything is spent: check that the endpoint accepts the key, knows the model and answers.

The reply is recorded and billed like any other, so a resumed run does not repeat it.
"""

import os
import time
from dataclasses import dataclass

from arise.config.llm import CallsConfig, EndpointConfig
from arise.errors import AriseError, Exit
from arise.llm.client import Client, Reply, Unanswered
from arise.llm.endpoint import Denied, RateLimited, Refused, Transient
from arise.llm.prompt import to_json
from arise.llm.spend import Budget, own_host
from arise.run.calls import Store

FIRST_CALL = "first_call"
"""The only key of the JSON object in the user message."""
CALLS = CallsConfig(
    concurrency=1, request_timeout=30.0, deadline=40.0, transport_attempts=3, breaker_after=100, when_down="task_only"
)


@dataclass(frozen=True)
class Greeting:
    """The prompt of a first call; `asker` scopes its recorded reply."""

    asker: tuple[str, ...]
    messages: tuple[dict[str, str], ...] = (
        {"role": "system", "content": "You answer in one word."},
        {"role": "user", "content": to_json({FIRST_CALL: "Say ok."})},
    )
    template_hash: str = ""

    @property
    def distinct(self) -> tuple[str, ...]:
        """Return the cache key of a reply."""
        return (FIRST_CALL, *self.asker)


async def first_call(
    endpoint: EndpointConfig, store: Store, budget: Budget, purpose: str, *, again: bool = False
) -> None:
    """Request one token; raise if the endpoint has no key, denies the request or cannot be reached.

    `again` repeats the call even if a reply is on record. A rate-limited server (429) has accepted the key and counts
    as reachable.
    """
    require_key(endpoint)
    asker = (endpoint.base_url, endpoint.api_key_env, *([str(time.time_ns())] if again else []))
    reply = await _asked(endpoint.model_copy(update={"max_tokens": 1}), store, budget, purpose, asker)
    if isinstance(reply, Unanswered) and reply.reason == Refused.kind:
        # Some reasoning models refuse a limit that leaves no room for an answer.
        reply = await _asked(endpoint, store, budget, purpose, asker)
    if isinstance(reply, Unanswered) and reply.reason != RateLimited.kind:
        raise _unusable(endpoint, str(reply), _remedy(endpoint, reply))


async def _asked(
    endpoint: EndpointConfig, store: Store, budget: Budget, purpose: str, asker: tuple[str, ...]
) -> Reply | Unanswered:
    client = Client(endpoint, CALLS, store, budget, purpose=purpose)
    try:
        return await client.ask(Greeting(asker))
    finally:
        await client.close()


def require_key(endpoint: EndpointConfig) -> None:
    """Raise if the endpoint's key is not in the environment; a local server needs none."""
    if not os.environ.get(endpoint.api_key_env) and not own_host(endpoint.base_url):
        what = f"the environment variable {endpoint.api_key_env} holds no key"
        raise _unusable(endpoint, what, f"export {endpoint.api_key_env}=..., or name the variable that holds the key")


def _remedy(endpoint: EndpointConfig, reply: Unanswered) -> str:
    if reply.reason == Denied.kind and "404" in reply.detail:
        return f"check the model's name ({endpoint.model}) and the address ({endpoint.base_url})"
    if reply.reason == Denied.kind:
        return f"check the key in {endpoint.api_key_env} and what it may be used for"
    if reply.reason == Transient.kind:
        return f"check that a server runs at {endpoint.base_url} and can be reached from here"
    return "check the settings of the endpoint: model, temperature, top_p, max_tokens and extra_body"


def _unusable(endpoint: EndpointConfig, what: str, remedy: str) -> AriseError:
    return AriseError(
        "endpoint",
        Exit.JUDGE,
        f"{endpoint.model} at {endpoint.base_url} cannot be used: {what}",
        "nothing was tried and nothing was created",
        remedy,
    )
