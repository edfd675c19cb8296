"""Sessions: the random key, history and limits of one rollout. The key expires with the rollout.

Every answer is committed to the history before any of it is sent. A request that its client marks as a retry returns
the same answer; an equal request without the mark is sampled again.
"""

import asyncio
import secrets
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Protocol

from arise.endpoint.exchange import Answer, Ask, Refused, guided
from arise.endpoint.history import History, PromptPlan
from arise.endpoint.policy import Policy
from arise.ports import FormatError
from arise.types import Segment, StopReason
from arise.types.chat import Message

PREFIX = "arise-"
OVERFLOWS = 8
"""A rollout ends after this many prompts in a row that do not fit into the window: its client does not compact."""
REMEMBERED = 1 << 16
"""The number of different prompts whose repetitions are counted; only a server reaches it."""
PROMPT_END = 32
"""The number of final prompt tokens that a format needs to parse the reply."""


class Serves(Protocol):
    """The interface of a session that the routes use; a policy or a script answers it."""

    @property
    def token(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def window(self) -> int | None: ...
    @property
    def over(self) -> asyncio.Event: ...
    async def answer(self, ask: Ask, body: bytes, marked_retry: bool = False) -> Answer: ...
    def count(self, ask: Ask) -> int: ...
    async def close(self) -> None: ...


def new_key() -> str:
    """Return a random key for one session."""
    return PREFIX + secrets.token_urlsafe(24)


@dataclass(frozen=True)
class CallLimits:
    """Limits of one rollout: calls, tokens per answer, and tokens of all answers (0 means unlimited)."""

    calls: int = 0
    tokens_per_call: int = 4096
    tokens: int = 0


@dataclass
class Session:
    """The conversation of one rollout with the policy."""

    policy: Policy
    limits: CallLimits = field(default_factory=CallLimits)
    conversation: str = ""
    seed: int = 0
    guidance: str = ""
    """Text appended to the system message of the agent's conversations."""
    keep_calls: int = 0
    """Drop earlier conversations after this many calls; used by servers, whose sessions never end."""
    token: str = field(default_factory=new_key)
    history: History = field(init=False)
    stop: StopReason | None = None
    """The limit that ended the session, or None."""
    overflows: int = 0
    """How many calls in a row did not fit into the context window; 1 if the last answer was cut by it."""
    fault: str = ""
    over: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once no further call will be answered."""
    _answers: dict[bytes, asyncio.Task[Answer]] = field(default_factory=dict)
    _running: set[asyncio.Task[Answer]] = field(default_factory=set)
    _sampled: Counter[bytes] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.history = History(self.policy.format)

    @property
    def model(self) -> str:
        """Return the model name that clients see."""
        return self.policy.model

    @property
    def window(self) -> int:
        """Return the tokens that a prompt and its answer may have together."""
        return self.policy.window

    async def answer(self, ask: Ask, body: bytes, marked_retry: bool = False) -> Answer:
        """Answer a request, or repeat the answer for a marked retry; raise Refused.

        Sampling continues after a client disconnects, so that its retry finds the answer.
        """
        digest = blake2b(body, digest_size=16).digest()
        known = self._answers.get(digest) if marked_retry else None
        if known is None or (known.done() and (known.cancelled() or known.exception())):
            known = asyncio.get_running_loop().create_task(self._answer(ask))
            self._answers[digest] = known
            self._running.add(known)
            known.add_done_callback(self._finished)
        return await asyncio.shield(known)

    def count(self, ask: Ask) -> int:
        """Count the tokens of a request's prompt without recording it."""
        try:
            self.policy.require_fits(ask.messages)
            return len(self.policy.format.prompt(self._guided(ask), ask.tools))
        except FormatError as error:
            raise Refused("invalid", str(error), "messages") from None

    def _finished(self, task: asyncio.Task[Answer]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # a disconnected client does not fetch the result

    async def _answer(self, ask: Ask) -> Answer:
        self._require_open()
        if self.keep_calls and len(self.history.calls) >= self.keep_calls:
            self.history = History(self.policy.format)
            self._answers.clear()
        history, plan = self.history, self._plan(ask)
        segment = await self._sample(plan, self._budget(ask))
        if segment.finish == "context" and not segment.ids:
            raise self._overflow(self.policy.too_long(len(plan.ids)))
        read = self.policy.format.read(segment.ids, ask.tools, plan.ids[-PROMPT_END:])
        number = len(history.calls)
        calls = tuple(replace(call, id=f"call_{number:05d}_{n}") for n, call in enumerate(read.calls))
        reply = Message("assistant", read.text, read.reasoning, calls)
        history.commit(plan, segment, reply)
        self.overflows = int(segment.finish == "context")
        return Answer(
            number,
            int(time.time()),
            self.policy.model,
            reply,
            "stop" if segment.finish == "stop" else "length",
            len(plan.ids),
            segment.ids,
            segment.logprobs,
            plan.ids if ask.token_ids else (),
            tuple(self.policy.format.text([i]) for i in segment.ids) if ask.logprobs else (),
        )

    def _require_open(self) -> None:
        if self.over.is_set():
            raise Refused("ended", self.fault or f"this rollout has ended ({self.stop or 'closed'})")
        if self.limits.calls and len(self.history.calls) >= self.limits.calls:
            raise self._ended(StopReason.TURN_LIMIT, f"the limit of {self.limits.calls} turns is reached")

    def _plan(self, ask: Ask) -> PromptPlan:
        if not ask.messages or ask.messages[-1].role == "assistant":
            raise Refused("invalid", "the last message must not be the assistant's", "messages")
        messages = self._guided(ask)
        try:
            self.policy.require_fits(messages)
            plan = self.history.plan(messages, ask.tools)
        except FormatError as error:
            raise Refused("invalid", str(error), "messages") from None
        except Refused as refused:
            raise self._overflow(refused) from None
        if len(plan.ids) >= self.policy.window:
            raise self._overflow(self.policy.too_long(len(plan.ids)))
        return plan

    def _overflow(self, refused: Refused) -> Refused:
        """Count a prompt that does not fit; end the rollout of a client that sends one after the other."""
        self.overflows += 1
        if self.overflows >= OVERFLOWS and not self.keep_calls:
            self.stop = StopReason.CONTEXT_LIMIT
            self.over.set()
        return refused

    def _guided(self, ask: Ask) -> tuple[Message, ...]:
        """Append the guidance to the system message; skip side calls, which lack the tools that the agent has."""
        aside = self.history.saw_tools and not ask.tools
        return ask.messages if aside else guided(ask.messages, self.guidance)

    def _budget(self, ask: Ask) -> int:
        most = min(self.limits.tokens_per_call, ask.max_tokens or self.limits.tokens_per_call)
        if not self.limits.tokens:
            return most
        left = self.limits.tokens - sum(len(call.segment.ids) for call in self.history.calls)
        if left <= 0:
            raise self._ended(StopReason.TOKEN_LIMIT, f"the limit of {self.limits.tokens} tokens is reached")
        return min(most, left)

    async def _sample(self, plan: PromptPlan, budget: int) -> Segment:
        opening = blake2b(b"".join(key.digest for key in plan.opening) + plan.tools, digest_size=8).hexdigest()
        again = self._again(plan)
        conversation = f"{self.conversation}/{opening}" + (f"/{again}" if again else "")
        try:
            return await self.policy.sample(plan.ids, budget, conversation, self.seed)
        except Exception as error:  # engine boundary: any exception leaves a gap in this rollout
            self.fault = f"the policy could not answer: {type(error).__name__}: {error}"
            self.over.set()
            raise Refused("unavailable", self.fault) from error

    def _again(self, plan: PromptPlan) -> int:
        """Return how often this prompt was sampled before, including calls in progress, so that each sample differs."""
        if len(self._sampled) >= REMEMBERED:
            self._sampled.clear()
        prompt = blake2b(repr((plan.parent, plan.ids[plan.known :])).encode(), digest_size=16).digest()
        self._sampled[prompt] += 1
        return self._sampled[prompt] - 1

    def _ended(self, stop: StopReason, said: str) -> Refused:
        self.stop = stop
        self.over.set()
        return Refused("limit", said)

    async def close(self) -> None:
        """Refuse further calls and cancel those being sampled."""
        self.over.set()
        running = tuple(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        self._answers.clear()


@dataclass
class Sessions:
    """Sessions by key; revoked keys are remembered so that late calls get a specific error."""

    open: dict[str, Serves] = field(default_factory=dict)
    anyone: Serves | None = None
    """The session for calls with an unknown key, if no key is required."""
    revoked: set[str] = field(default_factory=set)

    def find(self, token: str) -> Serves:
        """Return the session of a key; raise Refused if the key is unknown or revoked."""
        found = self.open.get(token)
        if found is not None:
            return found
        if token in self.revoked:
            raise Refused("ended", "this rollout has ended: its key is no longer valid")
        if self.anyone is not None:
            return self.anyone
        raise Refused("key", "the API key is missing or unknown")

    def add(self, session: Serves) -> None:
        """Accept the key of a session."""
        self.open[session.token] = session

    async def end(self, session: Serves) -> None:
        """Revoke a session's key."""
        if self.open.pop(session.token, None) is not None:
            self.revoked.add(session.token)
        await session.close()
