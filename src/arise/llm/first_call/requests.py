"""The requests of a first call: retried for a while, billed, and adapted to fields that a server refuses."""

import asyncio
import json
import logging
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from arise.config.llm import EndpointConfig
from arise.llm.client.constraint import constraint, grammar, grammar_fields, literal
from arise.llm.client.endpoint import Connection, size_of_request
from arise.llm.client.failures import CallFailed, RateLimited, Refused, Transient
from arise.llm.client.spend import Bill, Budget, own_host
from arise.llm.judge.evaluation import Question
from arise.llm.prompts.prompt import CONTRACT, to_json
from arise.run.calls import Recorded

log = logging.getLogger(__name__)

FIRST_CALL = "first_call"
"""A key of the JSON object in the user message of every request made here."""
PATIENCE = 3.0
"""Seconds for which a failing server is retried."""
RATE_PATIENCE = 10.0
"""Longest wait in seconds, at the start, for a server that limits our rate."""
REPLY_SECONDS = 120.0
"""Seconds that a slow model may take for its first reply."""
PAYMENT = re.compile(r"quota|credit|balance|billing|payment", re.IGNORECASE)
_CONFINED = '{"confined":true}'
"""A line that only a server that obeys the grammar writes: no prompt mentions it."""
_SAMPLING = re.compile(r"\b(temperature|top_p)\b", re.IGNORECASE)


@dataclass(frozen=True)
class FirstRequest:
    """A request of the first call; `extra` holds the fields that ask for a shape."""

    system: str
    data: Mapping[str, Any]
    extra: Mapping[str, Any] = field(default_factory=dict)
    template_hash: str = ""

    @property
    def messages(self) -> tuple[dict[str, str], ...]:
        user = to_json({**self.data, FIRST_CALL: "a test before anything is spent"})
        return {"role": "system", "content": self.system}, {"role": "user", "content": user}

    @property
    def distinct(self) -> tuple[str, ...]:
        return self.system, self.messages[1]["content"], to_json(dict(self.extra))


def one_word(filler: int = 0) -> FirstRequest:
    """Return a request for one word; `filler` pads its prompt to about that many tokens."""
    return FirstRequest("You answer in one word.", {"say": "ok"} | ({"filler": "word " * filler} if filler else {}))


def modes(endpoint: EndpointConfig) -> tuple[str, ...]:
    """Return the modes to try, best first: a grammar fixes every id, but only self-hosted servers support grammars."""
    if endpoint.structured != "auto":
        return (endpoint.structured,)
    return ("grammar", "json_schema", "off") if own_host(endpoint.base_url) else ("json_schema", "off")


def asked_in(question: Question, mode: str) -> FirstRequest:
    """Return the control questions as a request in one mode."""
    prompt = question.prompt
    extra = constraint(prompt.shape, mode)
    if mode == "grammar" and prompt.shape:
        marked = grammar(prompt.shape).replace("root ::= ", f'root ::= {literal(_CONFINED)} "\\n" ', 1)
        extra = grammar_fields(marked)
    return FirstRequest(prompt.system, json.loads(prompt.user), extra, prompt.template_hash)


def constrained(text: str, mode: str) -> tuple[str, bool]:
    """Return the answer without the mark of a grammar, and whether the server obeyed the mode."""
    if mode == "grammar":
        start, _, rest = text.strip().partition("\n")
        return (rest, True) if start.strip() == _CONFINED else (text, False)
    return text, mode == "json_schema" and text.lstrip().startswith("{") and '"lines"' in text


class Sender:
    """Sends the requests of one first call and remembers what the server refused and how long it took."""

    def __init__(self, connection: Connection, budget: Budget, purpose: str) -> None:
        self.connection, self._budget, self._purpose = connection, budget, purpose
        self.left_out: tuple[str, ...] = ()
        self.seconds = self._waited = 0.0

    @property
    def endpoint(self) -> EndpointConfig:
        return self.connection.endpoint

    async def adapted(self, opening: FirstRequest) -> Recorded | CallFailed:
        """Send a request; leave out a sampling field or rename the limit if that is what the server refuses."""
        while True:
            reply = await self._patient(opening)
            name = self._refused_field(str(reply)) if isinstance(reply, Refused) else None
            if name is None:
                return reply
            self.left_out += (name,)
            self.connection.endpoint = self.endpoint.without(name)

    async def once(self, opening: FirstRequest, timeout: float) -> Recorded | CallFailed:
        """Send one request and record its cost."""
        key = sha256(to_json([CONTRACT, time.time_ns(), *opening.distinct]).encode()).hexdigest()
        bill = Bill(self._budget, self.endpoint, size_of_request(opening, self.endpoint).most, key, self._purpose)
        try:
            await bill.reserve()
            bill.sending()
            recorded = await self.connection.send(opening, timeout)
            bill.pay(recorded, keep=False)
        except CallFailed as error:
            bill.failed(error.billed, str(error))
            return error
        finally:
            bill.close()
        return recorded

    async def _patient(self, opening: FirstRequest) -> Recorded | CallFailed:
        """Retry a request until it is answered; a failing or busy server gets a few seconds in total."""
        while True:
            began = time.monotonic()
            reply = await self.once(opening, REPLY_SECONDS)
            self.seconds = time.monotonic() - began
            busy = isinstance(reply, RateLimited | Transient) and not PAYMENT.search(str(reply))
            pause = getattr(reply, "retry_after", None) or 0.5
            self._waited += self.seconds + pause
            limited = isinstance(reply, RateLimited)
            if not busy or self._waited > (RATE_PATIENCE if limited else PATIENCE):
                return reply
            if limited:
                log.warning(
                    "%s limits our rate: the first call waits %.1f s and asks again, for at most %.0f s in total",
                    self.endpoint.model, pause, RATE_PATIENCE,
                )  # fmt: skip
            await asyncio.sleep(pause)

    def _refused_field(self, said: str) -> str | None:
        if "max_completion_tokens" in said and "max_tokens" not in self.left_out:
            return "max_tokens"
        named = _SAMPLING.search(said)
        return named[1].lower() if named and named[1].lower() not in self.left_out else None
