"""Limits that all calls of a client share: concurrency, pace, the provider's Retry-After, and the circuit breaker."""

import asyncio
import logging
import time
from collections.abc import Callable
from enum import StrEnum

from arise.llm.client.stops import ModelUnusable

log = logging.getLogger(__name__)

LONG_PAUSE = 5.0
"""Minimum length in seconds of a pause that is reported."""


class Pace:
    """At most `concurrency` calls at once, `per_minute` requests, and none before a Retry-After has passed."""

    def __init__(self, concurrency: int, per_minute: float = 0.0) -> None:
        self.slots = asyncio.Semaphore(concurrency)
        self._gap = 60.0 / per_minute if per_minute else 0.0
        self._next = 0.0
        self._paused_until = 0.0

    def pause(self, seconds: float) -> None:
        """Pause all callers, because a Retry-After applies to everyone; report a long pause once."""
        now = time.monotonic()
        if seconds >= LONG_PAUSE and self._paused_until <= now:
            log.warning("the provider limits our rate: calls wait %.0f s, as requested", seconds)
        self._paused_until = max(self._paused_until, now + seconds)

    async def ready(self) -> None:
        """Wait until the next request may be sent."""
        while (wait := self._paused_until - time.monotonic()) > 0:
            await asyncio.sleep(wait)
        if self._gap:
            now = time.monotonic()
            mine = max(now, self._next)
            self._next = mine + self._gap
            await asyncio.sleep(mine - now)


class BreakerState(StrEnum):
    """The state of a circuit breaker."""

    CLOSED = "closed"
    OPEN = "open"
    PROBING = "probing"


class Breaker:
    """Opens after `after` failures in a row, lets one probe through each `cooldown`, closes on the first success."""

    def __init__(
        self, after: int, cooldown: float, policy: str, max_pause: float, changed: Callable[[BreakerState, str], None]
    ) -> None:
        self._after, self._cooldown, self._policy, self._max_pause = after, cooldown, policy, max_pause
        self._changed = changed
        self._failures = 0
        self._probe_at = self._down_since = 0.0
        self._reason = ""
        self.state = BreakerState.CLOSED

    async def admit(self) -> bool:
        """Return whether a call may proceed; by policy it waits, is rejected, or the run stops."""
        while self.state is not BreakerState.CLOSED:
            now = time.monotonic()
            if self._policy == "stop" or now - self._down_since > self._max_pause:
                raise ModelUnusable(f"the endpoint has not answered for {now - self._down_since:.0f} s: {self._reason}")
            if now >= self._probe_at:
                self._probe_at = now + self._cooldown
                self._become(BreakerState.PROBING, "one call tries again")
                return True
            if self._policy == "task_only":
                return False
            await asyncio.sleep(min(1.0, self._cooldown / 4))
        return True

    def succeeded(self) -> None:
        self._failures = 0
        if self.state is not BreakerState.CLOSED:
            self._become(BreakerState.CLOSED, "the endpoint answers again")

    def failed(self, reason: str) -> None:
        self._failures += 1
        self._reason = reason
        if self.state is BreakerState.PROBING or (self.state is BreakerState.CLOSED and self._failures >= self._after):
            self._probe_at = time.monotonic() + self._cooldown
            if self.state is BreakerState.CLOSED:
                self._down_since = time.monotonic()
            self._become(BreakerState.OPEN, f"{self._failures} failures in a row, last: {reason}")

    def _become(self, state: BreakerState, reason: str) -> None:
        self.state = state
        self._changed(state, reason)
